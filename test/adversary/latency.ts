// Latencies of honest users by group of requests, with and without adversaries.
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
}

/** Returns the latencies by group, of the samples whose phase `isIn` accepts. */
export function latencies(samples: Sample[], isIn: (phase: string) => boolean): Record<string, GroupLatency> {
  return Object.fromEntries(
    Object.entries(groups).map(([group, kinds]) => {
      const values = samples
        .filter(({ kind, phase }) => kinds.includes(kind) && isIn(phase))
        .map(({ milliseconds }) => milliseconds);
      return [group, { count: values.length, p50: quantile(values, 0.5), p99: quantile(values, 0.99) }];
    }),
  );
}
