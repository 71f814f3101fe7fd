// Token buckets: each tenant has a share, and all shares together have a total. A share that is used up therefore does
// not affect other tenants.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../service/clock.ts';

/** `perSecond` tokens are added each second, up to `burst` tokens. */
export interface Rate {
  perSecond: number;
  burst: number;
}

export interface TokenBuckets {
  /** Returns the number of tokens that the share, or the total, has left, whichever is less. */
  left(share: string): number;
  /**
   * Takes tokens, even if the share has fewer left; its number can become negative. The total loses only what the share
   * had left, so that a share that takes too many does not leave the others without tokens. With `inFull`, the total
   * loses all of them, so that it limits what many shares take.
   */
  take(share: string, tokens: number, inFull?: boolean): void;
}

/**
 * Maximum number of shares in memory. A share that was dropped starts again with a full burst, but the total rate still
 * applies.
 */
const mostShares = 10_000;

interface Bucket {
  left: number;
  /** The time of the last refill, in milliseconds since 1970. */
  at: number;
}

export function createTokenBuckets(clock: Clock, rates: { share: Rate; total: Rate }): TokenBuckets {
  const shares = new LRUCache<string, Bucket>({ max: mostShares });
  const total: Bucket = { left: rates.total.burst, at: clock().getTime() };

  function refill(bucket: Bucket, { perSecond, burst }: Rate, now: number): Bucket {
    // The difference is negative if the clock was set back.
    const elapsed = Math.max(0, now - bucket.at);
    bucket.left = Math.min(burst, bucket.left + (elapsed / 1_000) * perSecond);
    bucket.at = now;
    return bucket;
  }

  function bucketsOf(share: string): [Bucket, Bucket] {
    const now = clock().getTime();
    const own = shares.get(share) ?? { left: rates.share.burst, at: now };
    shares.set(share, own);
    return [refill(own, rates.share, now), refill(total, rates.total, now)];
  }

  return {
    left: (share) => Math.min(...bucketsOf(share).map(({ left }) => left)),
    take(share, tokens, inFull = false) {
      const [own, all] = bucketsOf(share);
      all.left -= inFull ? tokens : Math.min(tokens, Math.max(0, own.left));
      own.left -= tokens;
    },
  };
}
