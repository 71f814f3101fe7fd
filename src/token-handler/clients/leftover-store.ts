// What registrations leave to be done: clients to delete, events to send, attempts without an end, texts sealed under an
// old key. Rows are claimed by pushing their next try into the future, so that many pods share the work, a crash loses
// none, and no transaction is open during a call. A quarantined row waits until infinity.
import type pg from 'pg';
import { type Queryable, withTransaction } from '../../service/postgres/postgres.ts';
import type { QuarantineCause } from '../../service/quarantine/quarantine.ts';
import { putInQuarantine } from '../../service/quarantine/quarantine-store.ts';
import { type KeyRing, KeyRingError } from '../keys/key-ring.ts';
import type { ManagedClient } from './access-registration.ts';
import { type RegistrationRow, rowColumns, tokenContext, toRegistration, toRow } from './registration-row.ts';

export interface Deletion extends Omit<ManagedClient, 'registrationAccessToken'> {
  id: string;
  /** Undefined where it is sealed under a key that is gone. */
  registrationAccessToken: string | undefined;
  tenantId: string;
  clientId: string;
  oidcClientId: string;
  attempts: number;
  refusals: number;
}

export interface PendingEvent {
  id: string;
  tenantId: string;
  name: string;
  payload: Record<string, unknown>;
  created: Date;
  attempts: number;
  refusals: number;
}

export interface LostAttempt {
  tenantId: string;
  clientId: string;
  realm: string;
  started: Date;
}

export interface Claim {
  now: Date;
  /** When a row may be claimed again, if nothing is heard of it. */
  until: Date;
  limit: number;
}

export interface Resealed {
  resealed: number;
  /** Sealed under a key that is gone. */
  unreadable: number;
}

export type LeftoverKind = 'deletion' | 'event';

export interface LeftoverStore {
  claimDeletions(claim: Claim): Promise<Deletion[]>;
  claimEvents(claim: Claim): Promise<PendingEvent[]>;
  done(kind: LeftoverKind, id: string): Promise<void>;
  /** `refusals` so far, the last try included. */
  retry(kind: LeftoverKind, id: string, next: { notBefore: Date; refusals: number }): Promise<void>;
  /** Tries it no more, until it is released. */
  quarantine(kind: LeftoverKind, row: Deletion | PendingEvent, cause: QuarantineCause, now: Date): Promise<void>;
  /** Neither done nor quarantined. */
  pending(): Promise<Record<LeftoverKind, number>>;
  /** Takes out the attempts begun before a moment: each is answered once, whoever asks. */
  takeLostAttempts(before: Date): Promise<LostAttempt[]>;
  /** Seals again what is sealed under another key than the current. */
  reseal(): Promise<Resealed>;
}

export const tables = { deletion: 'client_deletions', event: 'client_events' } as const;

export function createLeftoverStore({ pool, keys }: { pool: pg.Pool; keys: KeyRing }): LeftoverStore {
  async function claim<Row extends object>(kind: LeftoverKind, { now, until, limit }: Claim): Promise<Row[]> {
    // A client that is registered is never deleted, whatever led to the row.
    const spared =
      'AND NOT EXISTS (SELECT FROM client_registrations r WHERE r.tenant_id = t.tenant_id AND r.oidc_client_id = t.oidc_client_id)';
    const { rows } = await pool.query<Row>(
      `UPDATE ${tables[kind]} SET attempts = attempts + 1, not_before = $2
       WHERE id IN (SELECT id FROM ${tables[kind]} t WHERE not_before <= $1 ${kind === 'deletion' ? spared : ''}
         ORDER BY not_before LIMIT $3 FOR UPDATE SKIP LOCKED)
       RETURNING *`,
      [now, until, limit],
    );
    return rows;
  }

  return {
    claimDeletions: async (options) =>
      (await claim<RegistrationRow & { id: string; attempts: number; refusals: number }>('deletion', options)).map(
        (row) => ({
          id: row.id,
          tenantId: row.tenant_id,
          clientId: row.client_id,
          realm: row.realm,
          oidcClientId: row.oidc_client_id,
          registrationAccessToken: tryOpen(keys, row),
          registrationClientUri: row.registration_client_uri,
          attempts: row.attempts,
          refusals: row.refusals,
        }),
      ),
    claimEvents: async (options) =>
      (await claim<EventRow>('event', options)).map(({ tenant_id: tenantId, ...row }) => ({ ...row, tenantId })),
    async done(kind, id) {
      await pool.query(`DELETE FROM ${tables[kind]} WHERE id = $1`, [id]);
    },
    async retry(kind, id, { notBefore, refusals }) {
      await pool.query(`UPDATE ${tables[kind]} SET not_before = $2, refusals = $3 WHERE id = $1`, [
        id,
        notBefore,
        refusals,
      ]);
    },
    quarantine: (...given) => setAside(pool, ...given),
    async pending() {
      const { rows } = await pool.query<Record<LeftoverKind, number>>(
        `SELECT (SELECT count(*)::int FROM client_deletions WHERE not_before < 'infinity') AS deletion,
          (SELECT count(*)::int FROM client_events WHERE not_before < 'infinity') AS event`,
      );
      return rows[0] ?? { deletion: 0, event: 0 };
    },
    async takeLostAttempts(before) {
      const { rows } = await pool.query<Omit<RegistrationRow, 'revision'> & { started: Date }>(
        'DELETE FROM registration_attempts WHERE started < $1 RETURNING tenant_id, client_id, realm, started',
        [before],
      );
      return rows.map((row) => ({
        tenantId: row.tenant_id,
        clientId: row.client_id,
        realm: row.realm,
        started: row.started,
      }));
    },
    reseal: () => reseal(pool, keys),
  };
}

async function setAside(
  pool: pg.Pool,
  ...[kind, row, cause, now]: Parameters<LeftoverStore['quarantine']>
): Promise<void> {
  const { id: item, tenantId, attempts } = row;
  const about: Record<string, string> =
    'oidcClientId' in row ? { clientId: row.clientId, oidcClientId: row.oidcClientId } : { event: row.name };
  await withTransaction(pool, async (client) => {
    await client.query(`UPDATE ${tables[kind]} SET not_before = 'infinity', refusals = 0 WHERE id = $1`, [item]);
    await putInQuarantine(client, [{ kind: `client-${kind}`, item, tenantId, about, attempts, ...cause }], now);
  });
}

type EventRow = Omit<PendingEvent, 'tenantId'> & { tenant_id: string };

function tryOpen(keys: KeyRing, row: RegistrationRow): string | undefined {
  try {
    return keys.open(row.registration_access_token, tokenContext(row));
  } catch (error) {
    if (error instanceof KeyRingError) return undefined;
    throw error;
  }
}

async function reseal(pool: Queryable, keys: KeyRing): Promise<Resealed> {
  const current = `${keys.currentKey}.`;
  const { rows: registrations } = await pool.query<RegistrationRow>(
    `SELECT ${rowColumns} FROM client_registrations
     WHERE NOT starts_with(client_secret, $1) OR NOT starts_with(registration_access_token, $1) LIMIT 1000`,
    [current],
  );
  const { rows: deletions } = await pool.query<RegistrationRow & { id: string }>(
    'SELECT * FROM client_deletions WHERE NOT starts_with(registration_access_token, $1) LIMIT 1000',
    [current],
  );
  const work = [
    ...registrations.map((row) => () => resealRegistration(pool, keys, row)),
    ...deletions.map((row) => () => resealDeletion(pool, keys, row)),
  ];
  const result: Resealed = { resealed: 0, unreadable: 0 };
  for (const sealAgain of work) {
    try {
      await sealAgain();
      result.resealed += 1;
    } catch (error) {
      if (!(error instanceof KeyRingError)) throw error;
      result.unreadable += 1;
    }
  }
  return result;
}

async function resealRegistration(pool: Queryable, keys: KeyRing, row: RegistrationRow): Promise<void> {
  const sealed = toRow(keys, toRegistration(keys, row));
  // What has changed meanwhile is sealed under the current key already.
  await pool.query(
    `UPDATE client_registrations SET client_secret = $4, registration_access_token = $5
     WHERE tenant_id = $1 AND client_id = $2 AND oidc_client_id = $3 AND revision = $6`,
    [
      row.tenant_id,
      row.client_id,
      row.oidc_client_id,
      sealed.client_secret,
      sealed.registration_access_token,
      row.revision,
    ],
  );
}

async function resealDeletion(pool: Queryable, keys: KeyRing, row: RegistrationRow & { id: string }): Promise<void> {
  const context = tokenContext(row);
  const sealed = keys.seal(keys.open(row.registration_access_token, context), context);
  await pool.query('UPDATE client_deletions SET registration_access_token = $2 WHERE id = $1', [row.id, sealed]);
}
