// Parses TRUSTED_PROXIES into what Express' "trust proxy" takes. Express then reads X-Forwarded-For from the right and
// takes the first untrusted address as the client.
import { isIP } from 'node:net';

/** A number of hops, or names and CIDRs of proxies. */
export type TrustedProxies = number | string[];

const names = new Set(['loopback', 'linklocal', 'uniquelocal']);

export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const items = text.split(',').map((item) => item.trim());
  return items.every(isProxy) ? items : undefined;
}

function isProxy(item: string): boolean {
  if (names.has(item)) return true;
  const [address = '', bits, ...rest] = item.split('/');
  const version = isIP(address);
  // A zone (fe80::1%eth0) means nothing off this machine, and /0 would trust everybody.
  if (version === 0 || address.includes('%') || rest.length > 0) return false;
  return bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}
