// Decides whether the operator allows the host of an upstream (UPSTREAM_ALLOWED_DOMAINS). Compares hosts as written in
// the URL, ignoring case, and never resolves host names. Rejects a URL whose host the URL parser would change, for
// example by dropping tabs or by reading 0x7f.1 as 127.0.0.1. Pure functions only.
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** One entry of UPSTREAM_ALLOWED_DOMAINS. */
export interface AllowedDomain {
  /** A host name in lower case, or an IP address. IPv6 addresses are in brackets. */
  host: string;
  /** True if the entry allows the host's subdomains at any depth, but not the host itself. */
  isWildcard: boolean;
  /** Absent if every port is allowed. */
  port?: number;
}

const entryPattern = /^(\*\.)?(\[[\da-f:.]+\]|[^\s\p{Cc}/?#@\\:*[\]%]+)(?::(\d{1,5}))?$/iu;

/**
 * Parses a host name, a wildcard such as `*.example.ca`, or an IP address, with an optional port, or returns undefined.
 */
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

// This pattern is stricter than the URL parser, which drops tabs and line breaks, and reads backslashes as slashes.
const urlPattern = /^https?:\/\/(\[[\da-f:.]+\]|[^\s\p{Cc}/?#@\\:*[\]%]+)(?::\d{0,5})?(?:[/?#]|$)/iu;

/** True if one of the entries allows the URL's host and port. */
export function isAllowedUpstream(url: string, allowed: readonly AllowedDomain[]): boolean {
  const [, given] = urlPattern.exec(url) ?? [];
  if (given === undefined || !URL.canParse(url)) return false;
  const written = lowerCase(given);
  const { hostname, port, protocol } = new URL(url);
  const isIpv6 = hostname.startsWith('[');
  // Rejects a host that the URL parser reads as another host, such as 0x7f.1 (127.0.0.1). A host name with non-ASCII
  // letters may differ from `hostname`, because `hostname` is its ASCII form.
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

/**
 * Converts each letter separately to lower case, as the URL parser does. If the whole word were converted, a final Σ
 * would become ς.
 */
function lowerCase(host: string): string {
  return Array.from(host, (letter) => letter.toLowerCase()).join('');
}

function isSubdomain(host: string, domain: string): boolean {
  const label = host.length - domain.length - 1;
  return label > 0 && host.endsWith(`.${domain}`) && host[label - 1] !== '.';
}

/** True if a URN names a platform service. Upstreams of platform services are allowed without a check. */
export function isPlatformUrn(urn: string, urnPrefix: string): boolean {
  return urn.startsWith(`${urnPrefix}:platform:`);
}
