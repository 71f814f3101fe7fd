// The SQL that counts the forms that a stage of the expiry will scan, and finds the most overdue draft.
import type { ExpiringStatus } from '../forms/catalogue.ts';
import { sampledPart } from '../storage/store.ts';
import { sinceOf, span } from './statements.ts';

/** Counts the forms that a stage will scan. $1 tenants, $2 definitions, $3 and $4 the bounds: from $3, before $4. */
export const countSql = (status: ExpiringStatus) => `
SELECT count(*)::int AS count
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) AS p (tenant_id, definition_id, start, before)
JOIN forms f ON f.tenant_id = p.tenant_id AND f.definition_id = p.definition_id
  AND f.status = '${status}' AND NOT f.held
  AND f.${sinceOf(status)} >= p.start AND f.${sinceOf(status)} < p.before`;

/**
 * Counts the forms of each tenant that a stage will scan, but at most $5 forms of each definition. The other parameters
 * are those of {@link countSql}.
 */
export const countByTenantSql = (status: ExpiringStatus) => `
SELECT p.tenant_id AS "tenantId", sum(due.count)::int AS count
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) AS p (tenant_id, definition_id, start, before)
CROSS JOIN LATERAL (
  SELECT count(*) FROM (
    SELECT FROM forms f
    WHERE f.tenant_id = p.tenant_id AND f.definition_id = p.definition_id AND f.status = '${status}' AND NOT f.held
      AND f.${sinceOf(status)} >= p.start AND f.${sinceOf(status)} < p.before
    LIMIT $5) counted) due
GROUP BY p.tenant_id`;

/** Estimates the number of outbox rows of events that are due but not delivered, by tenant. $1 now. */
export const undeliveredSql = `
SELECT tenant_id AS "tenantId", count(*) / ${sampledPart('outbox')}::float8 AS count
FROM outbox TABLESAMPLE SYSTEM (100 * ${sampledPart('outbox')})
WHERE lane = 'events' AND accepted IS NULL AND not_before <= $1
GROUP BY tenant_id`;

/**
 * Finds the oldest time at which a draft should have been locked. $1 tenants, $2 definitions, $3 the times before which
 * drafts are overdue, $4 the milliseconds from the last access of a draft to its lock.
 */
export const oldestOverdueSql = `
SELECT min(w.last_accessed + ${span('p.lock_after')}) AS moment
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::float8[]) AS p (tenant_id, definition_id, before, lock_after)
CROSS JOIN LATERAL (
  SELECT f.last_accessed FROM forms f
  WHERE f.tenant_id = p.tenant_id AND f.definition_id = p.definition_id AND f.status = 'Draft' AND NOT f.held
    AND f.last_accessed < p.before
  ORDER BY f.last_accessed, f.id LIMIT 1) w`;
