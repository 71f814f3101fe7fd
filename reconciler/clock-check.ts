// Compares the clock of this process with that of Postgres. A run expires forms by its clock. On a node whose clock is
// days ahead, it would lock all drafts and delete all locked forms; on one whose clock is behind, it would record times
// with which the next run deletes forms too early.
import type { Clock } from '../src/service/clock.ts';
import { clockOffset } from '../src/service/postgres/clock-offset.ts';
import type { Queryable } from '../src/service/postgres/postgres.ts';

export interface ClockCheck {
  clock: Clock;
  /** Milliseconds by which the two clocks may differ. The default is a minute. */
  clockTolerance?: number | undefined;
}

/** Thrown if the clocks differ too much. */
export class WrongClockError extends Error {
  constructor(ahead: number) {
    const seconds = Math.round(Math.abs(ahead) / 1_000);
    super(
      `The clock of this node is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} the clock of Postgres. Correct the wrong clock.`,
    );
    this.name = 'WrongClockError';
  }
}

/** Rejects with WrongClockError if the clocks differ too much. */
export async function checkClock(db: Queryable, { clock, clockTolerance = 60_000 }: ClockCheck): Promise<void> {
  const ahead = await clockOffset(db, clock);
  if (!(Math.abs(ahead) <= clockTolerance)) throw new WrongClockError(ahead);
}
