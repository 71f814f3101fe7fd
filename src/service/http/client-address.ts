// Finds the address of the client of a request, and the host and protocol that the client used. Like Express, this
// module reads only those X-Forwarded-* headers that trusted proxies wrote (TRUSTED_PROXIES). The client's address is
// the rightmost address in X-Forwarded-For that does not belong to a trusted proxy. The host and the protocol are those
// that the outermost trusted proxy saw.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { isOwnCall } from './own-calls.ts';

/** Matches `[IPv6]`, `[IPv6]:port` and `IPv4:port`. */
const withBracketsOrPort = /^(?:\[([^\]]*)\](?::\d+)?|(\d+(?:\.\d+){3}):\d+)$/;

/**
 * Returns the address without port, brackets and zone. An IPv4 address that is mapped into IPv6 is returned as IPv4
 * (RFC 4291 section 2.5.5.2). Returns undefined if the text is not an address.
 */
export function addressOf(written: string): string | undefined {
  if (isIP(written) === 4) return written;
  const [, inBrackets, beforePort] = withBracketsOrPort.exec(written) ?? [];
  const address = (inBrackets ?? beforePort ?? written).replace(/%.*/s, '');
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  const groups = groupsOf(address);
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  return isMapped ? embeddedIn(groups) : address;
}

/** Returns the IPv4 address in the last two groups of an IPv6 address. */
function embeddedIn(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/**
 * Returns an IPv4 address, or the /64 network of an IPv6 address, because a household usually has a whole /64. Returns
 * `unknown` for any other text. Below 64:ff9b::/96 (RFC 6052 section 2.1), one /64 contains all IPv4 addresses, so the
 * IPv4 address is returned. `addressOf` keeps such an address, because it must not become a trusted proxy's.
 */
export function networkOf(written: string): string {
  const address = addressOf(written);
  if (address === undefined) return 'unknown';
  if (isIP(address) === 4) return address;
  const groups = groupsOf(address);
  if (groups.slice(0, 6).join() === translated) return embeddedIn(groups);
  const prefix = groups.slice(0, 4);
  return `${prefix.map((group) => group.toString(16)).join(':')}::/64`;
}

/** The first six groups of 64:ff9b::/96. */
const translated = [0x64, 0xff9b, 0, 0, 0, 0].join();

/** Returns the eight groups of a valid IPv6 address without a zone. */
function groupsOf(address: string): number[] {
  const [before = [], after] = address.split('::').map((part) => part.split(':').flatMap(numbersOf));
  if (!after) return before;
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

/** Parses one group of an IPv6 address. A dotted IPv4 address fills two groups. */
function numbersOf(group: string): number[] {
  if (group === '') return [];
  if (!group.includes('.')) return [Number.parseInt(group, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

/** A number of trusted proxies in front of this process, or a list of addresses, CIDRs and names of ranges. */
export type TrustedProxies = number | string[];

const ranges: Record<string, string[]> = {
  loopback: ['127.0.0.0/8', '::1'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const items = text.split(',').map((item) => item.trim());
  return items.every(isProxy) ? items : undefined;
}

/**
 * Returns a function that decides whether a proxy is trusted. The function gets the proxy's address and its distance in
 * hops. A port in the address, which Azure's proxies add, is ignored.
 */
export function createTrust(proxies: TrustedProxies): (written: string, hop: number) => boolean {
  if (typeof proxies === 'number') return (_written, hop) => hop < proxies;
  const trusted = new BlockList();
  for (const item of proxies.flatMap((name) => ranges[name] ?? name)) {
    const [written = '', bits] = item.split('/');
    const address = addressOf(written) ?? '';
    const longest = isIP(address) === 4 ? 32 : 128;
    // An IPv4 network may be mapped into IPv6, which adds 96 bits to the length of its prefix.
    const length = bits === undefined ? longest : Number(bits) - (isIP(written) === 6 && longest === 32 ? 96 : 0);
    trusted.addSubnet(address, length, familyOf(address));
  }
  return (written) => {
    const address = addressOf(written);
    return address !== undefined && trusted.check(address, familyOf(address));
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

function isProxy(item: string): boolean {
  if (Object.hasOwn(ranges, item)) return true;
  const [address = '', bits, ...rest] = item.split('/');
  const version = isIP(address);
  // A zone (fe80::1%eth0) is valid on one machine only.
  if (version === 0 || address.includes('%') || rest.length > 0) return false;
  if (bits === undefined) return true;
  // A network of all addresses would trust every client: /0, and /96 or less of IPv4 addresses mapped into IPv6.
  const fewest = version === 6 && isIP(addressOf(address) ?? '') === 4 ? 97 : 1;
  const most = version === 4 ? 32 : 128;
  return /^[1-9]\d{0,2}$/.test(bits) && Number(bits) >= fewest && Number(bits) <= most;
}

export interface Forwarded {
  /** The client's address without port. `unknown` if a trusted proxy wrote text that is not an address. */
  address: string;
  host: string | undefined;
  protocol: string;
}

type Trust = ReturnType<typeof createTrust>;

export function createForwarded(proxies: TrustedProxies): (request: IncomingMessage) => Forwarded {
  const trust = createTrust(proxies);
  return (request) => {
    const { headers, socket } = request;
    const protocol = 'encrypted' in socket ? 'https' : 'http';
    const { address, proxies: trusted } = clientOf(request, trust);
    return {
      address: addressOf(address) ?? 'unknown',
      host: seenBy(trusted, headers['x-forwarded-host']) ?? headers.host,
      protocol: seenBy(trusted, headers['x-forwarded-proto']) ?? protocol,
    };
  };
}

/**
 * Returns the rightmost address of X-Forwarded-For that does not belong to a trusted proxy, and the number of trusted
 * proxies on the way to this process. A call of this process to itself passes on the address that it has found in this
 * way.
 */
function clientOf({ headers, socket }: IncomingMessage, trust: Trust): { address: string; proxies: number } {
  let address = socket.remoteAddress ?? '';
  const written = valuesOf(headers['x-forwarded-for']);
  if (written.length > 0 && isOwnCall({ headers }))
    return { address: written.at(-1) ?? address, proxies: trust(address, 0) ? 1 : 0 };
  let proxies = 0;
  while (trust(address, proxies)) {
    proxies += 1;
    const next = written.pop();
    if (next === undefined) break;
    address = next;
  }
  return { address, proxies };
}

/**
 * Returns the value of a header that the outermost of the trusted proxies has set. If a proxy appends its value to the
 * values that it has received, the values before that one come from the client. Returns undefined if there is no value
 * of a trusted proxy.
 */
function seenBy(proxies: number, header: string | string[] | undefined): string | undefined {
  if (proxies === 0) return undefined;
  const values = valuesOf(header);
  return values.at(-proxies) ?? values[0];
}

function valuesOf(header: string | string[] | undefined): string[] {
  if (header === undefined) return [];
  return String(header)
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
