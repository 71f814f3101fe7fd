// Runs one call at a time, with a pause between the starts of two calls, regardless of the number of callers.
import { setTimeout as sleep } from 'node:timers/promises';

export interface PacedCall<T> {
  /**
   * Starts a call as soon as the pace permits. Callers that ask before the call starts share it. A call that is already
   * running is not shared, because it may have begun before the change that the caller needs to see.
   */
  next(): Promise<T>;
  /** Like `next`, but does not wait for the call, and ignores its failure. */
  request(): void;
  /** The running call; undefined if no call is running. */
  readonly running: Promise<T> | undefined;
}

/** `delayOf` is called once for each call. It returns the milliseconds until the call may start. */
export function pacedCall<T>(call: () => Promise<T>, delayOf: () => number): PacedCall<T> {
  let running: Promise<T> | undefined;
  let upcoming: Promise<T> | undefined;

  async function start(): Promise<T> {
    await running?.catch(() => undefined);
    const delay = delayOf();
    if (delay > 0) await sleep(delay);
    upcoming = undefined;
    const current = call().finally(() => {
      if (running === current) running = undefined;
    });
    running = current;
    return current;
  }

  function next(): Promise<T> {
    upcoming ??= start();
    return upcoming;
  }

  return {
    next,
    request() {
      if (!upcoming) next().catch(() => undefined);
    },
    get running() {
      return running;
    },
  };
}

/**
 * Returns a function that reserves the next start within a budget of `perSecond` starts per second. Each call of that
 * function returns the milliseconds until the reserved start. The budget of a whole second may be used in one burst.
 * Starts are granted in the order of the reservations.
 */
export function startBudget(perSecond: number, now: () => number): () => number {
  const interval = 1_000 / perSecond;
  let nextStart = Number.NEGATIVE_INFINITY;
  return () => {
    nextStart = Math.max(nextStart, now() - 1_000 + interval) + interval;
    return Math.max(0, nextStart - interval - now());
  };
}
