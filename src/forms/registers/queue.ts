// Lets work run in its order: of one key one at a time, of all keys a few at a time. Who waits too long is sent away.
// It knows this process only.
import { Problem } from '../../service/problem.ts';

export interface Queue {
  /** Throws Problem `unavailable` when the turn does not come in time; the work has not begun then. */
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

interface Waiting {
  key: string;
  start(): void;
}

export function createQueue({ places, waitMs }: { places: number; waitMs: number }): Queue {
  const running = new Set<string>();
  const waiting = new Set<Waiting>();

  function startNext(): void {
    for (const one of waiting) {
      if (running.size >= places) return;
      if (running.has(one.key)) continue;
      waiting.delete(one);
      running.add(one.key);
      one.start();
    }
  }

  function enter(key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        key,
        start() {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        waiting.delete(one);
        const headers = { 'Retry-After': '5' };
        reject(new Problem('unavailable', 'Other changes of registers are still running.', { headers }));
      }, waitMs);
      waiting.add(one);
      startNext();
    });
  }

  return {
    async run(key, work) {
      await enter(key);
      try {
        return await work();
      } finally {
        running.delete(key);
        startNext();
      }
    },
  };
}
