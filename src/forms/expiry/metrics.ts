// The metrics of the reconciler. Its pods end before Prometheus can scrape them, so the form service exports the
// recorded results of the runs.
import type { Clock } from '../../service/clock.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createScrapedGauges, type Sample, type ScrapedGauge } from '../../service/operations/scraped-metrics.ts';
import type { RunHistory } from './run-store.ts';

const seconds = (date: Date) => date.getTime() / 1_000;

type Reading = RunHistory & { now: number };

/** The parts of a reconciler run, as values of the label `part`. */
export const runParts = ['expire', 'clients'] as const;
type Part = (typeof runParts)[number];

/** Returns the time of the last success, or 0 if there is none. Returns nothing for a part that is turned off. */
function successOf(part: Part, isIncluded: boolean, success: Date | null): Sample[] {
  return isIncluded ? [{ labels: { part }, value: success ? seconds(success) : 0 }] : [];
}

const gauges: Record<string, ScrapedGauge<Reading>> = {
  formgate_reconciler_last_success_timestamp_seconds: {
    help: 'End of the last run in which the part succeeded, in seconds since 1970; 0 if no recorded run succeeded; absent after 20 runs that did not include the part',
    labels: ['part'],
    samples: ({ expiryIncluded, expirySuccess, clientsIncluded, clientsSuccess }) => [
      ...successOf('expire', expiryIncluded, expirySuccess),
      ...successOf('clients', clientsIncluded, clientsSuccess),
    ],
  },
  formgate_reconciler_last_run_timestamp_seconds: {
    help: 'End of the last run of the reconciler, in seconds since 1970',
    samples: ({ last }) => [{ labels: {}, value: seconds(last.finished) }],
  },
  formgate_reconciler_last_run_duration_seconds: {
    help: 'Duration of the last run of the reconciler',
    samples: ({ last }) => [{ labels: {}, value: (last.finished.getTime() - last.started.getTime()) / 1_000 }],
  },
  formgate_reconciler_last_run_outcome: {
    help: '1 for the outcome of the last run of the reconciler: succeeded, failed or stopped',
    labels: ['outcome'],
    samples: ({ last }) =>
      ['succeeded', 'failed', 'stopped'].map((outcome) => ({
        labels: { outcome },
        value: Number(last.outcome === outcome),
      })),
  },
  formgate_reconciler_last_run_count: {
    help: 'Results of the last run of the reconciler, by outcome: forms (warned, locked, deleted …), rows (purged), and core clients (outcomes that begin with clients.)',
    labels: ['outcome'],
    samples: ({ last }) => Object.entries(last.counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  },
  formgate_oldest_overdue_draft_seconds: {
    help: 'Seconds by which the lock of the most overdue draft is late, for the drafts that were overdue after the last run; 0 if there were none',
    samples: ({ oldestOverdue, now }) => [
      { labels: {}, value: oldestOverdue ? Math.max(now - seconds(oldestOverdue), 0) : 0 },
    ],
  },
  formgate_overdue_deletions: {
    help: 'Locked forms whose deletion is more than a day overdue after the last run',
    samples: ({ overdueDeletions }) => (overdueDeletions === null ? [] : [{ labels: {}, value: overdueDeletions }]),
  },
  formgate_forms: {
    help: 'Forms by status, counted by the last run of the reconciler that included the expiry',
    labels: ['status'],
    samples: ({ formsByStatus }) =>
      Object.entries(formsByStatus ?? {}).map(([status, value]) => ({ labels: { status }, value })),
  },
  formgate_reconciler_core_clients: {
    help: 'CoreClient resources by condition and its status, after the last run that read them',
    labels: ['condition'],
    samples: ({ conditions }) =>
      Object.entries(conditions ?? {}).map(([condition, value]) => ({ labels: { condition }, value })),
  },
};

export interface RunMetricsOptions extends Pick<Metrics, 'registry'> {
  /** Returns the recorded results of the runs; undefined before the first run. */
  readHistory(): Promise<RunHistory | undefined>;
  clock: Clock;
}

export function createRunMetrics({ registry, readHistory, clock }: RunMetricsOptions): void {
  createScrapedGauges({
    registry,
    gauges,
    async read() {
      const history = await readHistory();
      return history && { ...history, now: seconds(clock()) };
    },
  });
}
