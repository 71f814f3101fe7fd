// Normalises the address of a client as a socket or a proxy states it: removes port, brackets and zone, and turns an
// IPv4-mapped IPv6 address into IPv4.
import { isIP } from 'node:net';

/** `[IPv6]`, `[IPv6]:port` or `IPv4:port`. */
const withBracketsOrPort = /^(?:\[([^\]]*)\](?::\d+)?|(\d+(?:\.\d+){3}):\d+)$/;

/**
 * Returns the address without port, brackets and zone, as IPv4 if it is mapped into IPv6 (RFC 4291 section 2.5.5.2).
 * Returns undefined if the text is not an address.
 */
export function addressOf(written: string): string | undefined {
  if (isIP(written) === 4) return written;
  const [, inBrackets, beforePort] = withBracketsOrPort.exec(written) ?? [];
  const address = (inBrackets ?? beforePort ?? written).replace(/%.*$/, '');
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  const groups = groupsOf(address);
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  return isMapped ? [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.') : address;
}

/**
 * Returns an IPv4 address, or the /64 network of an IPv6 address, because one household has a /64. Returns `unknown`
 * for any other text.
 */
export function networkOf(written: string): string {
  const address = addressOf(written);
  if (address === undefined) return 'unknown';
  if (isIP(address) === 4) return address;
  const prefix = groupsOf(address).slice(0, 4);
  return `${prefix.map((group) => group.toString(16)).join(':')}::/64`;
}

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
