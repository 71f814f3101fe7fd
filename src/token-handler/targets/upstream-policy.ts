// Decides which hosts an operator allows for targets: pure. Hosts are compared as written in the URL, ignoring case, and are
// never resolved. A host that the URL parser would read as another one is not allowed.
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** One entry of UPSTREAM_ALLOWED_DOMAINS. */
export interface AllowedDomain {
  /** Lower case; an IPv6 address in brackets. */
  host: string;
  /** Stands for the host's subdomains at any depth, and not for the host. */
  isWildcard: boolean;
  /** Absent: any port. */
  port?: number;
}

const entryPattern = /^(\*\.)?(\[[\da-f:.]+\]|[^\s\p{Cc}/?#@\\:*[\]%]+)(?::(\d{1,5}))?$/iu;

/** A host name, wildcard or address, optionally with a port; undefined for anything else. */
export function parseAllowedDomain(text: string): AllowedDomain | undefined {
  if (isIP(text) === 6) return parseAllowedDomain(`[${text}]`);
  const [, wildcard, written = '', digits] = entryPattern.exec(text) ?? [];
  const url = `http://${written}`;
  if (written === '' || written.startsWith('.') || written.includes('..') || !URL.canParse(url)) return undefined;
  const isWildcard = wildcard !== undefined;
  const canonical = new URL(url).hostname;
  const isAddress = canonical.startsWith('[') || isIP(canonical) !== 0;
  if (isAddress && (isWildcard || (written.startsWith('[') ? false : canonical !== written))) return undefined;
  const host = isAddress ? canonical : lowerCase(written);
  if (digits === undefined) return { host, isWildcard };
  const port = Number(digits);
  return port >= 1 && port <= 65_535 ? { host, isWildcard, port } : undefined;
}

// Stricter than the URL parser, which drops tabs and line breaks, and takes back slashes for slashes.
const urlPattern = /^https?:\/\/(\[[\da-f:.]+\]|[^\s\p{Cc}/?#@\\:*[\]%]+)(?::\d{0,5})?(?:[/?#]|$)/iu;

/** Whether one of the entries allows the URL's host and port. */
export function isAllowedUpstream(url: string, allowed: readonly AllowedDomain[]): boolean {
  const [, given] = urlPattern.exec(url) ?? [];
  if (given === undefined || !URL.canParse(url)) return false;
  const written = lowerCase(given);
  const { hostname, port, protocol } = new URL(url);
  const isIpv6 = hostname.startsWith('[');
  // A host that the parser reads as another: 0x7f.1 is 127.0.0.1. Names of other scripts have an ASCII form.
  if (!isIpv6 && hostname !== written && hostname !== domainToASCII(written)) return false;
  if (!isIpv6 && hostname !== written && isIP(hostname) !== 0) return false;
  const host = isIpv6 ? hostname : written;
  const effectivePort = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  return allowed.some(
    (entry) =>
      (entry.port === undefined || entry.port === effectivePort) &&
      (entry.isWildcard ? isSubdomain(host, entry.host) && isIP(host) === 0 : host === entry.host),
  );
}

/** Letter by letter, as the URL parser does it. JavaScript makes a final sigma of a capital one at the end of a word. */
function lowerCase(host: string): string {
  return Array.from(host, (letter) => letter.toLowerCase()).join('');
}

function isSubdomain(host: string, domain: string): boolean {
  const label = host.length - domain.length - 1;
  return label > 0 && host.endsWith(`.${domain}`) && host[label - 1] !== '.';
}

/** Whether a URN names a service of the platform itself, whose upstreams are not checked. */
export function isPlatformUrn(urn: string, urnPrefix: string): boolean {
  return urn.startsWith(`${urnPrefix}:platform:`);
}
