// Fills gaps in the index of applicants' addresses. A form is missing from the index if it was created before the index
// existed, by a pod of an older version, or under another key. A walk visits all forms in the order of their ids, in
// short transactions that do not block saves.
import type pg from 'pg';
import { later } from '../../service/clock.ts';
import { isObject } from '../../service/json-value.ts';
import { type Queryable, withTransaction } from '../../service/postgres/postgres.ts';
import type { Channel } from '../forms/form.ts';
import type { AddressHashes } from './address.ts';

export interface WalkBatch {
  /** Number of forms in this batch. */
  walked: number;
  /** Number of forms in this batch whose addresses were missing from the index. */
  added: number;
  /** True if no form is left after this batch. The walk is then complete. */
  isLast: boolean;
}

export interface WalkOptions {
  now: Date;
  limit: number;
  /** Milliseconds from the end of a walk until the next walk may begin. */
  interval: number;
  /** Milliseconds. The next walk visits again the forms that were younger than this at the end of a walk. */
  overlap: number;
}

export type AddressIndexStore = ReturnType<typeof createAddressIndexStore>;

/** Restarts the walk from the first form if the index was built under another key. Otherwise, updates no row. */
const claimSql = `
UPDATE address_index SET key_id = $1, position = DEFAULT, complete = false, next_walk = DEFAULT
WHERE key_id IS DISTINCT FROM $1`;

// A walk that is due after $3 was scheduled by a pod whose clock was ahead, and begins now.
const dueSql = `
SELECT position FROM address_index WHERE key_id = $1 AND (next_walk <= $2 OR next_walk > $3) FOR UPDATE SKIP LOCKED`;

// FOR KEY SHARE waits only for deletions, not for saves. It prevents the deletion of the selected forms until the
// transaction has written their addresses.
const formsSql = `
SELECT id, tenant_id AS "tenantId", applicant -> 'channels' AS channels FROM forms
WHERE id > $1 ORDER BY id LIMIT $2 FOR KEY SHARE`;

const staleSql = `
DELETE FROM applicant_addresses a WHERE form_id = ANY ($1) AND NOT EXISTS (
  SELECT FROM unnest($2::uuid[], $3::bytea[]) AS known (form_id, hash)
  WHERE known.form_id = a.form_id AND known.hash = a.address_hash)`;

const addSql = `
INSERT INTO applicant_addresses (form_id, address_hash)
SELECT * FROM unnest($1::uuid[], $2::bytea[]) ON CONFLICT DO NOTHING RETURNING form_id`;

interface WalkedForm {
  id: string;
  tenantId: string;
  /** The stored channels, which another program may have written. If they are not a list, the walk must not fail. */
  channels: unknown;
}

const isChannel = (value: unknown): value is Channel =>
  isObject(value) && typeof value.channel === 'string' && typeof value.address === 'string';

const channelsIn = (stored: unknown): Channel[] => (Array.isArray(stored) ? stored.filter(isChannel) : []);

export function createAddressIndexStore(pool: pg.Pool, hashes: AddressHashes) {
  async function rehash(db: Queryable, forms: readonly WalkedForm[]): Promise<number> {
    const rows = forms.flatMap(({ id, tenantId, channels }) =>
      hashes.all(tenantId, channelsIn(channels)).map((hash) => ({ id, hash })),
    );
    const [ids, values] = [rows.map(({ id }) => id), rows.map(({ hash }) => hash)];
    await db.query(staleSql, [forms.map(({ id }) => id), ids, values]);
    const { rows: added } = await db.query<{ form_id: string }>(addSql, [ids, values]);
    return new Set(added.map(({ form_id }) => form_id)).size;
  }

  return {
    /**
     * Makes this process's key the key of the index. The pod that started last sets the key, so a rotation of the key
     * needs no further step. Returns true if the index restarts under the new key.
     */
    async claim(): Promise<boolean> {
      return (await pool.query(claimSql, [hashes.keyId])).rowCount === 1;
    },

    /**
     * Walks one batch. Returns undefined if no walk is due, another pod is walking, or the index was built under
     * another key.
     */
    walk: ({ now, limit, interval, overlap }: WalkOptions): Promise<WalkBatch | undefined> =>
      withTransaction(pool, async (client) => {
        const latest = later(now, 2 * interval);
        const [due] = (await client.query<{ position: string }>(dueSql, [hashes.keyId, now, latest])).rows;
        if (!due) return undefined;
        const { rows: forms } = await client.query<WalkedForm>(formsSql, [due.position, limit]);
        const added = await rehash(client, forms);
        const isLast = forms.length < limit;
        const sets = isLast ? ', complete = true, next_walk = $2' : '';
        const last = forms.at(-1)?.id ?? due.position;
        const recent = firstIdAt(now.getTime() - overlap);
        // `<` compares the UUIDs as text, which gives the same order as in Postgres.
        const position = isLast && recent < last ? recent : last;
        const next = isLast ? [later(now, interval)] : [];
        await client.query(`UPDATE address_index SET position = $1${sets}`, [position, ...next]);
        return { walked: forms.length, added, isLast };
      }),

    /** True if the index has the addresses of all forms under this process's key. */
    async isComplete(): Promise<boolean> {
      const sql = 'SELECT FROM address_index WHERE complete AND key_id = $1';
      return (await pool.query(sql, [hashes.keyId])).rowCount === 1;
    },
  };
}

/**
 * Returns the smallest UUID version 7 of a time in milliseconds (RFC 9562 section 5.7). The ids of forms are such
 * UUIDs, so they begin with the creation time.
 */
function firstIdAt(milliseconds: number): string {
  const hex = milliseconds.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
