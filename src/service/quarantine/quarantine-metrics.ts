// Exports how many items are quarantined. The counts are read from the database at each scrape, so every pod of a service
// reports the same number: aggregate with max, not sum.
import prom from 'prom-client';
import type { Metrics } from '../operations/metrics.ts';
import type { QuarantineStore } from './quarantine-store.ts';

export function registerQuarantineMetrics(metrics: Metrics, store: Pick<QuarantineStore, 'counts'>): void {
  new prom.Gauge({
    name: 'formgate_quarantined_items',
    help: 'Items in quarantine by kind and reason',
    labelNames: ['kind', 'reason'],
    registers: [metrics.registry],
    async collect() {
      const counts = await store.counts().catch(() => undefined);
      this.reset();
      for (const { kind, reason, count } of counts ?? []) this.set({ kind, reason }, count);
    },
  });
}
