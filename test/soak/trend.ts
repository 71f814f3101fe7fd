// The trend of a series of samples: its mean, and its slope with a 95 % confidence interval.
import { type Estimate, slopeOf } from '../bench/statistics.ts';

export interface Point {
  /** Hours since the start of the run. */
  x: number;
  y: number;
}

export interface Trend {
  mean: number;
  /** Change of the value per hour. */
  slope: Estimate;
  /**
   * Change from the first to the last sample on the fitted line. `atLeast` is the lower bound of the confidence
   * interval.
   */
  growth: { atLeast: number; value: number };
}

/** Number of equal parts into which the time of a series is divided. */
const parts = 20;

/**
 * Computes the slope from the means of 20 equal parts of the time, because consecutive samples are similar, and an
 * interval from single samples would be too narrow. Throws if fewer than three parts have samples.
 */
export function trendOf(points: readonly Point[]): Trend {
  const from = Math.min(...points.map(({ x }) => x));
  const length = Math.max(...points.map(({ x }) => x)) - from;
  const byPart = Map.groupBy(points, ({ x }) => Math.min(parts - 1, Math.floor(((x - from) / length) * parts)));
  const means = [...byPart.values()].map((list) => ({
    x: meanOf(list.map(({ x }) => x)),
    y: meanOf(list.map(({ y }) => y)),
  }));
  const slope = slopeOf(means);
  return {
    mean: meanOf(points.map(({ y }) => y)),
    slope,
    growth: { atLeast: slope.low * length, value: slope.value * length },
  };
}

function meanOf(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
