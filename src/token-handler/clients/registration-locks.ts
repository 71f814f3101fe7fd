// Serialises registrations and changes of one client, and limits the clients and the outstanding work of one tenant.
// Each lock is held until the end of the transaction.
import { Problem } from '../../service/http/problem.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { silenceFor } from '../../service/postgres/silent-connections.ts';
import type { Registration } from './registration.ts';

export type ClientKey = Pick<Registration, 'tenantId' | 'clientId'>;

/** Maximum time, in milliseconds, for a statement of a transaction that calls `lockClient`. */
export const longestClientWait = 25_000;
/** Limits of the pool for changes. A wait for a lock is one statement, during which Postgres sends nothing. */
export const changeSilence = silenceFor(longestClientWait);

/**
 * Serialises registrations and changes of one client. Takes an advisory lock, because the first registration has no
 * row. Raises the timeouts: the request that holds the lock may be calling the identity provider.
 */
export async function lockClient(db: Queryable, { tenantId, clientId }: ClientKey): Promise<void> {
  await db.query(`SET LOCAL lock_timeout = ${longestClientWait}; SET LOCAL statement_timeout = ${longestClientWait}`);
  const sql = "SELECT pg_advisory_xact_lock(hashtextextended('client registration ' || $1 || ' ' || $2, 0))";
  await db.query(sql, [tenantId, clientId]);
}

/**
 * Throws Problem `busy` if too much work of the tenant's earlier registrations is outstanding. Throws `conflict` if the
 * client is not registered yet, and the tenant has registered `most` other clients or is registering them. Locks the
 * tenant, so that only one of two concurrent registrations gets the last place. A transaction that also calls
 * `lockClient` must call it first, because that lock may be held for seconds. Without `most`, any number is allowed.
 */
export async function requirePlace(
  db: Queryable,
  { tenantId, clientId }: ClientKey,
  most: number | undefined,
): Promise<void> {
  await requireFewOutstanding(db, tenantId);
  if (most === undefined) return;
  await db.query("SELECT pg_advisory_xact_lock(hashtextextended('client registrations of ' || $1, 0))", [tenantId]);
  const { rows } = await db.query<{ isRegistered: boolean; others: number }>(placesSql, [tenantId, clientId]);
  const [places] = rows;
  if (!places || places.isRegistered || places.others < most) return;
  const detail = `The tenant has ${most} registered clients, and may not register further ones. Register one of these clients again, or ask the operator to raise TENANT_REGISTRATION_LIMIT.`;
  throw new Problem('conflict', detail);
}

// An attempt to register a client takes a place before the identity provider creates the client.
const placesSql = `
SELECT EXISTS (SELECT FROM client_registrations WHERE tenant_id = $1 AND client_id = $2) AS "isRegistered",
  (SELECT count(*)::int FROM (
    SELECT client_id FROM client_registrations WHERE tenant_id = $1
    UNION SELECT client_id FROM registration_attempts WHERE tenant_id = $1) AS taken
  WHERE client_id <> $2) AS others`;

/**
 * Maximum number of deletions, and of events, that earlier registrations of a tenant may have left to do. It is twice
 * what upkeep keeps of the failed ones (pending-work-store.ts), so that a tenant whose work fails can register again
 * after an hour. Concurrent registrations may exceed it by a few.
 */
const mostOutstanding = 2_000;

/**
 * Throws Problem `busy` if too much work of the tenant's earlier registrations is outstanding. Each registration adds a
 * deletion and an event, which no limit on the number of clients bounds.
 */
async function requireFewOutstanding(db: Queryable, tenantId: string): Promise<void> {
  const { rows } = await db.query<{ most: number }>(outstandingSql, [tenantId, mostOutstanding]);
  if ((rows[0]?.most ?? 0) < mostOutstanding) return;
  const detail = `The token handler is still deleting ${mostOutstanding} replaced clients of the tenant, or sending as many events. Register the client later.`;
  throw new Problem('busy', detail, { headers: { 'Retry-After': '60' } });
}

const outstandingSql = `SELECT greatest(
  (SELECT count(*) FROM (SELECT FROM client_deletions WHERE tenant_id = $1 LIMIT $2) AS deletions),
  (SELECT count(*) FROM (SELECT FROM client_events WHERE tenant_id = $1 LIMIT $2) AS events))::int AS most`;
