// Limits concurrent lists of sessions. A list reads up to 100 sessions with their tokens over the connection that all
// session reads share, and its response can have megabytes, because a tenant chooses the roles of its people.
import { createFairQueue } from '../../service/limits/fair-queue.ts';

/** The members of a response that show when it has been sent. */
export interface SentResponse {
  readonly closed: boolean;
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

export interface ListQueueOptions {
  /** Milliseconds within which the client must read a response. After that, the connection is closed. */
  readMs?: number;
}

export type ListQueue = ReturnType<typeof createListQueue>;

/**
 * Returns a function that runs `work`, which sends the response, and waits until the client has read it. Throws Problem
 * `busy` if too many lists of the person or the tenant are running. A list that is read immediately takes milliseconds.
 */
export function createListQueue({ readMs = 30_000 }: ListQueueOptions = {}) {
  const queue = createFairQueue({
    slots: { total: 16, perTenant: 4, perMember: 2 },
    waiting: { total: 400, perTenant: 100, perMember: 10 },
    waitMs: 10_000,
    detail: 'Other lists of sessions are still running.',
    retryAfterSeconds: 5,
  });
  return (claim: { tenant: string; member: string }, response: SentResponse, work: () => Promise<void>) =>
    queue.run(claim, async () => {
      await work();
      await sent(response, readMs);
    });
}

async function sent(response: SentResponse, readMs: number): Promise<void> {
  if (response.closed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once('close', resolve);
  const timer = setTimeout(() => response.destroy(), readMs);
  await promise;
  clearTimeout(timer);
}
