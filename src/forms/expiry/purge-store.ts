// Removes what has no use any more, a batch at a time: tombstones, idempotency records, codes, delivered outbox rows and
// old records of runs. It keeps what something still asks for, by the very periods that the readers of each table have.
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
  /** Where the next batch goes on; undefined when there is none. */
  next: string | undefined;
}

export interface PurgeStore {
  /** In a transaction. `after` is the `next` of the batch before; `dryRun` counts only. */
  batch(
    db: pg.ClientBase,
    purge: Purge,
    options: { now: Date; after: string | undefined; limit: number; dryRun: boolean },
  ): Promise<PurgeBatch>;
}

/** By which column a row ages, and how many milliseconds it is of use. */
const aging: Record<Exclude<Purge, 'outbox'>, { column: string; period: number }> = {
  tombstones: { column: 'deleted', period: 30 * day },
  idempotency_keys: { column: 'created', period: day },
  // A code lives minutes, its session half an hour. The day is for a notification service with other ideas.
  used_codes: { column: 'session_until', period: day },
  code_attempts: { column: 'attempted', period: hour },
  code_sends: { column: 'sent', period: hour },
  created_notices: { column: 'latest', period: hour },
  reconciler_runs: { column: 'finished', period: 30 * day },
};

/**
 * Milliseconds that a delivered row is kept: for whoever asks what was sent, and for a dispatcher that lost its claim and
 * tells late of the subscriber that it made.
 */
const outboxPeriod = 7 * day;

const agedSql = (table: string, column: string) => `
DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${table} WHERE ${column} <= $1 ORDER BY ${column} LIMIT $2 FOR UPDATE SKIP LOCKED))`;

const agedLookSql = (table: string, column: string) => `
SELECT count(*)::int AS count FROM ${table} WHERE ${column} <= $1`;

// A form's subscriber stands in the form's row from the acceptance of `subscribe` on, so that row may go as well. Until
// a Locked form is deleted, the gate before its deletion asks for the acceptance of its form-locked. A scalar subquery
// is a lookup for each row; an EXISTS was made a table of all locked forms, for each page.
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
  /** Sequences are in the order of time, nearly: beyond a page without old rows there are none. */
  young: boolean | null;
  removed: number;
}

export function createPurgeStore(): PurgeStore {
  return {
    async batch(db, purge, { now, after, limit, dryRun }) {
      await db.query(planSql);
      if (purge === 'outbox') {
        const before = new Date(now.getTime() - outboxPeriod);
        const sql = dryRun ? outboxLookSql : outboxSql;
        const [page] = (await db.query<OutboxPage>(sql, [after ?? '0', limit, before])).rows;
        const ends = !page?.sequence || page.walked < limit || page.young === true;
        return { removed: page?.removed ?? 0, next: ends ? undefined : (page.sequence ?? undefined) };
      }
      const { column, period } = aging[purge];
      const before = new Date(now.getTime() - period);
      if (dryRun) {
        const [row] = (await db.query<{ count: number }>(agedLookSql(purge, column), [before])).rows;
        return { removed: row?.count ?? 0, next: undefined };
      }
      const removed = (await db.query(agedSql(purge, column), [before, limit])).rowCount ?? 0;
      return { removed, next: removed < limit ? undefined : 'more' };
    },
  };
}
