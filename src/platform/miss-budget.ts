// Limits how often documents are read because a caller used an unknown name. Each tenant has a share of the budget, so
// that callers who invent names cannot use up the reads of other tenants for long.
import type { Clock } from '../service/clock.ts';
import type { PlatformMetrics } from './platform-metrics.ts';
import { createTokenBuckets } from './token-buckets.ts';

export interface MissBudget {
  /** Takes one read of `service` from the budget. Returns false if the share or the total budget is used up. */
  take(service: string, share: string): boolean;
}

/** The total is five times a share. If four tenants use up their shares, enough remains for the others. */
const rates = { share: { perSecond: 20, burst: 100 }, total: { perSecond: 100, burst: 500 } };

export function createMissBudget(clock: Clock, { missReads }: Pick<PlatformMetrics, 'missReads'>): MissBudget {
  const buckets = createTokenBuckets(clock, rates);
  return {
    take(service, share) {
      const isAllowed = buckets.left(share) >= 1;
      if (isAllowed) buckets.take(share, 1);
      missReads.inc({ dependency: service, outcome: isAllowed ? 'read' : 'refused' });
      return isAllowed;
    },
  };
}
