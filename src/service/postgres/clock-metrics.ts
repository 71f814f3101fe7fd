// Measures, at each scrape, how wrong the clock of this process is.
import type prom from 'prom-client';
import type { Clock } from '../clock.ts';
import { createScrapedGauges } from '../operations/scraped-metrics.ts';
import { clockOffset } from './clock-offset.ts';
import type { Queryable } from './postgres.ts';

export interface ClockMetricsOptions {
  registry: prom.Registry;
  pool: Queryable;
  clock: Clock;
}

export function createClockMetrics({ registry, pool, clock }: ClockMetricsOptions): void {
  createScrapedGauges({
    registry,
    read: () => clockOffset(pool, clock),
    gauges: {
      formgate_clock_offset_seconds: {
        help: 'Time by which the clock of the process is ahead of that of Postgres; negative if it is behind',
        samples: (offset) => [{ labels: {}, value: offset / 1_000 }],
      },
    },
  });
}
