// What Prometheus learns about the outbox. Labels are kinds, lanes and outcomes, never ids.
import prom from 'prom-client';
import type { Clock } from '../../service/clock.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Delivered } from './delivery.ts';
import { type OutboxKind, outboxKinds } from './event-catalogue.ts';
import type { Backlog, OutboxStore } from './store.ts';

export interface OutboxMetrics {
  /** `failed`: the service is at fault; `rejected`: it refuses this row. Duration in milliseconds. */
  delivered(kind: OutboxKind, outcome: Delivered['outcome'] | 'failed' | 'rejected', duration: number): void;
}

/**
 * Depth and lag are read from the database when Prometheus asks, so every pod reports the same: take the maximum over
 * pods, not the sum. While the database is away they are absent, and the rest of the page still comes.
 */
export function createOutboxMetrics(options: {
  metrics: Metrics;
  store: Pick<OutboxStore, 'backlog'>;
  clock: Clock;
}): OutboxMetrics {
  const registers = [options.metrics.registry];
  const outcomes = new prom.Counter({
    name: 'outbox_deliveries_total',
    help: 'Deliveries tried by kind and outcome (accepted, skipped, failed, rejected)',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const durations = new prom.Histogram({
    name: 'outbox_delivery_duration_seconds',
    help: 'Duration of deliveries by kind, retries of the request included',
    labelNames: ['kind'],
    buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  registerBacklog(options, registers);
  return {
    delivered(kind, outcome, duration) {
      outcomes.inc({ kind, outcome });
      durations.observe({ kind }, duration / 1000);
    },
  };
}

type BacklogSource = { store: Pick<OutboxStore, 'backlog'>; clock: Clock };

const gauges: Record<string, { help: string; value(entry: Backlog): number }> = {
  outbox_undelivered: {
    help: 'Rows that are due and not delivered, by kind',
    value: ({ count }) => count,
  },
  outbox_oldest_undelivered_seconds: {
    help: 'Age of the oldest row that is due and not delivered, by kind: the lag of the relay',
    value: ({ oldestSeconds }) => oldestSeconds,
  },
  outbox_repeatedly_failed: {
    help: 'Rows that ten tries or more did not deliver, by kind',
    value: ({ failing }) => failing,
  },
};

function registerBacklog({ store, clock }: BacklogSource, registers: prom.Registry[]): void {
  let reading: Promise<Backlog[] | undefined> | undefined;
  // The registry collects all gauges at once; they share one reading.
  const read = () => {
    reading ??= store
      .backlog(clock())
      .catch(() => undefined)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  for (const [name, { help, value }] of Object.entries(gauges))
    new prom.Gauge({
      name,
      help,
      labelNames: ['kind'],
      registers,
      async collect() {
        const backlog = await read();
        this.reset();
        if (!backlog) return;
        for (const kind of outboxKinds) this.set({ kind }, 0);
        for (const entry of backlog) this.set({ kind: entry.kind }, value(entry));
      },
    });
}
