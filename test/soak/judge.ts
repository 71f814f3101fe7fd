// Judges the series of a run: fails if a series, with 95 % confidence, grew by more than its limit.
import { type Point, trendOf } from './trend.ts';

export const quantities = {
  'resident memory': { unit: 'MiB', share: 0.1, least: 8 },
  'live memory': { unit: 'MiB', share: 0.1, least: 4 },
  'file descriptors': { unit: '', share: 0.1, least: 5 },
  'active handles': { unit: '', share: 0.1, least: 5 },
  connections: { unit: '', share: 0.1, least: 3 },
  'event-loop delay (p99)': { unit: 'ms', share: 0.25, least: 5 },
  'latency (p99)': { unit: 'ms', share: 0.25, least: 20 },
} satisfies Record<string, { unit: string; share: number; least: number }>;

export type Quantity = keyof typeof quantities;

export interface Series {
  /** The measured object, such as `forms-0`, `Redis` or `requests: save`. */
  process: string;
  quantity: Quantity;
  points: Point[];
}

/**
 * Describes each series that grew by more than its limit, with 95 % confidence. The limit is a share of the series'
 * mean, but at least `least`.
 */
export function judge(series: Series[]): string[] {
  return series.flatMap(({ process, quantity, points }) => {
    const { mean, growth } = trendOf(points);
    const { unit, share, least } = quantities[quantity];
    const limit = Math.max(share * mean, least);
    if (growth.atLeast <= limit) return [];
    const [grown, least95, of] = [growth.value, growth.atLeast, mean].map((value) => value.toFixed(1));
    return [`${process}: ${quantity} grew by ${grown} ${unit} (at least ${least95}), with a mean of ${of}`];
  });
}
