// Tests the estimates and verdicts in the reports of the benches.
import { expect, it } from 'vitest';
import { type Figure, tableOf, verdictOf } from './figures.ts';
import { meanOf, ratioOf } from './statistics.ts';

it('returns the mean with its confidence interval', () => {
  // Student's t distribution has the quantile 2.776 for four degrees of freedom.
  const { value, low, high } = meanOf([1, 2, 3, 4, 5]);
  expect(value).toBe(3);
  expect(low).toBeCloseTo(3 - 2.776 * Math.sqrt(2.5 / 5), 6);
  expect(high).toBeCloseTo(3 + 2.776 * Math.sqrt(2.5 / 5), 6);
});

it('compares two contenders round by round, so that a drift of the machine does not count', () => {
  const { value, low, high } = ratioOf([80, 40, 8], [100, 50, 10]);
  expect([value, low, high].map((one) => one.toFixed(6))).toEqual(['0.800000', '0.800000', '0.800000']);
});

it('refuses to estimate from a single round', () => {
  expect(() => ratioOf([1], [1])).toThrow('at least two rounds');
});

const figure = (low: number, high: number, goal: Pick<Figure, 'least' | 'most'>): Figure => ({
  ...{ name: 'a ÷ b', value: (low + high) / 2, low, high, digits: 2 },
  ...goal,
});

it.each([
  [figure(0.86, 0.9, { least: 0.85 }), 'reached'],
  [figure(0.8, 0.9, { least: 0.85 }), 'not shown'],
  [figure(0.7, 0.8, { least: 0.85 }), 'missed'],
  [figure(90, 110, { most: 110 }), 'reached'],
  [figure(100, 120, { most: 110 }), 'not shown'],
  [figure(111, 120, { most: 110 }), 'missed'],
  [figure(1, 2, {}), ''],
])('judges %j as "%s"', (of, verdict) => {
  expect(verdictOf(of)).toBe(verdict);
});

it('writes figures beside their goals', () => {
  expect(tableOf([figure(0.7, 0.8, { least: 0.85 })])).toContain(
    '| a ÷ b | 0.75 (0.70 to 0.80) | at least 0.85 | missed |',
  );
});
