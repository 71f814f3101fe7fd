// Reads and writes the table `quarantine`, which has the same columns in every database. The job that processes an item
// skips it while it is quarantined. `resume` makes released items due for processing again.
import type pg from 'pg';
import { productVersion } from '../operations/product-version.ts';
import type { Queryable } from '../postgres/postgres.ts';
import type { SharedPool } from '../postgres/shared-pool.ts';
import type { NewQuarantineItem, QuarantineItem } from './quarantine.ts';

/** The position after which a page begins. */
export interface QuarantinePosition {
  firstSeen: Date;
  id: string;
}

export interface QuarantineQuery {
  /** If undefined, the page contains all items, with and without a tenant. */
  tenantId?: string | undefined;
  kind?: string | undefined;
  reason?: string | undefined;
  after?: QuarantinePosition | undefined;
  top: number;
}

export interface QuarantinePage {
  items: QuarantineItem[];
  /** Position of the next page; present if more items follow this page. */
  next?: QuarantinePosition;
}

/**
 * The items to release: one item, all items, or the items that only other versions of the product have tried. Each
 * version releases such an item once, even if a pod of another version makes the attempt during a rolling update.
 */
export type ReleaseChoice = { id: string; tenantId?: string | undefined } | 'all' | 'of other versions';

export interface QuarantineCount {
  kind: string;
  reason: string;
  count: number;
}

export type ReleasedItem = Pick<QuarantineItem, 'id' | 'kind' | 'item' | 'tenantId' | 'about'>;

export interface ReleaseOutcome extends ReleasedItem {
  /** False if the item was retried immediately and remains in quarantine. */
  released: boolean;
}

/**
 * Makes released items due, in the transaction that releases them. Returns the ids of the items that remain in
 * quarantine.
 */
export type Resume = (db: pg.ClientBase, items: readonly ReleasedItem[]) => Promise<readonly string[]>;

export interface QuarantineStore {
  /** Lists items, the newest first. */
  list(query: QuarantineQuery): Promise<QuarantinePage>;
  /**
   * Makes the chosen items due again and returns them. Their entries stay until the items are processed. Releases at
   * most a thousand items, by their ids, after the item with the id `after`. See {@link releaseInPages}.
   */
  release(choice: ReleaseChoice, after?: string): Promise<ReleaseOutcome[]>;
  /** Counts the items that were not released. */
  counts(): Promise<QuarantineCount[]>;
}

const putSql = `
INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
SELECT kind, item, "tenantId", about, reason, detail, $2, $2, coalesce(attempts, 1), $3
FROM jsonb_to_recordset($1::jsonb)
  AS i (kind text, item text, "tenantId" text, about jsonb, reason text, detail text, attempts int)
ON CONFLICT (kind, item) DO UPDATE SET about = excluded.about, reason = excluded.reason, detail = excluded.detail,
  last_tried = excluded.last_tried, attempts = quarantine.attempts + excluded.attempts, version = excluded.version,
  released = false`;

/**
 * Quarantines items. An item that is already quarantined keeps its `firstSeen`. `attempts` is the number of attempts
 * since the last call, by default 1.
 */
export async function putInQuarantine(
  db: Queryable,
  items: readonly (NewQuarantineItem & { attempts?: number })[],
  now: Date,
): Promise<void> {
  await db.query(putSql, [JSON.stringify(items), now, productVersion()]);
}

const columns = `id, kind, item, tenant_id AS "tenantId", about, reason, detail, first_seen AS "firstSeen",
  last_tried AS "lastTried", attempts, version, released`;

const listSql = `
SELECT ${columns} FROM quarantine
WHERE ($1::text IS NULL OR tenant_id = $1) AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR reason = $3)
  AND ($4::timestamptz IS NULL OR (first_seen, id) < ($4, $5::uuid))
ORDER BY first_seen DESC, id DESC LIMIT $6`;

/** Maximum number of items that one transaction releases. An outage may have quarantined a million. */
const releasePage = 1_000;

/** A condition for the items that this version of the product, the parameter `version`, has not tried yet. */
export const untriedBy = (version: string) => `version <> ${version} AND ${version} <> ALL (retried_by)`;

const releaseSql = (condition: string, set = '') => `
UPDATE quarantine SET released = true${set} WHERE id IN (
  SELECT id FROM quarantine WHERE NOT released AND ($1::uuid IS NULL OR id > $1) AND ${condition}
  ORDER BY id LIMIT ${releasePage} FOR UPDATE)
RETURNING id, kind, item, tenant_id AS "tenantId", about`;

/**
 * Releases items in several transactions. `release` calls {@link QuarantineStore.release}. Passes the items of each
 * transaction to `onReleased`.
 */
export async function releaseInPages(
  release: (after: string | undefined) => Promise<ReleaseOutcome[]>,
  onReleased: (items: readonly ReleaseOutcome[]) => void = () => undefined,
): Promise<void> {
  let after: string | undefined;
  let items: ReleaseOutcome[];
  do {
    items = await release(after);
    onReleased(items);
    after = items.at(-1)?.id;
  } while (items.length === releasePage);
}

export function createQuarantineStore({ pool, resume }: { pool: SharedPool; resume: Resume }): QuarantineStore {
  return {
    async list({ tenantId, kind, reason, after, top }) {
      const values = [tenantId, kind, reason, after?.firstSeen, after?.id, top + 1];
      const { rows } = await pool.query<QuarantineItem>(requesterOfQuarantine(tenantId), listSql, values);
      const items = rows.slice(0, top);
      const last = items.at(-1);
      return { items, ...(last && rows.length > top && { next: { firstSeen: last.firstSeen, id: last.id } }) };
    },
    release: (choice, after) =>
      pool.transaction(
        requesterOfQuarantine(typeof choice === 'object' ? choice.tenantId : undefined),
        async (client) => {
          const rows = (await chosen(client, choice, after)).rows.sort((a, b) => (a.id < b.id ? -1 : 1));
          const kept = new Set(rows.length > 0 ? await resume(client, rows) : []);
          return rows.map((row) => ({ ...row, released: !kept.has(row.id) }));
        },
      ),
    async counts() {
      const sql = `SELECT kind, reason, count(*)::int AS count FROM quarantine WHERE NOT released GROUP BY kind, reason`;
      return (await pool.query<QuarantineCount>(requesterOfQuarantine(undefined), sql, [])).rows;
    },
  };
}

/** A query for all tenants counts toward the connection limit of a tenant with an empty name. */
const requesterOfQuarantine = (tenantId = '') => ({ tenant: tenantId, member: 'quarantine' });

function chosen(
  client: pg.ClientBase,
  choice: ReleaseChoice,
  after: string | undefined,
): Promise<pg.QueryResult<ReleasedItem>> {
  if (choice === 'all') return client.query(releaseSql('true'), [after]);
  if (choice === 'of other versions') {
    const sql = releaseSql(untriedBy('$2'), `, retried_by = retried_by || ARRAY[version, $2]`);
    return client.query(sql, [after, productVersion()]);
  }
  const { id, tenantId } = choice;
  return client.query(releaseSql('id = $2 AND ($3::text IS NULL OR tenant_id = $3)'), [after, id, tenantId]);
}
