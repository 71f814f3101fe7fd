// Limits reads that return all of a tenant's objects of one kind, such as all its form definitions. Such a read holds
// memory and connections for much longer than any other request.
import { createFairQueue, type FairQueue } from './fair-queue.ts';

/** Creates a queue that lets each tenant run one read at a time. `detail` is the detail of the problem `busy`. */
export function createSearchQueue(detail: string): FairQueue {
  return createFairQueue({
    slots: { total: 4, perTenant: 1, perMember: 1 },
    waiting: { total: 40, perTenant: 4, perMember: 4 },
    waitMs: 10_000,
    detail,
    retryAfterSeconds: 5,
  });
}
