// The outbox table: claims due rows for delivery, settles them, and counts the backlog. Each statement is a
// transaction, so no transaction is open during a delivery. A claim expires if its row is not settled in time.
//
// Order per form: a transaction that inserts rows of a form locks the form, so the sequence numbers of these rows
// follow the order of the commits. A row is due only if all older rows of its form are accepted or quarantined. The
// removal of files does not wait for the removal of the subscriber, which can take 30 days or more. A claim that begins
// before an older row is accepted still sees that row as open, and takes no later row of the form. Quarantined rows
// have `not_before` infinity, so claims skip them.
import type { QueryResult } from 'pg';
import { later } from '../../service/clock.ts';
import { productVersion } from '../../service/operations/product-version.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { storedOrigin } from '../../service/tracing/tracing.ts';
import type { FormStatus } from '../forms/catalogue.ts';
import {
  type ClaimOptions,
  claimedSql,
  claimSql,
  type FewestOptions,
  fewestSql,
  isUnclaimed,
  type RowPosition,
} from './claim-statements.ts';
import { isEventKind, type OutboxKind } from './event-catalogue.ts';
import type { OutboxForm, OutboxRow } from './outbox.ts';
import {
  type AcceptedRow,
  acceptSql,
  type Claim,
  failSql,
  isOpen,
  quarantineSql,
  queueSql,
  type RefusedRow,
  type UnacceptedRow,
} from './settle-statements.ts';

/** A row that this process has claimed. */
export interface ClaimedRow extends OutboxRow<OutboxKind>, Claim {
  /** The time at which the row became due, as Postgres writes it; `infinity` in quarantine. */
  notBefore: string;
  /** How often the service has refused the row. */
  refusals: number;
  /** The trace of the request that wrote the row. Null if that request was not traced. */
  traceparent: string | null;
  /** The id of the request that wrote the row. Null if no request wrote it. */
  requestId: string | null;
}

export interface ClaimedBatch {
  rows: ClaimedRow[];
  /** The position from which the next claim may continue. Undefined if no row was claimed. */
  end: RowPosition | undefined;
}

export interface Backlog {
  kind: OutboxKind;
  count: number;
  oldestSeconds: number;
  /** Number of counted rows that were tried ten times or more. */
  failing: number;
}

export interface OutboxStoreOptions {
  pool: Queryable;
  /** Milliseconds from the acceptance of `form-deleted` until the subscriber and the files are removed. */
  removalDelay: number;
  /** Milliseconds that the notification service takes for one event. */
  noticeTime: number;
  deleteFiles: boolean;
}

/**
 * Claims the open `subscribe` row of a form, even if the row is in quarantine or not due yet. $1 form, $2 now, $3 the
 * end of the claim.
 */
const claimSubscribeSql = `
WITH claimed AS (
  UPDATE outbox o SET claimed_until = $3, attempts = o.attempts + 1
  WHERE o.form_id = $1 AND o.kind = 'subscribe' AND ${isOpen('o')} AND ${isUnclaimed('$2')}
  RETURNING o.*
)
${claimedSql}`;

/**
 * Unsets the subscriber of a form, if it is still $2, and writes another `subscribe` row. The rows that say whether the
 * form's mails are limited may have been purged, so the new subscription requires `notice: due`, which every event has
 * that may be mailed.
 */
const replaceSubscriberSql = `
WITH form AS (
  UPDATE forms SET subscriber_id = NULL WHERE id = $1 AND subscriber_id = $2 RETURNING id, tenant_id, definition_id
)
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent, request_id)
SELECT id, tenant_id, 'subscribe', jsonb_build_object('definitionId', definition_id, 'noticeSuppressed', true), $3, $3, $4, $5
FROM form`;

/**
 * Counts the rows that are neither accepted nor in quarantine, for each kind. $1 now. The age of a removal counts from
 * the time at which the removal is due.
 */
const backlogSql = `
SELECT kind, count(*)::int AS count,
  extract(epoch FROM $1::timestamptz - min(created))::float8 AS "oldestSeconds",
  (count(*) FILTER (WHERE attempts >= 10))::int AS failing
FROM outbox WHERE accepted IS NULL AND created <= $1 AND not_before < 'infinity'
GROUP BY kind`;

/**
 * Maximum milliseconds for the statement that settles one row of a batch that took too long. It is short, so that the
 * other rows are settled, and the slow row is given back, before their claims expire.
 */
export const longestSingle = 2_000;

/** Limits the next statement to a number of milliseconds. Without it, the statement timeout of the role applies. */
const timeoutSql = (timeout?: number) => (timeout ? `SET LOCAL statement_timeout = ${Math.trunc(timeout)}; ` : '');

export type OutboxStore = ReturnType<typeof createOutboxStore>;

/** The functions of the store that the dispatcher needs. */
export type DispatchedStore = Omit<OutboxStore, 'claimSubscribe' | 'findSubscriber' | 'replaceSubscriber'>;

export function createOutboxStore({ pool, removalDelay, noticeTime, deleteFiles }: OutboxStoreOptions) {
  /** The rows whose events are part of the estimated queue. */
  const queued = new WeakSet<AcceptedRow>();

  /**
   * Adds the accepted events to the estimated queue of the notification service. Returns the time by which their
   * notices have probably been sent. Runs outside the transaction of the acceptance: otherwise, all acceptances would
   * wait for the single row of `notice_queue`. A failure is not about the rows, so it is thrown without its SQLSTATE.
   */
  async function noticesUntil(rows: readonly AcceptedRow[], now: Date): Promise<Date | undefined> {
    const sent = rows.filter(({ row }) => row.kind !== undefined && isEventKind(row.kind));
    if (sent.length === 0) return undefined;
    // A failed acceptance is retried, but its events are added to the queue only once.
    const added = sent.filter((row) => !queued.has(row));
    const queue = pool.query<{ busyUntil: Date }>(queueSql, [now, added.length * noticeTime]);
    const { rows: found } = await queue.catch((cause: unknown) => {
      throw new Error('the estimated queue of notices cannot be updated', { cause });
    });
    for (const row of added) queued.add(row);
    return found[0] && later(found[0].busyUntil, removalDelay);
  }

  const settlement = (now: Date) => ({ now, removal: later(now, removalDelay), deleteFiles });
  return {
    /**
     * Claims due rows, oldest first, and reads their forms. Concurrent claims never return the same row, unless a claim
     * has expired. `after` skips the rows before a position, because many of them were accepted recently. If a skipped
     * row has become due since, only a claim without `after` finds it.
     */
    async claim(options: ClaimOptions): Promise<ClaimedBatch> {
      // For a simple query with several statements, node-postgres returns an array of results.
      const results: unknown = await pool.query(claimSql(options));
      const rows = (results as QueryResult<ClaimRecord>[]).at(-1)?.rows ?? [];
      const last = rows.at(-1);
      return { rows: rows.map(toRow), end: last && { notBefore: last.notBefore, sequence: last.sequence } };
    },
    /** Returns the tenants with the fewest due rows: as many as have at most `limit` rows together, or one. */
    async fewest(options: FewestOptions): Promise<string[]> {
      const results: unknown = await pool.query(fewestSql(options));
      const rows = (results as QueryResult<{ tenantId: string }>[]).at(-1)?.rows ?? [];
      return rows.map(({ tenantId }) => tenantId);
    },
    /**
     * Claims the `subscribe` row of a form for `lease` milliseconds. Returns undefined if another process has claimed
     * the row, or if it is accepted.
     */
    async claimSubscribe(formId: string, now: Date, lease: number): Promise<ClaimedRow | undefined> {
      const { rows } = await pool.query<ClaimRecord>(claimSubscribeSql, [formId, now, later(now, lease)]);
      return rows[0] && toRow(rows[0]);
    },
    /** Returns the id of the form's subscriber. Undefined if the form has none yet; null if the form was deleted. */
    async findSubscriber(formId: string): Promise<string | undefined | null> {
      const sql = 'SELECT subscriber_id AS id FROM forms WHERE id = $1';
      const { rows } = await pool.query<{ id: string | null }>(sql, [formId]);
      return rows[0] ? (rows[0].id ?? undefined) : null;
    },
    /** Has a form subscribed again whose subscriber `lost` the notification service does not know any more. */
    async replaceSubscriber(formId: string, lost: string, now: Date): Promise<void> {
      await pool.query(replaceSubscriberSql, [formId, lost, now, ...storedOrigin()]);
    },
    /** Marks rows as accepted. The call can be repeated. See {@link acceptSql}; `timeout` is in milliseconds. */
    async accept(rows: readonly AcceptedRow[], now: Date, timeout?: number): Promise<void> {
      if (rows.length === 0) return;
      const sql = acceptSql(rows, { ...settlement(now), noticesUntil: await noticesUntil(rows, now) });
      await pool.query(timeoutSql(timeout) + sql);
    },
    /** Ends the claims of rows that were not accepted. Skips rows that another process has claimed since. */
    async fail(rows: readonly UnacceptedRow[]): Promise<void> {
      if (rows.length > 0) await pool.query(failSql(rows));
    },
    /** Quarantines rows, so that the later rows of their forms can be delivered. See {@link quarantineSql}. */
    async quarantine(rows: readonly RefusedRow[], now: Date, timeout?: number): Promise<void> {
      if (rows.length === 0) return;
      await pool.query(timeoutSql(timeout) + quarantineSql(rows, settlement(now), productVersion()));
    },
    async backlog(now: Date): Promise<Backlog[]> {
      return (await pool.query<Backlog>(backlogSql, [now])).rows;
    },
    /** Reads the form data. Returns null if the form was deleted. */
    async readData(formId: string): Promise<Record<string, unknown> | null> {
      const sql = 'SELECT data FROM forms WHERE id = $1';
      const { rows } = await pool.query<{ data: Record<string, unknown> }>(sql, [formId]);
      return rows[0]?.data ?? null;
    },
  };
}

type ClaimRecord = Omit<ClaimedRow, 'form'> &
  Omit<OutboxForm, 'status' | 'created'> & { notBefore: string; status: FormStatus | null; formCreated: Date };

function toRow(record: ClaimRecord): ClaimedRow {
  const { status, formCreated, createdBy, lastAccessed, locked, submitted, applicant, subscriberId, ...row } = record;
  const form = { created: formCreated, createdBy, lastAccessed, locked, submitted, applicant, subscriberId };
  return { ...row, form: status === null ? undefined : { ...form, status } };
}
