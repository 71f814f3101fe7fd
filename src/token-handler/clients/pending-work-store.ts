// Stores the pending work of registrations: clients to delete, events to send, and secrets sealed with an old key.
// Claiming a row does not lock it, but postpones its next attempt. Pods can therefore share the work, a crash loses no
// row, and no transaction is open during a call to another service. In a quarantined row, `not_before` is infinity.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { type KeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import type { QuarantineCause } from '../../service/quarantine/quarantine.ts';
import {
  createQuarantineStore,
  putInQuarantine,
  type QuarantineStore,
} from '../../service/quarantine/quarantine-store.ts';
import {
  openRegistration,
  openToken,
  type Registration,
  registrationColumns,
  type StoredRegistration,
  sealToken,
} from './registration.ts';
import { saveRegistration } from './registration-store.ts';

interface PendingWork {
  id: string;
  tenantId: string;
  attempts: number;
  /** Number of attempts that were refused because of the row's content. */
  refusals: number;
}

/** A client to delete at the identity provider. Its registration access token is sealed. */
export type Deletion = PendingWork &
  Pick<
    Registration,
    | 'clientId'
    | 'realm'
    | 'issuer'
    | 'clientName'
    | 'oidcClientId'
    | 'registrationAccessToken'
    | 'registrationClientUri'
  >;

export interface PendingEvent extends PendingWork {
  name: string;
  payload: Record<string, unknown>;
  created: Date;
}

export interface Claim {
  now: Date;
  /** A claimed row whose work is still not done at this time can be claimed again. */
  until: Date;
  limit: number;
}

export interface WorkRows {
  deletion: Deletion;
  event: PendingEvent;
}

export type WorkKind = keyof WorkRows;

const tables = { deletion: 'client_deletions', event: 'client_events' } as const;
const kinds = Object.keys(tables) as WorkKind[];
export const quarantineKind = (kind: WorkKind) => `client-${kind}`;

const deletionColumns = `id, tenant_id AS "tenantId", client_id AS "clientId", realm, issuer,
  client_name AS "clientName", oidc_client_id AS "oidcClientId",
  registration_access_token AS "registrationAccessToken", registration_client_uri AS "registrationClientUri",
  attempts, refusals`;
const columns = {
  deletion: deletionColumns,
  event: 'id, tenant_id AS "tenantId", name, payload, created, attempts, refusals',
};
/** Additional SQL conditions for claiming a row, keyed by kind. A client that is still registered is never deleted. */
const conditions = {
  deletion: `NOT EXISTS (SELECT FROM client_registrations r
    WHERE r.tenant_id = t.tenant_id AND r.oidc_client_id = t.oidc_client_id)`,
  event: 'true',
};

export type PendingWorkStore = ReturnType<typeof createPendingWorkStore>;

export function createPendingWorkStore({ pool, keys }: { pool: pg.Pool; keys: KeyRing }) {
  return {
    async claim<Kind extends WorkKind>(kind: Kind, { now, until, limit }: Claim): Promise<WorkRows[Kind][]> {
      // The first row of each tenant comes before the second row of any. Otherwise, a tenant with thousands of rows
      // would delay all others.
      const { rows } = await pool.query<WorkRows[Kind]>(
        `WITH due AS (
           SELECT id, row_number() OVER (PARTITION BY tenant_id ORDER BY not_before) AS nth
           FROM ${tables[kind]} t WHERE not_before <= $1 AND ${conditions[kind]}
         ), chosen AS (
           SELECT t.id FROM ${tables[kind]} t JOIN due USING (id) WHERE t.not_before <= $1
           ORDER BY due.nth, t.not_before LIMIT $3 FOR UPDATE OF t SKIP LOCKED
         )
         UPDATE ${tables[kind]} SET attempts = attempts + 1, not_before = $2
         WHERE id IN (SELECT id FROM chosen)
         RETURNING ${columns[kind]}`,
        [now, until, limit],
      );
      return rows;
    },
    /** Deletes a row whose work is done, and its entry in the quarantine. */
    async done(kind: WorkKind, id: string): Promise<void> {
      const sql = `WITH done AS (DELETE FROM ${tables[kind]} WHERE id = $1) DELETE FROM quarantine WHERE kind = $2 AND item = $3`;
      await pool.query(sql, [id, quarantineKind(kind), id]);
    },
    /** Postpones the row. `refusals` must include the last attempt, if it was refused. */
    async retry(kind: WorkKind, id: string, { notBefore, refusals }: { notBefore: Date; refusals: number }) {
      const sql = `UPDATE ${tables[kind]} SET not_before = $2, refusals = $3 WHERE id = $1`;
      await pool.query(sql, [id, notBefore, refusals]);
    },
    /**
     * Quarantines the row, so that it is not claimed again until it is released. Does nothing if the row was removed in
     * the meantime: an administrator may now provide the client to delete.
     */
    async quarantine(kind: WorkKind, row: Deletion | PendingEvent, cause: QuarantineCause, now: Date) {
      const { id: item, tenantId, attempts } = row;
      const about: Record<string, string> =
        'oidcClientId' in row ? { clientId: row.clientId, oidcClientId: row.oidcClientId } : { event: row.name };
      await withTransaction(pool, async (db) => {
        const sql = `UPDATE ${tables[kind]} SET not_before = 'infinity', refusals = 0 WHERE id = $1`;
        if ((await db.query(sql, [item])).rowCount === 0) return;
        await putInQuarantine(db, [{ kind: quarantineKind(kind), item, tenantId, about, attempts, ...cause }], now);
      });
    },
    /**
     * Removes all but the newest 1,000 rows of each kind and tenant that have failed or are quarantined, with their
     * entries in the quarantine. Returns the number of removed rows. Without this limit, a tenant whose identity
     * provider fails or refuses every deletion could fill the database.
     */
    async prune(): Promise<number> {
      let removed = 0;
      for (const kind of kinds) {
        const values = [mostFailed, quarantineKind(kind)];
        const { rows } = await pool.query<{ removed: number }>(pruneSql(tables[kind]), values);
        removed += rows[0]?.removed ?? 0;
      }
      return removed;
    },
    /** Returns for each kind how many rows are neither done nor quarantined. */
    async pending(): Promise<Record<WorkKind, number>> {
      const count = (kind: WorkKind) =>
        `(SELECT count(*)::int FROM ${tables[kind]} WHERE not_before < 'infinity') AS ${kind}`;
      const sql = `SELECT ${kinds.map(count)}`;
      const { rows } = await pool.query<Record<WorkKind, number>>(sql);
      return rows[0] ?? { deletion: 0, event: 0 };
    },
    /**
     * Seals secrets with the current key if they are sealed with another key, for at most 1,000 rows of each table.
     * Counts a row as `unreadable` if the key that sealed it is not in the key ring.
     */
    reseal: () => reseal(pool, keys),
  };
}

/** Maximum number of failed and quarantined rows of a kind that one tenant may have after `prune`. */
const mostFailed = 1_000;

const pruneSql = (table: string) => `
WITH ranked AS (
  SELECT id, row_number() OVER (PARTITION BY tenant_id ORDER BY created DESC) AS nth
  FROM ${table} WHERE attempts > 0 OR not_before = 'infinity'
), removed AS (
  DELETE FROM ${table} WHERE id IN (SELECT id FROM ranked WHERE nth > $1) RETURNING id
), entries AS (DELETE FROM quarantine WHERE kind = $2 AND item IN (SELECT id::text FROM removed))
SELECT count(*)::int AS removed FROM removed`;

async function reseal(pool: pg.Pool, keys: KeyRing) {
  const current = [`${keys.currentKey}.`];
  // Chooses rows at random. Unreadable rows stay, so 1,000 of them could otherwise be chosen every time.
  const { rows: registrations } = await pool.query<StoredRegistration>(
    `SELECT ${registrationColumns} FROM client_registrations
     WHERE NOT starts_with(client_secret, $1) OR NOT starts_with(registration_access_token, $1)
     ORDER BY random() LIMIT 1000`,
    current,
  );
  const { rows: deletions } = await pool.query<Deletion>(
    `SELECT ${deletionColumns} FROM client_deletions WHERE NOT starts_with(registration_access_token, $1)
     ORDER BY random() LIMIT 1000`,
    current,
  );
  const work = [
    // `saveRegistration` skips a row that has changed since it was read. The change has already sealed the row with the
    // current key.
    ...registrations.map((row) => () => saveRegistration(pool, keys, openRegistration(keys, row), 0)),
    ...deletions.map((row) => async () => {
      const sealed = sealToken(keys, row, openToken(keys, row));
      await pool.query('UPDATE client_deletions SET registration_access_token = $2 WHERE id = $1', [row.id, sealed]);
    }),
  ];
  const result = { resealed: 0, unreadable: 0 };
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

/**
 * The number of refusals that a row gets when it is released from the quarantine. The number exceeds any limit, so the
 * next refusal quarantines the row again.
 */
const spentRefusals = 1_000;

/** Returns the quarantine of the token handler's database. Released rows are due immediately. */
export function createWorkQuarantine({ pool, clock }: { pool: pg.Pool; clock: Clock }): QuarantineStore {
  return createQuarantineStore({
    pool: unsharedPool(pool),
    async resume(db, items) {
      for (const kind of kinds) {
        const ids = items.filter((item) => item.kind === quarantineKind(kind)).map(({ item }) => item);
        await db.query(
          `UPDATE ${tables[kind]} SET not_before = $2, refusals = $3
           WHERE id::text = ANY ($1) AND not_before = 'infinity'`,
          [ids, clock(), spentRefusals],
        );
      }
      return [];
    },
  });
}
