// Stores registrations in Postgres. Caches nothing, so every pod uses the latest registration. One transaction replaces
// a registration, stores its event, and schedules the deletion of the replaced client.
import { randomUUID } from 'node:crypto';
import type { Tenant } from '../../service/auth/identity.ts';
import { Problem } from '../../service/http/problem.ts';
import { type KeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import type { Requester } from '../../service/limits/fair-queue.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import {
  openRegistration,
  type Registration,
  type RegistrationEvent,
  type RegistrationSummary,
  registrationColumns,
  type StoredRegistration,
  sealRegistration,
} from './registration.ts';
import { type ClientKey, lockClient, requirePlace } from './registration-locks.ts';

/** `find` and `change` throw Problem `unavailable` if the key that sealed the registration is not in the key ring. */
export interface RegistrationStore {
  find(tenantId: string, clientId: string): Promise<Registration | undefined>;
  /** Returns the public fields of the registrations of these clients in the tenant's realm, keyed by client id. */
  summaries(tenant: Tenant, clientIds: readonly string[]): Promise<Map<string, RegistrationSummary>>;
  /** Records the start of an attempt to register. Throws the Problems of `requirePlace`. */
  begin(attempt: Owner & { started: Date; isLimited: boolean }): Promise<Attempt>;
  /** Removes an attempt that has created no client at the identity provider. */
  forget(attemptId: string, owner: ClientKey): Promise<void>;
  /** Records that an attempt failed but may have created a client. */
  giveUp(attemptId: string, owner: ClientKey): Promise<void>;
  /** Stores a registration and its event, and schedules the deletion of the registration that it replaces. */
  replace(registration: Registration, attemptId: string, event: RegistrationEvent): Promise<void>;
  /** Like `replace`, for a provided client. Throws the Problems of `begin`. */
  provide(registration: Registration, event: RegistrationEvent, limit: { isLimited: boolean }): Promise<void>;
  /**
   * Schedules the deletion of a client that could not be stored, or records it as a leftover if it has no token. Does
   * nothing if the client was stored after all.
   */
  discard(registration: Registration, attemptId: string, now: Date): Promise<void>;
  /** Locks the registration while `work` runs. If `work` returns a registration as `changed`, stores it. */
  change<T>(tenantId: string, clientId: string, work: ChangeWork<T>): Promise<T>;
  /**
   * Stores a change that `change` failed to commit. Does nothing if the registration has changed since then, unless the
   * only change is that the former token was recorded as lost.
   */
  save(registration: StoredRegistration): Promise<void>;
}

export type Owner = Pick<Registration, 'tenantId' | 'clientId' | 'realm' | 'issuer'>;

export interface Attempt {
  id: string;
  /** Name of the client at the identity provider. It contains the attempt's id, so no two attempts share a name. */
  clientName: string;
}

export type ChangeWork<T> = (
  present: StoredRegistration | undefined,
) => Promise<{ result: T; changed?: StoredRegistration | undefined }>;

export interface RegistrationStoreOptions {
  pool: SharedPool;
  /** Connections for changes to registrations, which hold a connection while they call the identity provider. */
  changePool: SharedPool;
  keys: KeyRing;
  log: Logger;
  metrics: Pick<Metrics, 'dependencyFailures'>;
  /** Returns the issuer that the operator has mapped to the tenant of this realm, if there is one. */
  mappedIssuer(realm: string): string | undefined;
  /** Maximum number of clients that a tenant may register, without those for which `isLimited` is false. */
  mostOfTenant: number;
}

export function createRegistrationStore(options: RegistrationStoreOptions): RegistrationStore {
  const { pool, changePool, keys, mappedIssuer, mostOfTenant } = options;
  // Ignores registrations at another identity provider: their secrets must not be sent to the current one.
  const isCurrent = ({ realm, issuer }: Pick<Registration, 'realm' | 'issuer'>) =>
    issuer === (mappedIssuer(realm) ?? null);
  const openCurrent = ([row]: StoredRegistration[]) => (row && isCurrent(row) ? open(options, row) : undefined);
  return {
    async find(tenantId, clientId) {
      const requester = requesterOf({ tenantId, clientId });
      return openCurrent((await pool.query<StoredRegistration>(requester, findSql, [tenantId, clientId])).rows);
    },
    async summaries({ id: tenantId, realm: current }, clientIds) {
      type Row = RegistrationSummary & Pick<Registration, 'realm' | 'issuer'> & { id: string };
      const { rows } = await pool.query<Row>(requesterOf({ tenantId, clientId: '' }), listSql, [tenantId, clientIds]);
      const shown = rows.filter((row) => row.realm === current && isCurrent(row));
      return new Map(shown.map(({ id, realm: _realm, issuer: _issuer, ...summary }) => [id, summary]));
    },
    async begin({ tenantId, clientId, realm, issuer, started, isLimited }) {
      const id = randomUUID();
      const clientName = `${clientId} (registration ${id})`;
      await pool.transaction(requesterOf({ tenantId, clientId }), async (db) => {
        await requirePlace(db, { tenantId, clientId }, isLimited ? mostOfTenant : undefined);
        await db.query(beginSql, [id, tenantId, clientId, realm, issuer, clientName, started]);
      });
      return { id, clientName };
    },
    async forget(attemptId, owner) {
      await pool.query(requesterOf(owner), forgetSql, [attemptId]);
    },
    async giveUp(attemptId, owner) {
      await pool.query(requesterOf(owner), 'UPDATE registration_attempts SET failed = true WHERE id = $1', [attemptId]);
    },
    replace: (registration, attemptId, event) =>
      changePool.transaction(requesterOf(registration), async (db) => {
        await lockClient(db, registration);
        await replaceRegistration(db, keys, registration, event);
        await db.query(forgetSql, [attemptId]);
      }),
    provide: (registration, event, { isLimited }) =>
      changePool.transaction(requesterOf(registration), async (db) => {
        await lockClient(db, registration);
        await requirePlace(db, registration, isLimited ? mostOfTenant : undefined);
        await replaceRegistration(db, keys, registration, event);
        await db.query(adoptSql, [registration.tenantId, registration.oidcClientId]);
      }),
    discard: (registration, attemptId, now) =>
      changePool.transaction(requesterOf(registration), async (db) => {
        // Waits for the commit of `replace`, which holds this lock. The commit can succeed after the connection breaks.
        await lockClient(db, registration);
        const sql = registration.management === 'kept' ? discardSql : recordSql;
        await db.query(sql, [asJson(keys, registration), now]);
        await db.query(forgetSql, [attemptId]);
      }),
    change: (tenantId, clientId, work) =>
      changePool.transaction(requesterOf({ tenantId, clientId }), async (db) => {
        // Without this lock, a statement that waits for `replace` would not see the new row.
        await lockClient(db, { tenantId, clientId });
        const { rows } = await db.query<StoredRegistration>(`${findSql} FOR UPDATE`, [tenantId, clientId]);
        const { result, changed } = await work(openCurrent(rows));
        if (changed) await saveRegistration(db, keys, changed, 1);
        return result;
      }),
    async save(registration) {
      await pool.query(requesterOf(registration), saveSql, [asJson(keys, registration), 1, true]);
    },
  };
}

async function replaceRegistration(
  db: Queryable,
  keys: KeyRing,
  registration: Registration,
  { name, payload }: RegistrationEvent,
): Promise<void> {
  const { tenantId, clientId, registeredAt, oidcClientId } = registration;
  await db.query(replaceSql, [tenantId, clientId, registeredAt, oidcClientId]);
  await db.query(insertSql, [asJson(keys, registration)]);
  await db.query(eventSql, [randomUUID(), tenantId, name, JSON.stringify(payload), registeredAt]);
}

const requesterOf = ({ tenantId, clientId }: ClientKey): Requester => ({ tenant: tenantId, member: clientId });

/**
 * Stores a registration if its revision is still current. Adds `step` to the revision: 0 if only the sealing key
 * changes.
 */
export async function saveRegistration(
  db: Queryable,
  keys: KeyRing,
  registration: StoredRegistration,
  step: 0 | 1,
): Promise<void> {
  await db.query(saveSql, [asJson(keys, registration), step, false]);
}

function open({ keys, log, metrics }: RegistrationStoreOptions, row: StoredRegistration): StoredRegistration {
  try {
    return openRegistration(keys, row);
  } catch (error) {
    if (!(error instanceof KeyRingError)) throw error;
    const { tenantId: tenant, clientId: client, oidcClientId } = row;
    metrics.dependencyFailures.inc({ dependency: 'key-ring', kind: 'registration' });
    log.error({ tenant, client, oidcClientId, err: error }, 'stored registration cannot be decrypted with KEY_RING');
    const detail = "The client's registration cannot be read. An administrator has to register the client again.";
    throw new Problem('unavailable', detail, { cause: error });
  }
}

const findSql = `SELECT ${registrationColumns} FROM client_registrations WHERE tenant_id = $1 AND client_id = $2`;

const forgetSql = 'DELETE FROM registration_attempts WHERE id = $1';

const beginSql =
  'INSERT INTO registration_attempts (id, tenant_id, client_id, realm, issuer, client_name, started) VALUES ($1, $2, $3, $4, $5, $6, $7)';

const listSql = `SELECT client_id AS id, oidc_client_id AS "clientId", registered_at AS "registeredAt",
  redirect_uris AS "redirectUris", management, realm, issuer FROM client_registrations WHERE tenant_id = $1 AND client_id = ANY ($2)`;

const deletionColumns =
  'tenant_id, client_id, realm, issuer, client_name, oidc_client_id, registration_access_token, registration_client_uri';

const replaceSql = `
WITH old AS (DELETE FROM client_registrations WHERE tenant_id = $1 AND client_id = $2 RETURNING *),
deletion AS (
  INSERT INTO client_deletions (${deletionColumns}, created, not_before)
  SELECT ${deletionColumns}, $3, $3 FROM old WHERE management = 'kept' AND oidc_client_id <> $4)
INSERT INTO client_leftovers (tenant_id, client_id, realm, issuer, client_name, oidc_client_id,
  registration_client_uri, reason, created)
SELECT tenant_id, client_id, realm, issuer, coalesce(client_name, client_id), oidc_client_id,
  nullif(registration_client_uri, ''), CASE management WHEN 'lost' THEN 'token-lost' ELSE 'no-token' END, $3
FROM old WHERE management IN ('lost', 'unsupported') AND oidc_client_id <> $4`;

/** Cancels the deletion of a client that an administrator now provides, because such a client is never deleted. */
const adoptSql = `
WITH deletion AS (DELETE FROM client_deletions WHERE tenant_id = $1 AND oidc_client_id = $2 RETURNING id),
quarantined AS (DELETE FROM quarantine q USING deletion d WHERE q.kind = 'client-deletion' AND q.item = d.id::text)
DELETE FROM client_leftovers WHERE tenant_id = $1 AND oidc_client_id = $2`;

/** SQL that converts the parameter `$1`, a registration as JSON (`asJson`), into a row named `given`. */
const given = 'jsonb_populate_record(NULL::client_registrations, $1) AS given';

/** Returns a sealed registration as JSON, with column names as keys. */
function asJson(keys: KeyRing, registration: Registration): string {
  const column = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const sealed = Object.entries(sealRegistration(keys, registration));
  return JSON.stringify(Object.fromEntries(sealed.map(([name, value]) => [column(name), value])));
}

const insertSql = `
INSERT INTO client_registrations (${deletionColumns}, client_secret, redirect_uris, registered_at, management, authentication)
SELECT ${deletionColumns}, client_secret, redirect_uris, registered_at, management, authentication FROM ${given}`;

const discardSql = `
INSERT INTO client_deletions (${deletionColumns}, created, not_before) SELECT ${deletionColumns}, $2, $2 FROM ${given}
WHERE NOT EXISTS (SELECT FROM client_registrations r
    WHERE r.tenant_id = given.tenant_id AND r.oidc_client_id = given.oidc_client_id)
  AND NOT EXISTS (SELECT FROM client_deletions d
    WHERE d.tenant_id = given.tenant_id AND d.oidc_client_id = given.oidc_client_id)`;

const recordSql = `
INSERT INTO client_leftovers (tenant_id, client_id, realm, issuer, client_name, oidc_client_id, reason, created)
SELECT tenant_id, client_id, realm, issuer, coalesce(client_name, client_id), oidc_client_id, 'no-token', $2 FROM ${given}
WHERE NOT EXISTS (SELECT FROM client_registrations r
    WHERE r.tenant_id = given.tenant_id AND r.oidc_client_id = given.oidc_client_id)`;

const saveSql = `
UPDATE client_registrations r SET client_secret = given.client_secret, redirect_uris = given.redirect_uris,
  registration_access_token = given.registration_access_token, registration_client_uri = given.registration_client_uri,
  management = given.management, revision = r.revision + $2 FROM ${given}
WHERE r.tenant_id = given.tenant_id AND r.client_id = given.client_id AND r.oidc_client_id = given.oidc_client_id
  AND (r.revision = given.revision OR ($3 AND r.management = 'lost' AND r.revision = given.revision + 1))`;

const eventSql =
  'INSERT INTO client_events (id, tenant_id, name, payload, created, not_before) VALUES ($1, $2, $3, $4, $5, $5)';
