// Limits the number of token requests that this process sends concurrently. If many sessions of one person are
// refreshed at the same time, Keycloak responds with 500 but still uses up their refresh tokens. Waiting refreshes
// share the slots fairly between realms, and within a realm between persons.
import { FairQueue, type RefusalReason, type Requester } from '../../service/limits/fair-queue.ts';
import type { RefreshMetrics } from './refresh-metrics.ts';
import type { Session } from './session.ts';

/** Number of realms that can use all of their slots at the same time. */
const busyRealms = 16;
const waiting = { total: 4_000, perTenant: 1_000, perMember: 250 };
/** Milliseconds that a refresh may wait for a slot. The request that needs the token has given up by then. */
const longestWait = 15_000;

/**
 * `concurrency` is the maximum number of concurrent token requests to one realm. At most half of them are for sessions
 * of the same person.
 */
export function createRefreshQueue(concurrency: number, { refusals }: Pick<RefreshMetrics, 'refusals'>): FairQueue {
  return new FairQueue({
    slots: { total: concurrency * busyRealms, perTenant: concurrency, perMember: Math.ceil(concurrency / 2) },
    waiting,
    waitMs: longestWait,
    detail: 'Too many sessions are being refreshed. Try again shortly.',
    retryAfterSeconds: 5,
    onRefused: (reason: RefusalReason) => refusals.inc({ reason }),
  });
}

export function requesterOfSession({ realm, user }: Pick<Session, 'realm' | 'user'>): Requester {
  return { tenant: realm, member: user.id };
}
