// Counts the items in quarantine.
import type prom from 'prom-client';
import { createScrapedGauges } from '../operations/scraped-metrics.ts';
import type { QuarantineCount } from './quarantine-store.ts';

export interface QuarantineMetricsOptions {
  registry: prom.Registry;
  store: { counts(): Promise<QuarantineCount[]> };
}

export function createQuarantineMetrics({ registry, store }: QuarantineMetricsOptions): void {
  createScrapedGauges({
    registry,
    read: () => store.counts(),
    gauges: {
      formgate_quarantined_items: {
        help: 'Items in quarantine by kind and reason',
        labels: ['kind', 'reason'],
        samples: (counts) => counts.map(({ kind, reason, count }) => ({ labels: { kind, reason }, value: count })),
      },
    },
  });
}
