// Holds a whole lane back when the service behind it is down, so that an outage costs one try at a time and not one per
// row. It knows nothing of rows; each row's own backoff is the store's.
import type { Clock } from '../../service/clock.ts';
import { type Backoff, retryDelay } from './outbox.ts';

/** `service`: it failed, timed out or refused us. `row`: it answered that this one is not acceptable. */
export type FailureSide = 'service' | 'row';

export interface Gate {
  /** `open`: as many as fit; `probe`: one, to see whether the service is back; `shut`: none until {@link waitMs}. */
  state(): 'open' | 'probe' | 'shut';
  /** Milliseconds until a probe may go, 0 when the gate is not shut. */
  waitMs(): number;
  /** A delivery was accepted. */
  succeeded(): GateChange;
  /** A delivery failed. */
  failed(side: FailureSide): GateChange;
}

/** Whether this outcome begins an outage, ends one, or changes nothing. */
export type GateChange = 'began' | 'ended' | undefined;

// Five failures of the service in a row, or fifty refused rows: a wrong address or a broken registration refuses all.
const weights: Record<FailureSide, number> = { service: 10, row: 1 };
const limit = 50;

export function createGate(options: { clock: Clock; backoff: Backoff; random?: () => number }): Gate {
  let score = 0;
  let trips = 0;
  let shutUntil = 0;
  let cause: FailureSide = 'service';
  const now = () => options.clock().getTime();

  const state = () => {
    if (trips === 0) return 'open';
    return now() < shutUntil ? 'shut' : 'probe';
  };
  const shut = (side: FailureSide) => {
    trips += 1;
    cause = side;
    shutUntil = now() + retryDelay(trips, options.backoff, options.random);
  };
  const open = (): GateChange => {
    const change = trips > 0 ? 'ended' : undefined;
    score = 0;
    trips = 0;
    return change;
  };

  return {
    state,
    waitMs: () => (state() === 'shut' ? shutUntil - now() : 0),
    succeeded: open,
    failed(side) {
      const before = state();
      // What was under way when the gate shut says nothing new.
      if (before === 'shut') return undefined;
      // A service that was down and now refuses one row is up.
      if (before === 'probe' && cause === 'service' && side === 'row') return open();
      score += weights[side];
      if (before === 'open' && score < limit) return undefined;
      shut(side);
      return before === 'open' ? 'began' : undefined;
    },
  };
}
