// Retries with exponential backoff. Waits are random, so that processes or rows that failed at the same time do not
// retry at the same time.
import { setTimeout as sleep } from 'node:timers/promises';

/** Bounds of the wait between two attempts, in milliseconds. */
export interface Backoff {
  first: number;
  cap: number;
}

/**
 * Returns the milliseconds until the next attempt. The wait doubles with each failure up to the cap. The result is
 * between half of the wait and the whole wait, at random.
 */
export function retryDelay(failures: number, { first, cap }: Backoff): number {
  const ceiling = Math.min(cap, first * 2 ** Math.min(Math.max(failures - 1, 0), 30));
  return Math.round(ceiling * (0.5 + Math.random() / 2));
}

export interface RetryOptions {
  backoff: Backoff;
  /** Ends the retries. Without it, only a success or an error of `onFailure` ends them. */
  signal?: AbortSignal;
  onFailure(error: unknown, retryInMs: number): void;
}

/**
 * Repeats an action until it succeeds. Resolves to true after a success, and to false if the signal aborts first. The
 * waits do not keep the process alive.
 */
export async function retryUntilDone(action: () => Promise<void>, options: RetryOptions): Promise<boolean> {
  const { backoff, signal, onFailure } = options;
  for (let failures = 1; !signal?.aborted; failures += 1) {
    try {
      await action();
      return true;
    } catch (error) {
      const delay = retryDelay(failures, backoff);
      onFailure(error, delay);
      await sleep(delay, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
  return false;
}
