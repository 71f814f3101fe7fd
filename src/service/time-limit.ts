// Limits how long a caller waits for a promise. The work itself continues.

/** Milliseconds for which a stop waits for background work. The process must release all its resources within 5 s. */
export const longestStop = 3_000;

/**
 * Returns the result of `work`, or `late` if the work takes longer than `milliseconds`. If `late` is an Error, it is
 * thrown.
 */
export async function within<T, L>(work: Promise<T>, milliseconds: number, late: L): Promise<T | Exclude<L, Error>> {
  const { promise, resolve, reject } = Promise.withResolvers<Exclude<L, Error>>();
  const expire = () => (late instanceof Error ? reject(late) : resolve(late as Exclude<L, Error>));
  const timer = setTimeout(expire, milliseconds);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Starts a time limit that several steps share. The returned function waits for a step, and throws the error that
 * `late` returns when the time is over.
 */
export function withinTotal(milliseconds: number, late: () => Error): <T>(step: Promise<T>) => Promise<T> {
  const ends = performance.now() + milliseconds;
  return (step) => within(step, Math.max(0, ends - performance.now()), late());
}
