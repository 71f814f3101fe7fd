// Defines the metric that shows whether the search by applicant address finds every form.
import type { Metrics } from '../../service/operations/metrics.ts';
import { createScrapedGauges } from '../../service/operations/scraped-metrics.ts';

export interface AddressMetricsOptions extends Pick<Metrics, 'registry'> {
  isComplete(): Promise<boolean>;
}

export function createAddressMetrics({ registry, isComplete }: AddressMetricsOptions): void {
  createScrapedGauges({
    registry,
    read: isComplete,
    gauges: {
      formgate_address_index_complete: {
        help: '1 if the search by address finds every form; 0 while the addresses of existing forms are being indexed',
        samples: (complete) => [{ labels: {}, value: Number(complete) }],
      },
    },
  });
}
