// Limits how long a caller waits for a promise. The work itself goes on.

/** The result of `work`, or `late` if it takes more milliseconds. An Error as `late` is thrown. */
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
