// Deletes outdated rows in batches: tombstones, idempotency records, codes, delivered outbox rows and old records of
// runs. A row is no longer read after the period of its table.
import type pg from 'pg';
import { earlier } from '../../service/clock.ts';
import { cookieLife } from '../apply/cookies.ts';
import { planSql } from '../outbox/settle-statements.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** The tables to purge, in this order. */
export const purges = [
  'tombstones',
  'idempotency_keys',
  'used_codes',
  'code_attempts',
  'code_sends',
  'created_notices',
  'apply_codes',
  'apply_saves',
  'apply_counts',
  'outbox',
  'reconciler_runs',
] as const;

export type Purge = (typeof purges)[number];

export interface PurgeBatch {
  removed: number;
  /** The value of `PurgeOptions.after` for the next batch. Undefined after the last batch. */
  next: string | undefined;
}

export interface PurgeOptions {
  now: Date;
  after: string | undefined;
  limit: number;
  /** True to count the rows instead of deleting them. */
  dryRun: boolean;
}

/** For each table, the column from which the age of a row counts, and the milliseconds for which a row is needed. */
const aging: Record<Exclude<Purge, 'outbox'>, { column: string; period: number }> = {
  tombstones: { column: 'deleted', period: 30 * day },
  idempotency_keys: { column: 'created', period: day },
  // A code is valid for minutes, and its read session for 30 minutes. The period is longer because a notification
  // service may accept codes for longer.
  used_codes: { column: 'session_until', period: day },
  code_attempts: { column: 'attempted', period: hour },
  code_sends: { column: 'sent', period: hour },
  created_notices: { column: 'latest', period: hour },
  // While these rows exist, cookies without a code are refused.
  apply_codes: { column: 'used', period: cookieLife },
  apply_saves: { column: 'saved', period: hour },
  // The window of a count in this table lasts for a day at most.
  apply_counts: { column: 'window_start', period: day },
  reconciler_runs: { column: 'finished', period: 30 * day },
};

/**
 * Milliseconds for which a delivered outbox row is kept. Operators may want to inspect the row, and a dispatcher that
 * lost its claim may still record a subscriber in it. A form can be submitted and returned any number of times, so the
 * rows of one form take disk space in proportion to this period.
 */
const outboxPeriod = 2 * day;

/** Milliseconds for which a row of a table is kept, from the time in its column of `aging` on. */
export const periodOf = (purge: Purge): number => (purge === 'outbox' ? outboxPeriod : aging[purge].period);

const agedSql = (table: string, column: string) => `
DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${table} WHERE ${column} <= $1 ORDER BY ${column} LIMIT $2 FOR UPDATE SKIP LOCKED))`;

const agedDryRunSql = (table: string, column: string) => `
SELECT count(*)::int AS count FROM ${table} WHERE ${column} <= $1`;

// A delivered `subscribe` row can be deleted, because the form's row has the subscriber's id. The `form-locked` row of
// a locked form is kept, because the expiry deletes the form only after the event service has accepted that row. The
// form's status is read with a scalar subquery, which Postgres evaluates as one lookup per row. With EXISTS, Postgres
// scanned all locked forms for each page.
//
// A postponed removal has a later `created` than the rows around it, so `young` ignores removals.
const outboxPage = `
page AS MATERIALIZED (
  SELECT sequence, form_id, kind, accepted, created FROM outbox WHERE sequence > $1 ORDER BY sequence LIMIT $2
), useless AS MATERIALIZED (
  SELECT sequence FROM page
  WHERE accepted <= $3
    AND (kind <> 'form-locked'
      OR (SELECT f.status FROM forms f WHERE f.id = page.form_id) IS DISTINCT FROM 'Locked')
), last AS (
  SELECT max(sequence)::text AS sequence, count(*)::int AS walked,
    min(created) FILTER (WHERE kind NOT IN ('remove-subscriber', 'remove-files')) > $3 AS young FROM page
)`;

const outboxSql = `
WITH ${outboxPage}, removed AS (
  DELETE FROM outbox o USING useless u WHERE o.sequence = u.sequence RETURNING 1
)
SELECT last.*, (SELECT count(*)::int FROM removed) AS removed FROM last`;

const outboxDryRunSql = `
WITH ${outboxPage} SELECT last.*, (SELECT count(*)::int FROM useless) AS removed FROM last`;

interface OutboxPage {
  sequence: string | null;
  walked: number;
  /**
   * True if the page's rows are recent. Later pages are then recent too: sequence numbers roughly follow time. Null if
   * the page contains only removals, which say nothing about later pages.
   */
  young: boolean | null;
  removed: number;
}

/** Purges one batch of a table. Call it in a transaction. */
export async function purgeBatch(db: pg.ClientBase, purge: Purge, options: PurgeOptions): Promise<PurgeBatch> {
  const { now, after, limit, dryRun } = options;
  await db.query(planSql);
  if (purge === 'outbox') {
    const before = earlier(now, periodOf(purge));
    const sql = dryRun ? outboxDryRunSql : outboxSql;
    const [page] = (await db.query<OutboxPage>(sql, [after ?? '0', limit, before])).rows;
    const isLast = !page?.sequence || page.walked < limit || page.young === true;
    return { removed: page?.removed ?? 0, next: isLast ? undefined : (page.sequence ?? undefined) };
  }
  const { column } = aging[purge];
  const before = earlier(now, periodOf(purge));
  if (dryRun) {
    const [row] = (await db.query<{ count: number }>(agedDryRunSql(purge, column), [before])).rows;
    return { removed: row?.count ?? 0, next: undefined };
  }
  const removed = (await db.query(agedSql(purge, column), [before, limit])).rowCount ?? 0;
  return { removed, next: removed < limit ? undefined : 'more' };
}
