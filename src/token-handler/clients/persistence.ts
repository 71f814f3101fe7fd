// Retries work that has to be done although its request has failed, such as storing a change that the identity provider
// has already made. It retries until the work succeeds or the process stops, and logs what it gave up.
import type { Logger } from '../../service/operations/log.ts';
import { retryUntilDone } from '../../service/retry.ts';

export interface Persistence {
  /** Starts in the background. `about` identifies the work in the log; it must hold no secret. */
  untilDone(about: Record<string, string>, work: () => Promise<void>): void;
  /** Tries everything once more, and resolves when nothing runs any more. */
  close(): Promise<void>;
}

/** `firstDelay`: most milliseconds after the first failure; doubled after each further one, up to 30 s. */
export function createPersistence({ log, firstDelay = 500 }: { log: Logger; firstDelay?: number }): Persistence {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  async function run(about: Record<string, string>, work: () => Promise<void>): Promise<void> {
    const backoff = { first: firstDelay, cap: 30_000 };
    const onFailure = (err: unknown) => log.warn({ ...about, err }, 'failed, and is tried again');
    try {
      // One last attempt when the process stops.
      if (!(await retryUntilDone(work, { backoff, signal: stopping.signal, onFailure }))) await work();
      log.info(about, 'done after a failure');
    } catch (err) {
      log.error({ ...about, err }, 'given up, because the process stops');
    }
  }

  return {
    untilDone(about, work) {
      const work$ = run(about, work).finally(() => running.delete(work$));
      running.add(work$);
    },
    async close() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
