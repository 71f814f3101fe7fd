// Limits how often documents are read again, or for the first time, because a caller named something unknown. Each
// tenant has a share, so that callers who make names up cannot use up the reads of other tenants for long.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../service/clock.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface MissBudget {
  /**
   * Takes one read of `service` from the budget. Returns false if the budget of the share or the total budget is used
   * up.
   */
  take(service: string, share: string): boolean;
}

/** Reads per second, and the number of reads that may follow each other immediately after a pause. */
interface Rate {
  perSecond: number;
  burst: number;
}

const shareRate: Rate = { perSecond: 20, burst: 100 };
/** Five times a share: four tenants at their limits leave enough for the others. */
const totalRate: Rate = { perSecond: 100, burst: 500 };
/**
 * Maximum number of shares that are remembered. A forgotten share starts with a full burst, but the total rate still
 * applies.
 */
const mostShares = 10_000;

interface Bucket {
  left: number;
  /** Milliseconds since 1970. */
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
