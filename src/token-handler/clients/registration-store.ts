// Registrations in Postgres. Secrets and tokens are sealed, each for its own row, and nothing is cached: every replica
// uses what was stored last. A replacement and what is left to do about it are one transaction.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type Queryable, withTransaction } from '../../service/postgres/postgres.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import type { Registration } from './registration.ts';
import {
  type RegistrationRow,
  rowColumns,
  type StoredRegistration,
  toRegistration,
  toRow,
} from './registration-row.ts';

export interface RegistrationStore {
  find(tenantId: string, clientId: string): Promise<Registration | undefined>;
  /** By the client's id at the access service, as its tokens and logout tokens name it. */
  findByOidcClientId(tenantId: string, oidcClientId: string): Promise<Registration | undefined>;
  /** What may be shown of all registrations of a tenant, by id of the configured client. */
  summaries(tenantId: string): Promise<Map<string, RegistrationSummary>>;
  /** Notes that a registration begins; answers the note's id. */
  begin(attempt: Pick<Registration, 'tenantId' | 'clientId' | 'realm'> & { started: Date }): Promise<string>;
  /** Forgets the note of a registration that made no client at the access service. */
  forget(attemptId: string): Promise<void>;
  /** Stores a registration. The one that it replaces is left to be deleted, and the event to be sent. */
  replace(registration: Registration, attemptId: string, event: ClientEvent): Promise<void>;
  /** Leaves a client that was registered, but is not stored, to be deleted; does nothing if it is stored after all. */
  discard(registration: Registration, attemptId: string, now: Date): Promise<void>;
  /** Lets `work` change a registration while no other change or replacement can; stores what it answers as `changed`. */
  change<T>(tenantId: string, clientId: string, work: ChangeWork<T>): Promise<T>;
  /** Stores a change that `change` could not commit, unless the registration has changed since. */
  save(registration: StoredRegistration): Promise<void>;
}

export interface RegistrationSummary {
  /** The client's id at the access service. */
  clientId: string;
  registeredAt: Date;
  redirectUris: string[];
}

export interface ClientEvent {
  name: string;
  payload: Record<string, unknown>;
}

export type ChangeWork<T> = (
  present: StoredRegistration | undefined,
) => Promise<{ result: T; changed?: StoredRegistration | undefined }>;

export interface RegistrationStoreOptions {
  pool: pg.Pool;
  /** For changes, which hold a connection during a call to the access service: sign-ins must not wait for those. */
  changePool: pg.Pool;
  keys: KeyRing;
}

export function createRegistrationStore({ pool, changePool, keys }: RegistrationStoreOptions): RegistrationStore {
  async function findBy(column: 'client_id' | 'oidc_client_id', tenantId: string, value: string) {
    const { rows } = await pool.query<RegistrationRow>(
      `SELECT ${rowColumns} FROM client_registrations WHERE tenant_id = $1 AND ${column} = $2`,
      [tenantId, value],
    );
    return rows[0] && toRegistration(keys, rows[0]);
  }

  return {
    find: (tenantId, clientId) => findBy('client_id', tenantId, clientId),
    findByOidcClientId: (tenantId, oidcClientId) => findBy('oidc_client_id', tenantId, oidcClientId),
    summaries: (tenantId) => readSummaries(pool, tenantId),
    async begin({ tenantId, clientId, realm, started }) {
      const id = randomUUID();
      await pool.query(
        'INSERT INTO registration_attempts (id, tenant_id, client_id, realm, started) VALUES ($1, $2, $3, $4, $5)',
        [id, tenantId, clientId, realm, started],
      );
      return id;
    },
    forget: (attemptId) => forgetAttempt(pool, attemptId),
    replace: (registration, attemptId, event) =>
      withTransaction(pool, async (client) => {
        await lockClient(client, registration);
        await leavePresentForDeletion(client, registration);
        await insertRegistration(client, keys, registration);
        await insertEvent(client, registration, event);
        await forgetAttempt(client, attemptId);
      }),
    discard: (registration, attemptId, now) =>
      withTransaction(pool, async (client) => {
        // A commit whose answer was lost may still be under way: it holds this lock.
        await lockClient(client, registration);
        await leaveForDeletion(client, keys, registration, now);
        await forgetAttempt(client, attemptId);
      }),
    change: (tenantId, clientId, work) =>
      withTransaction(changePool, async (client) => {
        await waitLonger(client);
        const { rows } = await client.query<RegistrationRow>(
          `SELECT ${rowColumns} FROM client_registrations WHERE tenant_id = $1 AND client_id = $2 FOR UPDATE`,
          [tenantId, clientId],
        );
        const { result, changed } = await work(rows[0] && toRegistration(keys, rows[0]));
        if (changed) await save(client, keys, changed);
        return result;
      }),
    save: (registration) => save(pool, keys, registration),
  };
}

async function readSummaries(pool: Queryable, tenantId: string): Promise<Map<string, RegistrationSummary>> {
  const { rows } = await pool.query<RegistrationRow>(
    'SELECT client_id, oidc_client_id, registered_at, redirect_uris FROM client_registrations WHERE tenant_id = $1',
    [tenantId],
  );
  return new Map(
    rows.map((row) => [
      row.client_id,
      { clientId: row.oidc_client_id, registeredAt: row.registered_at, redirectUris: row.redirect_uris },
    ]),
  );
}

/** A change lasts as long as its calls to the access service, which is longer than what statements usually wait. */
async function waitLonger(client: Queryable): Promise<void> {
  await client.query("SET LOCAL lock_timeout = '25s'; SET LOCAL statement_timeout = '25s'");
}

/** Registrations of one client go one after the other, the first of all included, which has no row to lock. */
async function lockClient(client: Queryable, { tenantId, clientId }: Registration): Promise<void> {
  await waitLonger(client);
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended('client registration ' || $1 || ' ' || $2, 0))", [
    tenantId,
    clientId,
  ]);
}

async function leavePresentForDeletion(client: Queryable, registration: Registration): Promise<void> {
  await client.query(
    `WITH old AS (DELETE FROM client_registrations WHERE tenant_id = $1 AND client_id = $2 RETURNING *)
     INSERT INTO client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token,
       registration_client_uri, created, not_before)
     SELECT tenant_id, client_id, realm, oidc_client_id, registration_access_token, registration_client_uri, $3, $3
     FROM old`,
    [registration.tenantId, registration.clientId, registration.registeredAt],
  );
}

async function insertRegistration(client: Queryable, keys: KeyRing, registration: Registration): Promise<void> {
  const row = toRow(keys, registration);
  await client.query(
    `INSERT INTO client_registrations (tenant_id, client_id, realm, oidc_client_id, client_secret,
       registration_access_token, registration_client_uri, redirect_uris, registered_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      row.tenant_id,
      row.client_id,
      row.realm,
      row.oidc_client_id,
      row.client_secret,
      row.registration_access_token,
      row.registration_client_uri,
      JSON.stringify(row.redirect_uris),
      row.registered_at,
    ],
  );
}

async function insertEvent(client: Queryable, registration: Registration, event: ClientEvent): Promise<void> {
  await client.query(
    'INSERT INTO client_events (id, tenant_id, name, payload, created, not_before) VALUES ($1, $2, $3, $4, $5, $5)',
    [randomUUID(), registration.tenantId, event.name, JSON.stringify(event.payload), registration.registeredAt],
  );
}

async function leaveForDeletion(
  client: Queryable,
  keys: KeyRing,
  registration: Registration,
  now: Date,
): Promise<void> {
  const row = toRow(keys, registration);
  await client.query(
    `INSERT INTO client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token,
       registration_client_uri, created, not_before)
     SELECT $1, $2, $3, $4, $5, $6, $7, $7
     WHERE NOT EXISTS (SELECT FROM client_registrations WHERE tenant_id = $1 AND oidc_client_id = $4)
       AND NOT EXISTS (SELECT FROM client_deletions WHERE tenant_id = $1 AND oidc_client_id = $4)`,
    [
      row.tenant_id,
      row.client_id,
      row.realm,
      row.oidc_client_id,
      row.registration_access_token,
      row.registration_client_uri,
      now,
    ],
  );
}

async function forgetAttempt(client: Queryable, id: string): Promise<void> {
  await client.query('DELETE FROM registration_attempts WHERE id = $1', [id]);
}

async function save(client: Queryable, keys: KeyRing, registration: StoredRegistration): Promise<void> {
  const row = toRow(keys, registration);
  await client.query(
    `UPDATE client_registrations SET client_secret = $5, registration_access_token = $6, registration_client_uri = $7,
       redirect_uris = $8, revision = revision + 1
     WHERE tenant_id = $1 AND client_id = $2 AND oidc_client_id = $3 AND revision = $4`,
    [
      row.tenant_id,
      row.client_id,
      row.oidc_client_id,
      registration.revision,
      row.client_secret,
      row.registration_access_token,
      row.registration_client_uri,
      JSON.stringify(row.redirect_uris),
    ],
  );
}
