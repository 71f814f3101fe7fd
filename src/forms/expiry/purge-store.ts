// Deletes outdated rows in batches: tombstones, idempotency records, codes, delivered outbox rows and old records of runs. The
// periods are those after which no reader of the table uses a row.
import type pg from 'pg';
import { planSql } from '../outbox/settle-statements.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** What is purged, in this order. */
export const purges = [
  'tombstones',
  'idempotency_keys',
  'used_codes',
  'code_attempts',
  'code_sends',
  'created_notices',
  'outbox',
  'reconciler_runs',
] as const;

export type Purge = (typeof purges)[number];

export interface PurgeBatch {
  removed: number;
  /** The `after` of the next batch; undefined after the last one. */
  next: string | undefined;
}

export interface PurgeOptions {
  now: Date;
  after: string | undefined;
  limit: number;
  /** Only counts the rows. */
  dryRun: boolean;
}

/** The column of a row's age, and for how many milliseconds the row is used. */
const aging: Record<Exclude<Purge, 'outbox'>, { column: string; period: number }> = {
  tombstones: { column: 'deleted', period: 30 * day },
  idempotency_keys: { column: 'created', period: day },
  // A code is valid for minutes and its read session for 30 minutes. A notification service may accept codes for longer.
  used_codes: { column: 'session_until', period: day },
  code_attempts: { column: 'attempted', period: hour },
  code_sends: { column: 'sent', period: hour },
  created_notices: { column: 'latest', period: hour },
  reconciler_runs: { column: 'finished', period: 30 * day },
};

/**
 * Milliseconds that a delivered row is kept: for operators, and for a dispatcher that lost its claim and settles late with a
 * subscriber.
 */
const outboxPeriod = 7 * day;

const agedSql = (table: string, column: string) => `
DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${table} WHERE ${column} <= $1 ORDER BY ${column} LIMIT $2 FOR UPDATE SKIP LOCKED))`;

const agedLookSql = (table: string, column: string) => `
SELECT count(*)::int AS count FROM ${table} WHERE ${column} <= $1`;

// The id of a form's subscriber is in the form's row, so a delivered `subscribe` row can be deleted. The form-locked row of a
// Locked form is kept, because the deletion of the form requires its acceptance. Postgres evaluates the scalar subquery as a
// lookup per row; it turned an EXISTS into a scan of all locked forms for each page.
const outboxPage = `
page AS MATERIALIZED (
  SELECT sequence, form_id, kind, accepted, created FROM outbox WHERE sequence > $1 ORDER BY sequence LIMIT $2
), useless AS MATERIALIZED (
  SELECT sequence FROM page
  WHERE accepted <= $3
    AND (kind <> 'form-locked'
      OR (SELECT f.status FROM forms f WHERE f.id = page.form_id) IS DISTINCT FROM 'Locked')
), last AS (
  SELECT max(sequence)::text AS sequence, count(*)::int AS walked, min(created) > $3 AS young FROM page
)`;

const outboxSql = `
WITH ${outboxPage}, removed AS (
  DELETE FROM outbox o USING useless u WHERE o.sequence = u.sequence RETURNING 1
)
SELECT last.*, (SELECT count(*)::int FROM removed) AS removed FROM last`;

const outboxLookSql = `
WITH ${outboxPage} SELECT last.*, (SELECT count(*)::int FROM useless) AS removed FROM last`;

interface OutboxPage {
  sequence: string | null;
  walked: number;
  /** Sequences are roughly in the order of time: after a page without old rows there are no more. */
  young: boolean | null;
  removed: number;
}

/** In a transaction. */
export async function purgeBatch(db: pg.ClientBase, purge: Purge, options: PurgeOptions): Promise<PurgeBatch> {
  const { now, after, limit, dryRun } = options;
  await db.query(planSql);
  if (purge === 'outbox') {
    const before = new Date(now.getTime() - outboxPeriod);
    const sql = dryRun ? outboxLookSql : outboxSql;
    const [page] = (await db.query<OutboxPage>(sql, [after ?? '0', limit, before])).rows;
    const isLast = !page?.sequence || page.walked < limit || page.young === true;
    return { removed: page?.removed ?? 0, next: isLast ? undefined : (page.sequence ?? undefined) };
  }
  const { column, period } = aging[purge];
  const before = new Date(now.getTime() - period);
  if (dryRun) {
    const [row] = (await db.query<{ count: number }>(agedLookSql(purge, column), [before])).rows;
    return { removed: row?.count ?? 0, next: undefined };
  }
  const removed = (await db.query(agedSql(purge, column), [before, limit])).rowCount ?? 0;
  return { removed, next: removed < limit ? undefined : 'more' };
}
