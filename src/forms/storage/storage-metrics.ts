// Defines the metrics of the storage of tenants. No metric has a label for the tenant; the log names the tenants.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createScrapedGauges } from '../../service/operations/scraped-metrics.ts';
import type { Refused } from './storage-limit.ts';
import { nearShare, type StorageStore } from './store.ts';

export interface StorageMetricsOptions {
  registry: Metrics['registry'];
  store: Pick<StorageStore, 'count'>;
  /** Bytes (TENANT_STORAGE_LIMIT). */
  limit: number;
}

/** Returns a function that counts a refused request. */
export function createStorageMetrics({ registry, store, limit }: StorageMetricsOptions): (request: Refused) => void {
  createScrapedGauges({
    registry,
    read: () => store.count({ near: limit * nearShare, full: limit }),
    gauges: {
      formgate_tenants_near_storage_limit: {
        help: 'Tenants whose forms occupy at least 80 % of TENANT_STORAGE_LIMIT',
        samples: ({ near }) => [{ labels: {}, value: near }],
      },
      formgate_tenants_over_storage_limit: {
        help: 'Tenants whose forms have reached TENANT_STORAGE_LIMIT, so that they can create no forms',
        samples: ({ full }) => [{ labels: {}, value: full }],
      },
    },
  });
  const refusals = new prom.Counter({
    name: 'formgate_storage_refusals_total',
    help: 'Requests for which the forms of the tenant occupied too much storage, by request. A repeated creation also counts, although it gets the response of the first one',
    labelNames: ['request'],
    registers: [registry],
  });
  const requests: Refused[] = ['create', 'save'];
  for (const request of requests) refusals.inc({ request }, 0);
  return (request) => refusals.inc({ request });
}
