// Holds a whole lane back when the service behind it is down, so that an outage costs one try at a time and not one per
// row. It knows nothing of rows; each row's own backoff is the store's.
import type { Clock } from '../../service/clock.ts';
import { type Backoff, retryDelay } from '../../service/retry.ts';

/** `service`: it failed, timed out or refused us. `row`: it refuses this row, or the row cannot be rendered. */
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

/** Failures of the service in a row that shut the gate. Refused rows never do: they would hold back everybody's rows. */
const limit = 5;

export function createGate(options: { clock: Clock; backoff: Backoff; random?: () => number }): Gate {
  let failures = 0;
  let trips = 0;
  let shutUntil = 0;
  const now = () => options.clock().getTime();

  const state = () => {
    if (trips === 0) return 'open';
    return now() < shutUntil ? 'shut' : 'probe';
  };
  const shut = () => {
    trips += 1;
    shutUntil = now() + retryDelay(trips, options.backoff, options.random);
  };
  const open = (): GateChange => {
    const change = trips > 0 ? 'ended' : undefined;
    failures = 0;
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
      if (side === 'row') return before === 'probe' ? open() : undefined;
      failures += 1;
      if (before === 'open' && failures < limit) return undefined;
      shut();
      return before === 'open' ? 'began' : undefined;
    },
  };
}
