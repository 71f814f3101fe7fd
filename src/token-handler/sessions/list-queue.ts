// Limits concurrent lists of sessions. A list reads up to 100 sessions with their tokens over the connection that all
// session reads share, and its response can have megabytes, because a tenant chooses the roles of its people.
import { createRequestQueue } from '../../service/limits/request-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';

export function createListQueue({ metrics }: { metrics: Pick<Metrics, 'queueRefusals'> }) {
  return createRequestQueue('session-lists', metrics, {
    slots: { total: 16, perTenant: 4, perMember: 2 },
    waiting: { total: 400, perTenant: 100, perMember: 10 },
    detail: 'Other lists of sessions are still running.',
  });
}
