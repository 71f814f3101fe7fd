// Computes the latencies of honest users for each group of requests.
import { quantile } from '../bench/latency.ts';
import type { Kind, Sample } from './honest/recorder.ts';

const groups: Record<string, Kind[]> = {
  forms: ['create', 'send code', 'read', 'save', 'submit', 'list forms'],
  registers: ['read register', 'write register'],
  targets: ['target GET', 'target POST', 'download', 'upload', 'sessions'],
  'sign-in': ['sign-in'],
};

export interface GroupLatency {
  count: number;
  p50: number;
  p99: number;
  /** Bounds of the 95 % confidence interval of p99. */
  p99Interval: [low: number, high: number];
}

/** Returns the latencies of each group of requests. Uses only samples of the phases that `isIn` accepts. */
export function latencies(samples: Sample[], isIn: (phase: string) => boolean): Record<string, GroupLatency> {
  return Object.fromEntries(
    Object.entries(groups).map(([group, kinds]) => {
      const values = samples
        .filter(({ kind, phase }) => kinds.includes(kind) && isIn(phase))
        .map(({ milliseconds }) => milliseconds);
      const [p50, p99] = [quantile(values, 0.5), quantile(values, 0.99)];
      return [group, { count: values.length, p50, p99, p99Interval: intervalOf(values) }];
    }),
  );
}

/**
 * Returns the confidence interval of p99. The number of values below p99 has a binomial distribution, so the bounds are
 * the values at a lower and a higher rank (normal approximation). Without an interval, a single request that a busy
 * machine delays would decide the result, because the p99 of few values is close to their maximum.
 */
function intervalOf(values: number[]): [number, number] {
  const deviation = 1.96 * Math.sqrt((0.99 * 0.01) / Math.max(1, values.length));
  return [quantile(values, 0.99 - deviation), quantile(values, Math.min(1, 0.99 + deviation))];
}
