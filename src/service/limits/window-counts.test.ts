// Tests that the counts of a rate limit need limited memory, and that this limit does not slow decisions down.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { createMetrics } from '../operations/metrics.ts';
import { createRateLimits } from './rate-limit.ts';
import { WindowCounts } from './window-counts.ts';

const minute = 60_000;

function collect(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

describe('counts in a window', () => {
  const use = (counts: WindowCounts, key: string, times = 1) => {
    for (let done = 0; done < times; done += 1) counts.at(1, key).own += 1;
  };

  it('are dropped when the next window begins', () => {
    const counts = new WindowCounts(minute);
    use(counts, 'a', 3);
    expect([counts.at(1, 'a').own, counts.at(2, 'a').own, counts.size]).toEqual([3, 0, 1]);
  });

  it('are bounded: the oldest key is forgotten first', () => {
    const counts = new WindowCounts(minute, 100);
    for (let index = 0; index < 150; index += 1) use(counts, `key ${index}`);
    expect(counts.size).toBe(100);
    expect([counts.at(1, 'key 149').own, counts.at(1, 'key 49').own]).toEqual([1, 0]);
  });

  it('of frequent users are kept during a flood of keys that are used once', () => {
    const counts = new WindowCounts(minute, 1_000);
    for (let person = 0; person < 200; person += 1) use(counts, `person ${person}`, 50);
    for (let index = 0; index < 100_000; index += 1) use(counts, `flood ${index}`);
    const kept = Array.from({ length: 200 }, (_, person) => counts.at(1, `person ${person}`).own);
    // A person's count is dropped only if the eight oldest keys all belong to people. The flood consists of 100 times
    // as many keys as are kept, but drops the counts of fewer than one person in five.
    expect(kept.filter((own) => own === 50).length).toBeGreaterThan(160);
    expect(counts.size).toBe(1_000);
  });
});

describe('a rate limit in memory', () => {
  const create = () =>
    createRateLimits({ clock: () => new Date(1), log: undefined as never, metrics: createMetrics() }).local({
      ...{ name: 'test', most: 1_000_000, window: minute },
    });

  it('decides as fast with a million keys as with a hundred, in bounded memory', () => {
    const limiter = create();
    const used = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = used();
    /** Returns the CPU time of 5,000 decisions in microseconds, as the minimum of several rounds. */
    const measure = (from: number, known: number) => {
      let best = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 8; round += 1) {
        const keys = Array.from({ length: 5_000 }, (_, index) => `key ${from + ((round * 5_000 + index) % known)}`);
        const start = process.threadCpuUsage();
        for (const key of keys) limiter.count(key);
        const { user, system } = process.threadCpuUsage(start);
        best = Math.min(best, user + system);
      }
      return best;
    };
    const fill = (from: number, to: number) => {
      for (let index = from; index < to; index += 1) limiter.count(`key ${index}`);
    };
    fill(0, 100);
    const times = { 100: measure(0, 100) } as Record<string, number>;
    fill(100, 100_000);
    times[100_000] = measure(0, 100_000);
    fill(100_000, 1_000_000);
    times[1_000_000] = measure(1_000_000, 100_000);
    // In an earlier version, each call skipped all dropped keys again, and decisions took 1,000 times as long. On a
    // busy machine, only the hundred keys stay in the processor's cache. The others take up to 100 times as long.
    for (const many of [100_000, 1_000_000])
      expect((times[many] ?? 0) / Math.max(times[100] ?? 1, 200)).toBeLessThan(400);
    expect(used() - before).toBeLessThan(64 * 1_048_576);
  });
});
