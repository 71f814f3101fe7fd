// What Prometheus learns about the reconciler. Its pods are gone before anybody could ask them, so the form service tells
// what their runs have recorded.
import prom from 'prom-client';
import type { Clock } from '../../service/clock.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { createRunStore, type RunHistory } from './run-store.ts';

interface Sample {
  labels: Record<string, string>;
  value: number;
}

interface GaugeOf {
  help: string;
  label?: string;
  samples(history: RunHistory, now: number): Sample[];
}

const seconds = (date: Date) => date.getTime() / 1_000;
const perPart = (history: RunHistory): [part: string, moment: Date | null][] => [
  ['expire', history.expirySuccess],
  ['clients', history.clientsSuccess],
];

const gauges: Record<string, GaugeOf> = {
  reconciler_last_success_timestamp_seconds: {
    help: 'End of the last run in which the part succeeded, in seconds since 1970',
    label: 'part',
    samples: (history) =>
      perPart(history).flatMap(([part, moment]) => (moment ? [{ labels: { part }, value: seconds(moment) }] : [])),
  },
  reconciler_last_run_timestamp_seconds: {
    help: 'End of the last run, in seconds since 1970',
    samples: ({ last }) => [{ labels: {}, value: seconds(last.finished) }],
  },
  reconciler_last_run_duration_seconds: {
    help: 'Duration of the last run',
    samples: ({ last }) => [{ labels: {}, value: (last.finished.getTime() - last.started.getTime()) / 1_000 }],
  },
  reconciler_last_run_outcome: {
    help: '1 for the outcome of the last run: succeeded, failed or stopped',
    label: 'outcome',
    samples: ({ last }) =>
      ['succeeded', 'failed', 'stopped'].map((outcome) => ({
        labels: { outcome },
        value: Number(last.outcome === outcome),
      })),
  },
  reconciler_last_run_count: {
    help: 'What the last run did, by outcome: forms (warned, locked, deleted …), rows (purged) and core clients (clients.…)',
    label: 'outcome',
    samples: ({ last }) => Object.entries(last.counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  },
  reconciler_oldest_overdue_draft_seconds: {
    help: 'For how long the longest waiting draft should have been locked, as the last run left it; 0 for none',
    samples: ({ oldestOverdue }, now) => [
      { labels: {}, value: oldestOverdue ? Math.max(now / 1_000 - seconds(oldestOverdue), 0) : 0 },
    ],
  },
  formgate_overdue_deletions: {
    help: 'Locked forms whose deletion is more than a day overdue, as the last run left them',
    samples: ({ overdueDeletions }) => (overdueDeletions === null ? [] : [{ labels: {}, value: overdueDeletions }]),
  },
  reconciler_core_clients: {
    help: 'CoreClient resources by condition and status, as the last run that looked found them',
    label: 'condition',
    samples: ({ conditions }) =>
      Object.entries(conditions ?? {}).map(([condition, value]) => ({ labels: { condition }, value })),
  },
};

/** The records are in the database: every pod tells the same. While the database is away, or before the first run, nothing. */
export function registerRunMetrics(options: { metrics: Metrics; pool: Queryable; clock: Clock }): void {
  const { metrics, pool, clock } = options;
  const store = createRunStore();
  let reading: Promise<RunHistory | undefined> | undefined;
  // The registry collects all gauges at once; they share one reading.
  const read = () => {
    reading ??= store
      .history(pool)
      .catch(() => undefined)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  for (const [name, { help, label, samples }] of Object.entries(gauges))
    new prom.Gauge({
      name,
      help,
      labelNames: label ? [label] : [],
      registers: [metrics.registry],
      async collect() {
        const history = await read();
        this.reset();
        // Emptied, a gauge without labels shows a zero, which nobody measured.
        if (!label) this.remove();
        if (!history) return;
        for (const { labels, value } of samples(history, clock().getTime())) this.set(labels, value);
      },
    });
}
