import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { forEachConcurrent } from './for-each-concurrent.ts';

describe('calls for each item', () => {
  it('run in order, at most so many at the same time, without waiting for a slow one', async () => {
    const started: number[] = [];
    const slow = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    const all = forEachConcurrent([0, 1, 2, 3, 4], 2, async (item) => {
      started.push(item);
      running += 1;
      most = Math.max(most, running);
      if (item === 4) slow.resolve();
      await (item === 0 ? slow.promise : sleep(1));
      running -= 1;
    });
    await all;
    expect({ started, most, running }).toEqual({ started: [0, 1, 2, 3, 4], most: 2, running: 0 });
  });

  it('reject with the first failure, after the running calls have ended, and start no other', async () => {
    const ended: number[] = [];
    const all = forEachConcurrent([3, 1, 2, 0], 3, async (item) => {
      await sleep(item * 5);
      ended.push(item);
      if (item > 0) throw new Error(String(item));
    });
    await expect(all).rejects.toThrow('1');
    expect(ended).toEqual([1, 2, 3]);
  });

  it('do nothing without items', async () => {
    await expect(forEachConcurrent([], 8, () => Promise.reject(new Error('called')))).resolves.toBeUndefined();
  });
});
