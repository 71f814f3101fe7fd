// The SQL that claims outbox rows.
import { escapeLiteral } from 'pg';
import { later } from '../../service/clock.ts';
import { planSql, timestampSql } from './settle-statements.ts';

/** The services to which rows are delivered. The generated column `lane` derives the service from the kind. */
export const deliveryServices = ['events', 'notifications', 'files'] as const;
export type DeliveryService = (typeof deliveryServices)[number];

/** A row's position in the order of claims. */
export interface RowPosition {
  /** The time at which the row became due, as the text that Postgres writes, because it is more precise than a Date. */
  notBefore: string;
  /** The row's sequence number: a bigint, as text. */
  sequence: string;
}

export interface ClaimOptions {
  service: DeliveryService;
  limit: number;
  now: Date;
  /** Milliseconds until the claim expires. */
  lease: number;
  /** The position from which to continue. Without it, the claim begins at the oldest row. */
  after?: RowPosition | undefined;
  /** Tenants whose rows are not claimed. */
  held?: readonly string[] | undefined;
  /** The only tenants whose rows are claimed. Without it, the rows of all tenants. */
  only?: readonly string[] | undefined;
}

/**
 * By service, the rows of a form for which its rows do not wait: the files and the subscriber of a deleted form are
 * removed independently.
 */
const independentSql: Partial<Record<string, string>> = {
  files: "AND p.kind <> 'remove-subscriber'",
  notifications: "AND p.kind <> 'remove-files'",
};

/**
 * True if no process has claimed row `o`, or if its claim has expired. A claim lasts for at most 6 hours
 * (PLATFORM_TIMEOUT), so a process whose clock was ahead made a claim that ends more than a day from now.
 */
export const isUnclaimed = (nowSql: string) =>
  `(o.claimed_until IS NULL OR o.claimed_until <= ${nowSql} OR o.claimed_until > ${nowSql}::timestamptz + interval '1 day')`;

const tenantsSql = (operator: 'IN' | 'NOT IN', tenantIds: readonly string[] = []) =>
  tenantIds.length > 0 ? `AND o.tenant_id ${operator} (${tenantIds.map(escapeLiteral).join(', ')})` : '';

/**
 * Claims due rows in index order. Skips rows that another process is claiming. Up to 100,000 rows are accepted per
 * minute. Their index entries stay at the head of the index until a vacuum; `after` skips these entries.
 *
 * The scalar subquery makes Postgres look for an older open row of the same form instead of joining the whole backlog.
 * It starts at the nearest older row. It therefore reads one index entry for each row that must wait, even if the form
 * has very many rows. Only `outbox_open_by_form` has this order of nulls, so Postgres cannot choose an index that also
 * contains the accepted rows.
 */
export function claimSql({ service, now, lease, limit, after, held, only }: ClaimOptions): string {
  const nowSql = timestampSql(now);
  const from = after && `(${escapeLiteral(after.notBefore)}::timestamptz, ${escapeLiteral(after.sequence)}::bigint)`;
  return `
${planSql}
WITH due AS MATERIALIZED (
  SELECT o.sequence, o.not_before FROM outbox o
  WHERE o.accepted IS NULL AND o.lane = ${escapeLiteral(service)} AND o.not_before <= ${nowSql}
    ${from ? `AND (o.not_before, o.sequence) > ${from}` : ''}
    ${tenantsSql('NOT IN', held)} ${tenantsSql('IN', only)}
    AND ${isUnclaimed(nowSql)}
    AND (
      SELECT p.sequence FROM outbox p
      WHERE p.form_id = o.form_id AND p.sequence < o.sequence AND p.accepted IS NULL AND p.not_before < 'infinity'
        ${independentSql[service] ?? ''}
      ORDER BY p.sequence DESC NULLS LAST LIMIT 1) IS NULL
  ORDER BY o.not_before, o.sequence
  LIMIT ${Math.trunc(limit)}
  FOR UPDATE OF o SKIP LOCKED
), claimed AS (
  UPDATE outbox o SET claimed_until = ${timestampSql(later(now, lease))}, attempts = o.attempts + 1
  FROM due WHERE o.sequence = due.sequence
  RETURNING o.*
)
${claimedSql}
ORDER BY c.not_before, c.sequence`;
}

/** Selects the rows of the CTE `claimed`, with columns of their forms. */
export const claimedSql = `
SELECT c.not_before::text AS "notBefore", c.sequence, c.form_id AS "formId", c.tenant_id AS "tenantId", c.kind, c.facts, c.created,
  c.attempts, c.refusals, c.traceparent, c.request_id AS "requestId", c.claimed_until AS "claimedUntil",
  f.status, f.created AS "formCreated", f.created_by AS "createdBy", f.last_accessed AS "lastAccessed", f.locked, f.submitted,
  f.applicant, f.subscriber_id AS "subscriberId"
FROM claimed c LEFT JOIN forms f ON f.id = c.form_id`;

/**
 * Selects the tenants with the fewest due rows: as many tenants as have at most `limit` rows together, or one tenant. A
 * further tenant could fill the batch, because the oldest rows of the selected tenants are claimed first. Reads all due
 * rows, but does not look up their forms.
 */
export function fewestSql({ service, now, limit, held }: FewestOptions): string {
  const nowSql = timestampSql(now);
  return `
${planSql}
SELECT tenant_id AS "tenantId" FROM (
  SELECT tenant_id, count, sum(count) OVER (ORDER BY count, tenant_id) AS total FROM (
    SELECT o.tenant_id, count(*) FROM outbox o
    WHERE o.accepted IS NULL AND o.lane = ${escapeLiteral(service)} AND o.not_before <= ${nowSql} ${tenantsSql('NOT IN', held)}
      AND ${isUnclaimed(nowSql)}
    GROUP BY o.tenant_id) counted) ranked
WHERE total <= ${Math.trunc(limit)} OR total = count`;
}

export type FewestOptions = Pick<ClaimOptions, 'service' | 'now' | 'limit' | 'held'>;
