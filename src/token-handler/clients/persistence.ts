// Work that must still happen after its request has failed, such as storing what the access service has changed already:
// repeated in this process until it succeeds or the process stops. What a stop interrupts is logged.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../service/operations/log.ts';

export interface Persistence {
  /** Starts at once and returns. `about` names the matter in the log; it must hold no secret. */
  untilDone(about: Record<string, string>, work: () => Promise<void>): void;
  /** Ends the waiting, and resolves when nothing runs any more. */
  close(): Promise<void>;
}

/** `firstDelay`: milliseconds after the first failure; each further wait is twice as long, up to half a minute. */
export function createPersistence({ log, firstDelay = 500 }: { log: Logger; firstDelay?: number }): Persistence {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  async function run(about: Record<string, string>, work: () => Promise<void>): Promise<void> {
    for (let wait = firstDelay; ; wait = Math.min(wait * 2, 30_000)) {
      try {
        await work();
        log.info(about, 'done after a failure');
        return;
      } catch (error) {
        const stopped = stopping.signal.aborted;
        if (stopped) log.error({ ...about, err: error }, 'given up, because the process stops');
        else log.warn({ ...about, err: error }, 'failed, and is tried again');
        if (stopped) return;
      }
      // One last try when the process stops.
      await delay(wait, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
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
