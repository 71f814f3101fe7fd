// Detects that a service is down, and holds back its queue: an outage costs one request at a time, not one per row. A row
// that the service refuses never counts as an outage, because it would hold back the rows of other tenants.
import type { Clock } from '../../service/clock.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';
import type { FailureSide } from './failure.ts';

export interface Outage {
  /** `probe`: the service was down, and one delivery may show whether it still is. */
  state(): 'none' | 'probe' | 'down';
  /** Milliseconds until the next probe; 0 if the service is not down. */
  waitMs(): number;
  /** A delivery was accepted. Returns `ended` if that ends an outage. */
  succeeded(): 'ended' | undefined;
  /** A delivery failed. */
  failed(side: FailureSide): 'ended' | undefined;
}

/** Consecutive failures of the service that count as an outage. */
const limit = 5;

export function createOutage(options: { clock: Clock; backoff: Backoff; random?: () => number }): Outage {
  let failures = 0;
  /** Since the service is down, the first failure included; 0 while it works. */
  let failedProbes = 0;
  let probeAt = 0;
  const now = () => options.clock().getTime();
  const state = () => {
    if (failedProbes === 0) return 'none';
    return now() < probeAt ? 'down' : 'probe';
  };
  const succeeded = () => {
    const wasDown = failedProbes > 0;
    failures = 0;
    failedProbes = 0;
    return wasDown ? 'ended' : undefined;
  };
  return {
    state,
    waitMs: () => (state() === 'down' ? probeAt - now() : 0),
    succeeded,
    failed(side) {
      const before = state();
      // A delivery that began before the outage says nothing new.
      if (before === 'down') return undefined;
      // A service that was down and now refuses a row is up.
      if (side === 'row') return before === 'probe' ? succeeded() : undefined;
      failures += 1;
      if (before === 'none' && failures < limit) return undefined;
      failedProbes += 1;
      probeAt = now() + retryDelay(failedProbes, options.backoff, options.random);
      return undefined;
    },
  };
}
