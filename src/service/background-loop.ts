// Background work of a process that repeats until the process stops, such as a walk over many rows.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, retryUntilDone } from './retry.ts';
import { longestStop, within } from './time-limit.ts';

export interface BackgroundLoopOptions {
  /** Does one piece of the work. Returns the pause until the next piece in milliseconds. */
  work(): Promise<number>;
  /** Bounds of the wait before a piece that failed is repeated. */
  backoff: Backoff;
  onFailure(error: unknown, retryInMs: number): void;
}

/**
 * Starts the work. `stop` ends it, and resolves when the piece in progress has ended, after `longestStop` at most. The
 * pauses do not keep the process alive.
 */
export function startBackgroundLoop({ work, backoff, onFailure }: BackgroundLoopOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      let pause = 0;
      const piece = async () => {
        pause = await work();
      };
      if (await retryUntilDone(piece, { backoff, signal, onFailure }))
        await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    async stop() {
      stopping.abort();
      await within(running, longestStop, undefined);
    },
  };
}
