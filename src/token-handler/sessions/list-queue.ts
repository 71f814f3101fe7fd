// Limits concurrent lists of sessions. A list reads up to 100 sessions with their tokens over the connection that all
// session reads share, and its response can have megabytes, because a tenant chooses the roles of its people.
import type { ServerResponse } from 'node:http';
import { type Claim, createFairQueue } from '../../service/limits/fair-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';

export interface ListQueueOptions {
  metrics: Pick<Metrics, 'queueRefusals'>;
  /** Milliseconds within which the client must read a response. After that, the connection is closed. */
  readMs?: number;
}

/**
 * Returns a function that runs `work`, which sends the response, and waits until the client has read it. Throws Problem
 * `busy` if too many lists of the person or the tenant are running. A list that is read immediately takes milliseconds.
 */
export function createListQueue({ metrics, readMs = 30_000 }: ListQueueOptions) {
  const queue = createFairQueue({
    slots: { total: 16, perTenant: 4, perMember: 2 },
    waiting: { total: 400, perTenant: 100, perMember: 10 },
    waitMs: 10_000,
    detail: 'Other lists of sessions are still running.',
    retryAfterSeconds: 5,
    onRefused: (reason) => metrics.queueRefusals.inc({ queue: 'session-lists', reason }),
  });
  return (claim: Claim, response: ServerResponse, work: () => Promise<void>) =>
    queue.run(claim, async () => {
      await work();
      await sent(response, readMs);
    });
}

async function sent(response: ServerResponse, readMs: number): Promise<void> {
  if (response.closed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once('close', resolve);
  const timer = setTimeout(() => response.destroy(), readMs);
  await promise;
  clearTimeout(timer);
}
