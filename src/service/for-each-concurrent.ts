/**
 * Calls `work` for each item, in their order, with at most `most` calls at the same time. If a call fails, starts no
 * other, waits for those that run, and then rejects with the first failure. No work continues in the background.
 */
export async function forEachConcurrent<T>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const rest = items.values();
  const failures: unknown[] = [];
  const worker = async () => {
    for (const item of rest) {
      if (failures.length > 0) return;
      await work(item).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: most }, worker));
  if (failures.length > 0) throw failures[0];
}
