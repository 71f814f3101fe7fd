// Counts the items in quarantine. Every pod exports the same numbers, so queries must aggregate them with max, not sum.
import prom from 'prom-client';
import type { QuarantineCount } from './quarantine-store.ts';

export interface QuarantineMetricsOptions {
  registry: prom.Registry;
  store: { counts(): Promise<QuarantineCount[]> };
}

/** Queries the counts at each scrape. The gauge is absent while the database is unavailable. */
export function createQuarantineMetrics({ registry, store }: QuarantineMetricsOptions): void {
  const items = new prom.Gauge({
    name: 'formgate_quarantined_items',
    help: 'Items in quarantine by kind and reason',
    labelNames: ['kind', 'reason'],
    registers: [registry],
    async collect() {
      const counts = await store.counts().catch(() => undefined);
      items.reset();
      for (const { kind, reason, count } of counts ?? []) items.set({ kind, reason }, count);
    },
  });
}
