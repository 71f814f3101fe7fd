// Waits for a condition outside of a test, such as in `beforeAll`, where `expect.poll` cannot be used.
import { setTimeout as sleep } from 'node:timers/promises';

/** Fails after a minute. A condition that throws counts as false. `what` continues the sentence "waiting for …". */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const isTrue = async () => holds();
  for (const deadline = performance.now() + 60_000; !(await isTrue().catch(() => false)); await sleep(50))
    if (performance.now() > deadline) throw new Error(`Gave up after a minute of waiting for ${what}.`);
}
