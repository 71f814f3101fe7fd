// Ends request and response bodies that a client sends or reads more slowly than the minimum rate. Only the time that
// the proxy waits for the client counts. One timer checks all bodies, at least once per second. A body that is complete
// before the next check costs only an entry in an array.

/** The body of a request or response that the proxy forwards. */
export interface PacedBody {
  /** Number of bytes that the client has sent or read. May be outdated until the next call of `look`. */
  readonly passed: number;
  /** True if the proxy waits only for the client to send or read. */
  readonly isWaiting: boolean;
  /** Called at each check, before the rate is computed. The body can then update `passed` and `isWaiting`. */
  look?(): void;
}

export interface TransferRate {
  /** Watches a body, and calls `end` once if it is too slow. The returned function stops the watch. */
  watch(body: PacedBody, end: () => void): () => void;
  close(): void;
}

export interface TransferRateLimits {
  /** Minimum rate in bytes per second. */
  least: number;
  /** Milliseconds of waiting for the client over which the rate is measured. */
  window: number;
}

interface Watched {
  /** Undefined when the body is complete, or when `end` was called for it. */
  watch: { body: PacedBody; end: () => void } | undefined;
  /** Milliseconds that the proxy has waited for the client so far. */
  waited: number;
  /**
   * Measurements within the window, oldest first. Each has the waiting time and the number of passed bytes at that
   * time.
   */
  marks: { waited: number; passed: number }[];
}

const marksPerWindow = 6;

export function createTransferRate({ least, window }: TransferRateLimits): TransferRate {
  // Uses an array, because a Set would keep old tables in memory, as `streams.ts` explains.
  let watched: Watched[] = [];
  const interval = Math.min(1_000, window / marksPerWindow);
  let last = performance.now();

  const isTooSlow = (item: Watched, { passed }: PacedBody): boolean => {
    const { waited, marks } = item;
    if (waited - (marks.at(-1)?.waited ?? 0) < window / marksPerWindow) return false;
    marks.push({ waited, passed });
    const [first] = marks;
    if (!first || waited - first.waited < window) return false;
    marks.shift();
    return (passed - first.passed) * 1_000 < least * (waited - first.waited);
  };

  const timer = setInterval(() => {
    const now = performance.now();
    // Limits the elapsed time, because the delay of a late timer is the fault of this process, not of a client.
    const elapsed = Math.min(now - last, 2 * interval);
    last = now;
    watched = watched.filter(({ watch }) => watch !== undefined);
    for (const item of watched) {
      const { watch } = item;
      if (!watch) continue;
      watch.body.look?.();
      if (!watch.body.isWaiting) continue;
      item.waited += elapsed;
      if (!isTooSlow(item, watch.body)) continue;
      item.watch = undefined;
      watch.end();
    }
  }, interval);
  timer.unref();

  return {
    watch(body, end) {
      body.look?.();
      const item: Watched = { watch: { body, end }, waited: 0, marks: [{ waited: 0, passed: body.passed }] };
      watched.push(item);
      return () => {
        item.watch = undefined;
      };
    },
    close: () => clearInterval(timer),
  };
}
