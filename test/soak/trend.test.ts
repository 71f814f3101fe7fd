import { expect, test } from 'vitest';
import { createRandom } from '../adversary/random.ts';
import { judge } from './judge.ts';
import { type Point, trendOf } from './trend.ts';

/** Returns the samples of an hour, one every ten seconds, with autocorrelated noise, like that of a process's heap. */
function hour(at: (hours: number) => number, noise: number): Point[] {
  const random = createRandom('trend');
  let wandering = 0;
  return Array.from({ length: 360 }, (_, index) => {
    wandering = 0.8 * wandering + noise * (random.fraction() - 0.5);
    return { x: index / 360, y: at(index / 360) + wandering };
  });
}

test('the slope of a growing series is found, with an interval that contains it', () => {
  const { slope, mean, growth } = trendOf(hour((x) => 100 + 12 * x, 6));
  expect(slope.low).toBeLessThan(12);
  expect(slope.high).toBeGreaterThan(12);
  expect(slope.low).toBeGreaterThan(8);
  expect(Math.abs(mean - 106)).toBeLessThan(1.5);
  expect(growth.value).toBeCloseTo(12, -1);
});

test('a series that only fluctuates has no slope', () => {
  const { slope } = trendOf(hour(() => 100, 20));
  expect(slope.low).toBeLessThan(0);
  expect(slope.high).toBeGreaterThan(0);
});

test('a leak of 20 MiB an hour in 100 MiB is a problem, and neither fluctuation nor a falling series is one', () => {
  const series = (points: Point[]) => [{ process: 'forms-0', quantity: 'live memory' as const, points }];
  expect(judge(series(hour((x) => 100 + 20 * x, 10)))).toEqual([expect.stringMatching(/forms-0: live memory grew/)]);
  expect(judge(series(hour(() => 100, 30)))).toEqual([]);
  expect(judge(series(hour((x) => 100 - 30 * x, 10)))).toEqual([]);
});
