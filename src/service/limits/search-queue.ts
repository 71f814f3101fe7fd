// Limits reads that return all of a tenant's objects of one kind, such as all its form definitions. Such a read holds
// memory and connections for much longer than any other request.
import type { Metrics } from '../operations/metrics.ts';
import { createRequestQueue } from './request-queue.ts';

export interface SearchQueueOptions {
  /** Name of the queue in metrics. */
  name: string;
  /** Detail of the problem `busy`. */
  detail: string;
  metrics: Pick<Metrics, 'queueRefusals'>;
}

/** Creates a queue that lets each tenant run one read at a time. */
export function createSearchQueue({ name, detail, metrics }: SearchQueueOptions) {
  return createRequestQueue(name, metrics, {
    slots: { total: 4, perTenant: 1, perMember: 1 },
    waiting: { total: 40, perTenant: 4, perMember: 4 },
    detail,
  });
}
