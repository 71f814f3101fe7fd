// Limits how often documents are read because a caller used an unknown name. Each tenant has a share of the budget, so
// that callers who invent names cannot use up the reads of other tenants for long.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../service/clock.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface MissBudget {
  /** Takes one read of `service` from the budget. Returns false if the share or the total budget is used up. */
  take(service: string, share: string): boolean;
}

/** A token bucket: `perSecond` reads are added each second, up to `burst` reads. */
interface Rate {
  perSecond: number;
  burst: number;
}

const shareRate: Rate = { perSecond: 20, burst: 100 };
/** Five times the rate of a share. If four tenants use up their shares, enough remains for the others. */
const totalRate: Rate = { perSecond: 100, burst: 500 };
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

export function createMissBudget(clock: Clock, { missReads }: Pick<PlatformMetrics, 'missReads'>): MissBudget {
  const shares = new LRUCache<string, Bucket>({ max: mostShares });
  const total: Bucket = { left: totalRate.burst, at: clock().getTime() };

  function refill(bucket: Bucket, { perSecond, burst }: Rate, now: number): void {
    // The difference is negative if the clock was set back.
    const elapsed = Math.max(0, now - bucket.at);
    bucket.left = Math.min(burst, bucket.left + (elapsed / 1_000) * perSecond);
    bucket.at = now;
  }

  return {
    take(service, share) {
      const now = clock().getTime();
      const own = shares.get(share) ?? { left: shareRate.burst, at: now };
      shares.set(share, own);
      refill(own, shareRate, now);
      refill(total, totalRate, now);
      const isAllowed = own.left >= 1 && total.left >= 1;
      if (isAllowed) {
        own.left -= 1;
        total.left -= 1;
      }
      missReads.inc({ dependency: service, outcome: isAllowed ? 'read' : 'refused' });
      return isAllowed;
    },
  };
}
