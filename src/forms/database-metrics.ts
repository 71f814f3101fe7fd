// The metrics whose values the form service reads from its database at each scrape: the runs of the reconciler, the
// quarantine, and the difference of the clocks.
import type pg from 'pg';
import type { Clock } from '../service/clock.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createClockMetrics } from '../service/postgres/clock-metrics.ts';
import { unsharedPool } from '../service/postgres/shared-pool.ts';
import { createQuarantineMetrics } from '../service/quarantine/quarantine-metrics.ts';
import { createRunMetrics } from './expiry/metrics.ts';
import { readRunHistory } from './expiry/run-store.ts';
import { createFormsQuarantine } from './quarantine/store.ts';

export interface DatabaseMetricsOptions {
  metrics: Pick<Metrics, 'registry'>;
  /** A pool that requests do not use, so that scrapes do not wait for requests. */
  pool: pg.Pool;
  clock: Clock;
}

export function createDatabaseMetrics({ metrics: { registry }, pool, clock }: DatabaseMetricsOptions): void {
  createRunMetrics({ registry, readHistory: () => readRunHistory(pool), clock });
  createQuarantineMetrics({ registry, store: createFormsQuarantine({ pool: unsharedPool(pool), clock }) });
  createClockMetrics({ registry, pool, clock });
}
