// Counts the quarantined items, the undelivered outbox rows and the overdue forms, of all tenants or of one. Almost
// every statement reads a limited number of rows, even if many more are waiting. Only the count of one tenant's
// quarantine may read the whole quarantine.
import type pg from 'pg';
import { earlier } from '../../service/clock.ts';
import type { Requester } from '../../service/limits/fair-queue.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { Policy } from '../expiry/expiry.ts';
import { planSql } from '../outbox/settle-statements.ts';

/** A count that stops at a limit. */
export interface Bounded {
  count: number;
  isMinimum: boolean;
}

export interface Quarantined extends Bounded {
  /** Number of counted items that were released and wait for their next attempt. */
  released: number;
}

export interface Undelivered extends Bounded {
  oldest: Date | null;
}

export interface Overdue extends Bounded {
  /** The earliest time at which one of the forms was due. */
  oldest: Date | null;
}

export type OperationsStore = ReturnType<typeof createOperationsStore>;

/** Counts stop at this number. */
const mostCounted = 1_000;
/** Maximum number of due outbox rows that a count reads for each service to which rows are delivered. */
const mostExamined = 10_000;
/** Maximum number of a tenant's definitions whose forms are examined. */
const mostDefinitions = 200;

const quarantineSql = `
SELECT count(*)::int AS count, (count(*) FILTER (WHERE released))::int AS released
FROM (SELECT released FROM quarantine WHERE ($1::text IS NULL OR tenant_id = $1) LIMIT ${mostCounted + 1}) q`;

// The statement scans each lane separately, because the index of due rows begins with the lane. There is no index by
// tenant, because it would make each insert slower.
const undeliveredSql = (lanes: readonly string[]) => `
WITH due AS (${lanes
  .map(
    (lane) => `(
  SELECT tenant_id, created FROM outbox
  WHERE accepted IS NULL AND lane = '${lane}' AND not_before <= $2
  ORDER BY not_before, sequence LIMIT ${mostExamined})`,
  )
  .join(' UNION ALL ')})
SELECT count(*)::int AS count, min(created) AS oldest,
  (SELECT count(*) >= ${mostExamined} FROM due) AS "isMinimum"
FROM due WHERE $1::text IS NULL OR tenant_id = $1`;

const nextDefinition = (status: string, after: string) => `
  SELECT definition_id FROM forms WHERE tenant_id = $1 AND status = '${status}' AND NOT held ${after}
  ORDER BY definition_id LIMIT 1`;
const definitionsOf = (status: string) => `(
  WITH RECURSIVE found AS (
    (${nextDefinition(status, '')})
    UNION ALL
    SELECT n.* FROM found CROSS JOIN LATERAL (${nextDefinition(status, 'AND definition_id > found.definition_id')}) n
  ) SELECT definition_id FROM found LIMIT ${mostDefinitions})`;

/**
 * Finds the tenant's definitions that have drafts or locked forms. The statement needs one index lookup for each
 * definition instead of one for each form.
 */
const definitionsSql = `
SELECT definition_id AS "definitionId" FROM (${definitionsOf('Draft')} UNION ${definitionsOf('Locked')}) found
ORDER BY definition_id LIMIT ${mostDefinitions}`;

const overdueSql = (status: 'Draft' | 'Locked', since: 'last_accessed' | 'locked') => `
SELECT count(*)::int AS count, min(due) AS oldest FROM (
  SELECT w.since + p.period * interval '1 millisecond' AS due
  FROM unnest($2::text[], $3::timestamptz[], $4::float8[]) AS p (definition_id, before, period)
  CROSS JOIN LATERAL (
    SELECT f.${since} AS since FROM forms f
    WHERE f.tenant_id = $1 AND f.definition_id = p.definition_id AND f.status = '${status}' AND NOT f.held
      AND f.${since} < p.before
    ORDER BY f.${since}, f.id LIMIT ${mostCounted + 1}) w
  LIMIT ${mostCounted + 1}) overdue`;

const overdueSqls = { lock: overdueSql('Draft', 'last_accessed'), delete: overdueSql('Locked', 'locked') };

const bounded = <T extends { count: number }>(row: T): T & Bounded => ({
  ...row,
  count: Math.min(row.count, mostCounted),
  isMinimum: row.count > mostCounted,
});

/** Requests about all tenants share the pool as if they came from one tenant with an empty name. */
export const requesterOfOperations = (tenantId = ''): Requester => ({ tenant: tenantId, member: 'operations' });

/** `lanes` are the values of the outbox's column `lane`: the services that rows are delivered to. */
export function createOperationsStore(pool: SharedPool, lanes: readonly string[]) {
  const undelivered = undeliveredSql(lanes);

  /**
   * Runs `sql` with index scans only. With outdated statistics, Postgres might otherwise sort a million rows for a
   * count.
   */
  const inIndexOrder = <R extends pg.QueryResultRow>(tenantId: string | undefined, sql: string, values: unknown[]) =>
    pool.transaction(requesterOfOperations(tenantId), async (client) => {
      await client.query(planSql);
      return (await client.query<R>(sql, values)).rows;
    });

  return {
    async quarantined(tenantId: string | undefined): Promise<Quarantined> {
      const { rows } = await pool.query<{ count: number; released: number }>(
        requesterOfOperations(tenantId),
        quarantineSql,
        [tenantId],
      );
      const found = bounded(rows[0] ?? { count: 0, released: 0 });
      return { ...found, released: Math.min(found.released, found.count) };
    },

    /**
     * Counts the outbox rows that are due now. If many rows of all tenants are due, a tenant's count is only a minimum.
     */
    async undelivered(tenantId: string | undefined, now: Date): Promise<Undelivered> {
      const [row] = await inIndexOrder<Undelivered>(tenantId, undelivered, [tenantId, now]);
      const found = row ?? { count: 0, oldest: null, isMinimum: false };
      const isMinimum = found.isMinimum || found.count > mostCounted;
      return { ...found, count: Math.min(found.count, mostCounted), isMinimum };
    },

    /** Returns at most 200 definitions of the tenant that have drafts or locked forms. */
    async definitions(tenantId: string): Promise<string[]> {
      const rows = await inIndexOrder<{ definitionId: string }>(tenantId, definitionsSql, [tenantId]);
      return rows.map(({ definitionId }) => definitionId);
    },

    /** Counts the tenant's forms that have been due for the stage for more than `grace` milliseconds. */
    async overdue(
      stage: 'lock' | 'delete',
      { tenantId, policies, now, grace }: { tenantId: string; policies: readonly Policy[]; now: Date; grace: number },
    ): Promise<Overdue> {
      const periods = policies.map(({ retention }) => (stage === 'lock' ? retention.lockAfter : retention.deleteAfter));
      const before = periods.map((period) => earlier(now, period + grace));
      const values = [tenantId, policies.map(({ definitionId }) => definitionId), before, periods];
      const [row] = await inIndexOrder<{ count: number; oldest: Date | null }>(tenantId, overdueSqls[stage], values);
      return bounded(row ?? { count: 0, oldest: null });
    },
  };
}
