// Waits for a condition outside of a test, such as in `beforeAll`, where `expect.poll` cannot be used.
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until `holds` returns true. Fails after `patience` milliseconds, even if the condition itself hangs. A
 * condition that throws counts as false. `what` completes the sentence "waiting for …".
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { patience = 60_000, interval = 50 } = {},
): Promise<void> {
  const isTrue = async () => holds();
  const over = new AbortController();
  let cause: unknown;
  const wait = async () => {
    while (!over.signal.aborted) {
      const isOver = await isTrue().catch((error: unknown) => {
        cause = error;
        return false;
      });
      if (isOver) return;
      await sleep(interval);
    }
  };
  const giveUp = async () => {
    await sleep(patience, undefined, { signal: over.signal });
    throw new Error(`Gave up after ${patience / 1_000} s of waiting for ${what}.`, { cause });
  };
  try {
    await Promise.race([wait(), giveUp()]);
  } finally {
    over.abort();
  }
}
