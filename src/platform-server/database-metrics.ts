// The metrics whose values the platform server reads from its database at each scrape: the queues of jobs, the
// quarantine, and the difference of the clocks.
import type pg from 'pg';
import type prom from 'prom-client';
import type { Clock } from '../service/clock.ts';
import { createClockMetrics } from '../service/postgres/clock-metrics.ts';
import { createQuarantineMetrics } from '../service/quarantine/quarantine-metrics.ts';
import type { EventStore } from './events/store.ts';
import { createJobMetrics } from './job-metrics.ts';
import type { DeliveryStore } from './notifications/deliveries-store.ts';
import { createNoticeQuarantine } from './notifications/job-quarantine.ts';

export interface DatabaseMetricsOptions {
  registry: prom.Registry;
  pool: pg.Pool;
  clock: Clock;
  events: Pick<EventStore, 'waiting'>;
  deliveries: Pick<DeliveryStore, 'waiting'>;
}

export function createDatabaseMetrics({ registry, pool, clock, events, deliveries }: DatabaseMetricsOptions): void {
  createJobMetrics({ registry, clock, queues: { events: events.waiting, deliveries: deliveries.waiting } });
  createQuarantineMetrics({ registry, store: createNoticeQuarantine(pool) });
  createClockMetrics({ registry, pool, clock });
}
