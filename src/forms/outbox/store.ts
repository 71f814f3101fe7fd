// The outbox table: claims due rows for delivery, settles them, and counts the backlog. Each statement is a transaction, so
// none is open during a delivery. A claim that is not settled expires.
//
// Order per form: the rows of a form are inserted by transactions that lock the form, so their sequences are in the order of
// their commits. A row is due only while it is the oldest row of its form that is neither accepted nor quarantined. A claim
// that began before the acceptance of a row still finds that row in the way; none finds a later row first. Quarantined rows
// have `not_before` infinity, so claims skip them.
import { escapeLiteral, type QueryResult } from 'pg';
import { productVersion } from '../../service/operations/product-version.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { FormStatus } from '../forms/catalogue.ts';
import type { OutboxKind } from './event-catalogue.ts';
import type { OutboxForm, OutboxRow } from './outbox.ts';
import {
  type AcceptedRow,
  acceptSql,
  type Claim,
  type FailedRow,
  failSql,
  isOpen,
  planSql,
  quarantineSql,
  type RefusedRow,
  timestampSql,
} from './settle-statements.ts';

/** The services that rows are delivered to. A generated column, `lane`, derives the service from the kind. */
export const deliveryServices = ['events', 'notifications', 'files'] as const;
export type DeliveryService = (typeof deliveryServices)[number];

/** A row that this process has claimed. */
export interface ClaimedRow extends OutboxRow<OutboxKind>, Claim {
  /** How often its service has refused it. */
  refusals: number;
}

/** A row's position in the order of claims. */
export interface Position {
  /** A timestamp as Postgres writes it, which is more precise than a Date. */
  notBefore: string;
  /** A bigint, as text. */
  sequence: string;
}

export interface ClaimedBatch {
  rows: ClaimedRow[];
  /** Where the next claim may continue; undefined if nothing was claimed. */
  end: Position | undefined;
}

export interface ClaimOptions {
  service: DeliveryService;
  limit: number;
  now: Date;
  /** Milliseconds until the claim expires. */
  lease: number;
  /** Without it, the claim begins at the oldest row. */
  after?: Position | undefined;
}

export interface Backlog {
  kind: OutboxKind;
  count: number;
  oldestSeconds: number;
  /** Of these, rows that were tried ten times or more. */
  failing: number;
}

export interface OutboxStoreOptions {
  pool: Queryable;
  /** Milliseconds from the acceptance of form-deleted to the removal of its subscriber and files. */
  removalDelay: number;
  deleteFiles: boolean;
}

/**
 * Claims due rows in index order. Rows that another process is claiming are skipped, and the scalar subquery makes Postgres
 * look up the oldest row of each form instead of joining the whole backlog. Accepted rows stay at the head of the index until
 * it is vacuumed, a hundred thousand a minute; hence `after`.
 */
export function claimSql({ service, now, lease, limit, after }: ClaimOptions): string {
  const nowSql = timestampSql(now);
  const from = after && `(${escapeLiteral(after.notBefore)}::timestamptz, ${escapeLiteral(after.sequence)}::bigint)`;
  return `
${planSql}
WITH due AS MATERIALIZED (
  SELECT o.sequence, o.not_before FROM outbox o
  WHERE o.accepted IS NULL AND o.lane = ${escapeLiteral(service)} AND o.not_before <= ${nowSql}
    ${from ? `AND (o.not_before, o.sequence) > ${from}` : ''}
    AND (o.claimed_until IS NULL OR o.claimed_until <= ${nowSql})
    AND o.sequence = (
      SELECT p.sequence FROM outbox p
      WHERE p.form_id = o.form_id AND ${isOpen('p')} AND p.not_before < 'infinity'
      ORDER BY p.sequence LIMIT 1)
  ORDER BY o.not_before, o.sequence
  LIMIT ${Math.trunc(limit)}
  FOR UPDATE OF o SKIP LOCKED
), claimed AS (
  UPDATE outbox o SET claimed_until = ${timestampSql(endOf(now, lease))}, attempts = o.attempts + 1
  FROM due WHERE o.sequence = due.sequence
  RETURNING o.*
)
SELECT c.not_before::text AS "notBefore", c.sequence, c.form_id AS "formId", c.tenant_id AS "tenantId", c.kind, c.facts, c.created,
  c.attempts, c.refusals, c.claimed_until AS "claimedUntil",
  f.status, f.created AS "formCreated", f.created_by AS "createdBy", f.last_accessed AS "lastAccessed", f.locked, f.submitted,
  f.applicant, f.subscriber_id AS "subscriberId"
FROM claimed c LEFT JOIN forms f ON f.id = c.form_id
ORDER BY c.not_before, c.sequence`;
}

const endOf = (now: Date, milliseconds: number) => new Date(now.getTime() + milliseconds);

/** $1 now. A removal counts from when it is due. */
const backlogSql = `
SELECT kind, count(*)::int AS count,
  extract(epoch FROM $1::timestamptz - min(created))::float8 AS "oldestSeconds",
  (count(*) FILTER (WHERE attempts >= 10))::int AS failing
FROM outbox WHERE accepted IS NULL AND created <= $1 AND not_before < 'infinity'
GROUP BY kind`;

export type OutboxStore = ReturnType<typeof createOutboxStore>;

export function createOutboxStore({ pool, removalDelay, deleteFiles }: OutboxStoreOptions) {
  const settlement = (now: Date) => ({ now, removal: endOf(now, removalDelay), deleteFiles });
  return {
    /**
     * Claims due rows, oldest first, and reads their forms. Concurrent claims never return the same row, unless a claim has
     * expired. `after` skips the rows before a position, many of which were accepted lately; rows that have become due before
     * that position are found only without it.
     */
    async claim(options: ClaimOptions): Promise<ClaimedBatch> {
      // A simple query of several statements has several results.
      const results: unknown = await pool.query(claimSql(options));
      const rows = (results as QueryResult<ClaimRecord>[]).at(-1)?.rows ?? [];
      const last = rows.at(-1);
      return { rows: rows.map(toRow), end: last && { notBefore: last.notBefore, sequence: last.sequence } };
    },
    /** See {@link acceptSql}. May be repeated. */
    async accept(rows: readonly AcceptedRow[], now: Date): Promise<void> {
      if (rows.length > 0) await pool.query(acceptSql(rows, settlement(now)));
    },
    /** Ends claims without acceptance. Rows that another process has claimed since are left alone. */
    async fail(rows: readonly FailedRow[]): Promise<void> {
      if (rows.length > 0) await pool.query(failSql(rows));
    },
    /** Quarantines rows, so that the later rows of their forms are delivered. See {@link quarantineSql}. */
    async quarantine(rows: readonly RefusedRow[], now: Date): Promise<void> {
      if (rows.length > 0) await pool.query(quarantineSql(rows, settlement(now), productVersion()));
    },
    async backlog(now: Date): Promise<Backlog[]> {
      return (await pool.query<Backlog>(backlogSql, [now])).rows;
    },
    /** The form data; null if the form was deleted. */
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
