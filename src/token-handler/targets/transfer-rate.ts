// Ends bodies that a client sends or reads more slowly than the minimum rate. Only time spent waiting for the client counts.
// It looks at all bodies once a second, so that a short body costs only an entry in a list.

/** A body between a client and an upstream. */
export interface PacedBody {
  /** Bytes that the client has sent, or taken, as of the last look. */
  readonly passed: number;
  /** Whether the proxy waits for the client only. */
  readonly isWaiting: boolean;
  /** Called at each look. */
  look?(): void;
}

export interface TransferRate {
  /** `end` is called once if the body is too slow. The returned function stops the watch. */
  watch(body: PacedBody, end: () => void): () => void;
  close(): void;
}

export interface TransferRateLimits {
  /** Bytes per second. */
  least: number;
  /** Milliseconds of waiting over which the rate is measured. */
  window: number;
}

interface Watched {
  /** Undefined when the body is complete. */
  watch: { body: PacedBody; end: () => void } | undefined;
  /** Milliseconds. */
  waited: number;
  /** Bytes that had passed after a time of waiting: at the beginning of the window, and since. */
  marks: { waited: number; passed: number }[];
}

const marksPerWindow = 6;

export function createTransferRate({ least, window }: TransferRateLimits): TransferRate {
  // A list for the same reason as in streams.ts.
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
    // A late timer is this process's fault, not a client's.
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
