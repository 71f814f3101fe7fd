// Tests how long the result of a read is shared, and that failures are not shared.
import { expect, it } from 'vitest';
import { createShortCache } from './short-cache.ts';

it('a reading is shared by concurrent and later callers for its time, separately for each key', async () => {
  let now = 0;
  const reads: string[] = [];
  const cached = createShortCache({
    freshFor: 5_000,
    most: 10,
    clock: () => new Date(now),
    read: async (key) => reads.push(key),
  });
  expect(await Promise.all([cached('a'), cached('a'), cached('b')])).toEqual([1, 1, 2]);
  now = 4_999;
  expect(await cached('a')).toBe(1);
  now = 5_000;
  expect(await cached('a')).toBe(3);
  expect(reads).toEqual(['a', 'b', 'a']);
});

it('a read that takes longer than its time is shared until it ends, and the next caller starts another one', async () => {
  let now = 0;
  const reads: PromiseWithResolvers<string>[] = [];
  const cached = createShortCache({
    freshFor: 5_000,
    most: 10,
    clock: () => new Date(now),
    read() {
      const read = Promise.withResolvers<string>();
      reads.push(read);
      return read.promise;
    },
  });
  const first = cached('a');
  now = 6_000;
  const second = cached('a');
  expect(reads).toHaveLength(1);
  reads[0]?.resolve('slow');
  expect(await Promise.all([first, second])).toEqual(['slow', 'slow']);
  const third = cached('a');
  reads[1]?.resolve('next');
  expect(await third).toBe('next');
});

it('a failure is given to those who wait for it, and not kept', async () => {
  let attempts = 0;
  const cached = createShortCache({
    freshFor: 5_000,
    most: 10,
    clock: () => new Date(0),
    read: async () => {
      attempts += 1;
      if (attempts === 1) throw new Error('down');
      return attempts;
    },
  });
  const results = await Promise.allSettled([cached('a'), cached('a')]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await cached('a')).toBe(2);
});
