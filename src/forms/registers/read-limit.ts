// How often an address may read without a token: counted in this process, told in RateLimit headers (draft 7 of
// draft-ietf-httpapi-ratelimit-headers). It keeps addresses in memory only, for as long as the window is.
import { isIPv4, isIPv6 } from 'node:net';
import type { Request, Response } from 'express';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Problem } from '../../service/problem.ts';

export interface ReadLimit {
  /** Reads of one address in the window. */
  reads: number;
  /** Length of the window in seconds. */
  seconds: number;
}

/** Counts a request and sets the headers. Throws Problem `too-many-requests`. */
export type CountRead = (request: Request, response: Response) => Promise<void>;

export function createCountRead({ reads, seconds }: ReadLimit): CountRead {
  const limiter = new RateLimiterMemory({ points: reads, duration: seconds });
  return async (request, response) => {
    const result = await limiter.consume(clientOf(request.ip)).catch((refusal: unknown) => {
      if (refusal instanceof RateLimiterRes) return refusal;
      throw refusal;
    });
    const reset = Math.max(1, Math.ceil(result.msBeforeNext / 1000));
    const remaining = Math.max(0, result.remainingPoints);
    response.set('RateLimit-Policy', `${reads};w=${seconds}`);
    response.set('RateLimit', `limit=${reads}, remaining=${remaining}, reset=${reset}`);
    if (result.consumedPoints > reads)
      throw new Problem('too-many-requests', 'This address has read too often.', {
        headers: { 'Retry-After': String(reset) },
      });
  };
}

/**
 * Who counts as one client: an IPv4 address, or the /64 that an IPv6 address is in, as one customer has at least that.
 * IPv4 mapped into IPv6 (RFC 4291 section 2.5.5.2) is IPv4.
 */
export function clientOf(address: string | undefined): string {
  const plain = (address ?? '').replace(/%.*$/, '');
  const mapped = /^::ffff:([\d.]+)$/i.exec(plain)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const last = tail === '' ? [] : tail.split(':');
    // An IPv4 address at the end takes the place of two groups.
    const given = groups.length + last.length + (last.at(-1)?.includes('.') ? 1 : 0);
    groups.push(...Array.from({ length: 8 - given }, () => '0'), ...last);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
