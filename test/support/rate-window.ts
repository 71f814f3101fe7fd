// Keeps tests of rate limits within one window. Windows begin at multiples of their length, so one may end between two
// requests of a test, and the count then starts again.
import { setTimeout as delay } from 'node:timers/promises';

/** If the current window ends in less than `needed` milliseconds, waits for the next. `now` is the service's time. */
export async function roomInWindow(length: number, needed: number, now = Date.now()): Promise<void> {
  const left = length - (now % length);
  if (left < needed) await delay(left);
}
