// Retries failures of the infrastructure: a deadlock, a lock or statement timeout, a broken connection. A failure that a
// row causes is not retried, because it would fail again.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../src/service/operations/log.ts';
import { databaseProblem } from '../src/service/postgres/postgres.ts';
import { databaseRefusal } from '../src/service/quarantine/quarantine.ts';

export interface Patience {
  log: Logger;
  /** Aborted to end the retries. */
  signal: AbortSignal;
}

/** Milliseconds before each retry. */
const pauses = [200, 1_000, 3_000];

export async function patiently<T>({ log, signal }: Patience, work: () => Promise<T>): Promise<T> {
  for (const pause of pauses) {
    try {
      return await work();
    } catch (error) {
      if (!databaseProblem(error) || databaseRefusal(error) || signal.aborted) throw error;
      log.warn({ err: error }, 'statement failed, will be retried');
      await sleep(pause);
    }
  }
  return work();
}
