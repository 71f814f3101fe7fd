// Judges the series of a run: none may grow by more than its limit, with 95 % confidence.
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
  /** What the series was measured on, such as `forms-0`, `Redis` or `saves`. */
  process: string;
  quantity: Quantity;
  points: Point[];
}

/** Describes each series that surely grew by more than its limit: a share of its mean, but not less than `least`. */
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
