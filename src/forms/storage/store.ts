// Measures how much a tenant occupies in Postgres. A walk visits the tenant's forms in batches, in the order of their
// creation, and adds up their sizes. Its position is in the database, so all pods continue the same walk. The last
// batch also estimates what changes and deletions of forms have left behind.
import type pg from 'pg';
import { type Queryable, withTransaction } from '../../service/postgres/postgres.ts';
import { planSql } from '../outbox/settle-statements.ts';

export interface TenantStorage {
  tenantId: string;
  /**
   * Bytes that the last complete walk found, or those of forms that the walk in progress has found so far, whichever is
   * more: a walk cannot end while forms are created faster than it visits them.
   */
  bytes: number;
  /** When the last complete walk began; null before the first. */
  measured: Date | null;
  /** When the walk in progress began; null if there is none. */
  walkBegan: Date | null;
}

export interface WalkOptions {
  tenantId: string;
  now: Date;
  /** Maximum number of forms in a batch. */
  limit: number;
  /** A new walk begins only if the last complete one began at this time or earlier. */
  dueBefore: Date;
}

export type StorageStore = ReturnType<typeof createStorageStore>;

/**
 * Bytes that each form counts in addition to its JSON columns: the other columns and the entries in the indexes.
 * docs/scale.md shows 2.0 KiB for a form with 1 KiB of form data.
 */
export const formOverhead = 1_024;

/** Bytes that a deletion, or a submission and a return, count as until the next measurement. */
export const leftByOperation = 1_024;

/** A tenant whose forms occupy this share of the limit is near it. */
export const nearShare = 0.8;

/**
 * Milliseconds. A measurement that lies further ahead than this was made by a pod with a wrong clock, and is repeated.
 * Otherwise, no pod would measure the tenant until that time.
 */
export const mostAhead = 3_600_000;

const readSql = `
SELECT tenant_id AS "tenantId", greatest(bytes, walk_bytes)::float8 AS bytes, measured, walk_began AS "walkBegan"
FROM tenant_storage WHERE tenant_id = ANY ($1)`;

const addSql = `
INSERT INTO tenant_storage (tenant_id) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING`;

/** Number of pages of a table that an estimate reads. Smaller tables are read completely. */
const sampledPages = 1_000;
/** Returns SQL for the part of a table's pages that an estimate reads. */
export const sampledPart = (table: string) =>
  `least(1, ${sampledPages}.0 * current_setting('block_size')::int / greatest(pg_relation_size('${table}'), 1))`;

/**
 * The tables with rows that outlive a form or a change of it, and the size of a row with its entries in indexes. The
 * sizes were measured; those of the columns `facts` and `answer` vary.
 */
const leftBehind = {
  outbox: '500 + pg_column_size(facts)',
  tombstones: '300',
  idempotency_keys: '600 + pg_column_size(answer)',
  quarantine: '1000',
};

/**
 * SQL for the estimated bytes of a tenant's rows in a table, from a sample of its pages. These tables have no index by
 * tenant, because each change of a form would have to maintain it.
 */
function sampledSql([table, size]: [string, string]): string {
  const part = sampledPart(table);
  return `(SELECT coalesce(sum(${size}), 0) / ${part} FROM ${table} TABLESAMPLE SYSTEM (100 * ${part})
    WHERE tenant_id = due.tenant_id)`;
}

const leftBehindSql = Object.entries(leftBehind).map(sampledSql).join(' + ');

// `pg_column_size` reads the stored size of a large value, not the value itself.
const walkSql = `
WITH due AS (
  SELECT tenant_id, walk_created, walk_id FROM tenant_storage
  WHERE tenant_id = $1 AND (walk_began IS NOT NULL OR measured IS NULL OR measured <= $4
    OR measured > $2::timestamptz + interval '${mostAhead} milliseconds')
  FOR UPDATE SKIP LOCKED
), batch AS (
  SELECT form.* FROM due CROSS JOIN LATERAL (
    SELECT created, id, ${formOverhead} + pg_column_size(data) + pg_column_size(files) + pg_column_size(applicant)
      + pg_column_size(history) + pg_column_size(uploads) + pg_column_size(created_by)
      + coalesce(pg_column_size(held_by), 0) AS size
    FROM forms WHERE tenant_id = due.tenant_id AND (created, id) > (due.walk_created, due.walk_id)
    ORDER BY created, id LIMIT $3) form
), found AS (
  SELECT count(*) < $3 AS is_last, coalesce(sum(size), 0) AS size FROM batch
), last AS (
  SELECT created, id FROM batch ORDER BY created DESC, id DESC LIMIT 1
)
UPDATE tenant_storage s SET
  bytes = CASE WHEN is_last THEN walk_bytes + size + ${leftBehindSql} ELSE bytes END,
  measured = CASE WHEN is_last THEN coalesce(walk_began, $2) ELSE measured END,
  walk_began = CASE WHEN NOT is_last THEN coalesce(walk_began, $2) END,
  walk_bytes = CASE WHEN is_last THEN 0 ELSE walk_bytes + size END,
  walk_created = CASE WHEN is_last THEN '-infinity' ELSE last.created END,
  walk_id = CASE WHEN is_last THEN '00000000-0000-0000-0000-000000000000' ELSE last.id END
FROM due, found LEFT JOIN last ON true
WHERE s.tenant_id = due.tenant_id`;

export function createStorageStore(db: Queryable) {
  return {
    /** Returns the storage of the given tenants. Leaves out tenants that were never added. */
    async read(tenantIds: readonly string[]): Promise<TenantStorage[]> {
      return (await db.query<TenantStorage>(readSql, [tenantIds])).rows;
    },

    /** Adds the given tenants, unless they were added before, so that walks can measure them. */
    async add(tenantIds: readonly string[]): Promise<void> {
      await db.query(addSql, [tenantIds]);
    },

    /** Returns the tenants that have stored at least `bytes`, but not more than 1,000 of them. */
    async heavy(bytes: number): Promise<string[]> {
      const { rows } = await db.query<{ tenantId: string }>(
        `SELECT tenant_id AS "tenantId" FROM tenant_storage WHERE greatest(bytes, walk_bytes) >= $1::float8
        ORDER BY measured NULLS FIRST LIMIT 1000`,
        [bytes],
      );
      return rows.map(({ tenantId }) => tenantId);
    },

    /** Counts the tenants that have stored at least `near`, and at least `full` bytes. */
    async count({ near, full }: { near: number; full: number }): Promise<{ near: number; full: number }> {
      const { rows } = await db.query<{ near: number; full: number }>(
        `SELECT count(*) FILTER (WHERE used >= $1::float8)::int AS near, count(*) FILTER (WHERE used >= $2::float8)::int AS full
        FROM (SELECT greatest(bytes, walk_bytes) AS used FROM tenant_storage) s`,
        [near, full],
      );
      return rows[0] ?? { near: 0, full: 0 };
    },
  };
}

export type Walk = ReturnType<typeof createWalk>;

/** Returns a function that walks one batch. It returns false if no walk is due, or if another pod is walking now. */
export function createWalk(pool: pg.Pool) {
  return ({ tenantId, now, limit, dueBefore }: WalkOptions): Promise<boolean> =>
    withTransaction(pool, async (client) => {
      // With outdated statistics, Postgres might otherwise sort all forms of the tenant for each batch.
      await client.query(planSql);
      return (await client.query(walkSql, [tenantId, now, limit, dueBefore])).rowCount === 1;
    });
}
