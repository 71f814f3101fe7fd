// The metrics of the outbox. Their labels contain kinds and outcomes, but no ids.
import prom from 'prom-client';
import type { Clock } from '../../service/clock.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createScrapedGauges, type ScrapedGauge } from '../../service/operations/scraped-metrics.ts';
import type { Delivered } from './delivery.ts';
import { type OutboxKind, outboxKinds } from './event-catalogue.ts';
import type { Backlog, OutboxStore } from './store.ts';

export interface OutboxMetrics {
  /**
   * Counts a delivery. `failed`: the service caused the failure. `rejected`: the row caused it. `duration` is in
   * milliseconds.
   */
  delivered(kind: OutboxKind, outcome: Delivered['outcome'] | 'failed' | 'rejected', duration: number): void;
}

const gauge = (help: string, value: (entry: Backlog) => number): ScrapedGauge<Backlog[]> => ({
  help,
  labels: ['kind'],
  samples: (backlog) =>
    outboxKinds.map((kind) => {
      const entry = backlog.find((one) => one.kind === kind);
      return { labels: { kind }, value: entry ? value(entry) : 0 };
    }),
});

const gauges = {
  formgate_outbox_undelivered: gauge('Outbox rows that are due and not delivered, by kind', ({ count }) => count),
  formgate_outbox_oldest_undelivered_seconds: gauge(
    'Age of the oldest outbox row that is due and not delivered, by kind: the lag of the dispatcher',
    ({ oldestSeconds }) => oldestSeconds,
  ),
  formgate_outbox_repeatedly_failed: gauge(
    'Outbox rows that ten or more attempts have not delivered, by kind',
    ({ failing }) => failing,
  ),
};

export interface OutboxMetricsOptions extends Pick<Metrics, 'registry'> {
  store: Pick<OutboxStore, 'backlog'>;
  clock: Clock;
}

export function createOutboxMetrics({ registry, store, clock }: OutboxMetricsOptions): OutboxMetrics {
  const outcomes = new prom.Counter({
    name: 'formgate_outbox_deliveries_total',
    help: 'Attempted deliveries of outbox rows by kind and outcome (accepted, skipped, postponed, failed, rejected)',
    labelNames: ['kind', 'outcome'],
    registers: [registry],
  });
  const durations = new prom.Histogram({
    name: 'formgate_outbox_delivery_duration_seconds',
    help: 'Duration of deliveries by kind, including retries of the request',
    labelNames: ['kind'],
    buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  });
  createScrapedGauges({ registry, gauges, read: () => store.backlog(clock()) });
  return {
    delivered(kind, outcome, duration) {
      outcomes.inc({ kind, outcome });
      durations.observe({ kind }, duration / 1000);
    },
  };
}
