// Estimates from the rounds of a bench, with 95 % confidence intervals.

export interface Estimate {
  value: number;
  /** Ends of the 95 % confidence interval. */
  low: number;
  high: number;
}

/** Two-sided 95 % quantiles of Student's t distribution by degrees of freedom, from 1 to 30. */
const quantiles = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

const quantile = (degrees: number) => quantiles[degrees - 1] ?? 1.96;

/**
 * Returns the slope of the least-squares line through the points. Throws if there are fewer than three points. The
 * interval is valid if the deviations of the points from the line are independent.
 */
export function slopeOf(points: readonly { x: number; y: number }[]): Estimate {
  if (points.length < 3) throw new Error('an interval needs at least three points');
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  const spread = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  const value = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0) / spread;
  const left = points.reduce((sum, point) => sum + (point.y - y - value * (point.x - x)) ** 2, 0);
  const degrees = points.length - 2;
  const half = quantile(degrees) * Math.sqrt(left / degrees / spread);
  return { value, low: value - half, high: value + half };
}

/** Returns the mean. Throws if there are fewer than two values. */
export function meanOf(values: readonly number[]): Estimate {
  if (values.length < 2) throw new Error('an interval needs at least two rounds');
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  const half = quantile(values.length - 1) * Math.sqrt(variance / values.length);
  return { value: mean, low: mean - half, high: mean + half };
}

/**
 * Divides `own` by `others` in each round, and returns the geometric mean of these ratios. A change of the machine's
 * speed affects both values of a round alike, so it cancels out. Throws if there are fewer than two rounds.
 */
export function ratioOf(own: readonly number[], others: readonly number[]): Estimate {
  const { value, low, high } = meanOf(own.map((figure, round) => Math.log(figure / (others[round] ?? Number.NaN))));
  return { value: Math.exp(value), low: Math.exp(low), high: Math.exp(high) };
}

/** Returns for example `0.87 (0.84 to 0.90)`. */
export function written({ value, low, high }: Estimate, digits = 2): string {
  return `${value.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}
