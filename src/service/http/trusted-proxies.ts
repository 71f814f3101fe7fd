// Parses TRUSTED_PROXIES and decides which proxies are trusted. The client is the first untrusted address from the right of
// X-Forwarded-For.
import { BlockList, isIP } from 'node:net';
import { addressOf } from './client-address.ts';

/** A number of hops, or names and CIDRs of proxies. */
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
 * Returns a function that decides whether a proxy is trusted, by its address and its distance in hops. A port in the
 * address, as Azure's proxies add it, is ignored.
 */
export function createTrust(proxies: TrustedProxies): (written: string, hop: number) => boolean {
  if (typeof proxies === 'number') return (_written, hop) => hop < proxies;
  const trusted = new BlockList();
  for (const item of proxies.flatMap((name) => ranges[name] ?? name)) {
    const [written = '', bits] = item.split('/');
    const address = addressOf(written) ?? '';
    const longest = isIP(address) === 4 ? 32 : 128;
    // An IPv4 network may be mapped into IPv6.
    const length = bits === undefined ? longest : Number(bits) - (isIP(written) === 6 && longest === 32 ? 96 : 0);
    trusted.addSubnet(address, Math.max(length, 1), familyOf(address));
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
  // A zone (fe80::1%eth0) is valid on one machine only, and /0 would trust everybody.
  if (version === 0 || address.includes('%') || rest.length > 0) return false;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}
