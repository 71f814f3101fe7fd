// Counts the quarantine, the undelivered rows of the outbox, and overdue forms, of all tenants or of one. No statement reads more than a few thousand index entries, however much is waiting.
import type { Claim } from '../../service/limits/fair-queue.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import type { Policy } from '../expiry/expiry.ts';

/** A count that stops at a limit. */
export interface Bounded {
  count: number;
  isMinimum: boolean;
}

export interface Quarantined extends Bounded {
  /** Of these, items that the next attempt will retry. */
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

/** Counts stop here. */
const mostCounted = 1_000;
/** Rows of the outbox that are examined to find those of one tenant. */
const mostExamined = 10_000;
/** Definitions of a tenant whose forms are examined. */
const mostDefinitions = 200;

const quarantineSql = `
SELECT count(*)::int AS count, (count(*) FILTER (WHERE released))::int AS released
FROM (SELECT released FROM quarantine WHERE ($1::text IS NULL OR tenant_id = $1) LIMIT ${mostCounted + 1}) q`;

// One scan for each lane, because the index of due rows begins with the lane. A tenant's rows have no index of their
// own, which each insert would pay for.
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

/** One index lookup for each definition, not for each form. */
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

/** Operators share the pool under one tenant with an empty name. */
export const claimOf = (tenantId = ''): Claim => ({ tenant: tenantId, member: 'operations' });

/** `lanes` are the values of the outbox's column `lane`. */
export function createOperationsStore(pool: SharedPool, lanes: readonly string[]) {
  const undelivered = undeliveredSql(lanes);
  return {
    async quarantined(tenantId: string | undefined): Promise<Quarantined> {
      const { rows } = await pool.query<{ count: number; released: number }>(claimOf(tenantId), quarantineSql, [
        tenantId,
      ]);
      const found = bounded(rows[0] ?? { count: 0, released: 0 });
      return { ...found, released: Math.min(found.released, found.count) };
    },

    /** Rows that are due now. With a tenant, a minimum if many rows of all tenants are due. */
    async undelivered(tenantId: string | undefined, now: Date): Promise<Undelivered> {
      const { rows } = await pool.query<Undelivered>(claimOf(tenantId), undelivered, [tenantId, now]);
      const found = rows[0] ?? { count: 0, oldest: null, isMinimum: false };
      return {
        ...found,
        count: Math.min(found.count, mostCounted),
        isMinimum: found.isMinimum || found.count > mostCounted,
      };
    },

    /** Returns the definitions that have drafts or locked forms, at most 200. */
    async definitions(tenantId: string): Promise<string[]> {
      const { rows } = await pool.query<{ definitionId: string }>(claimOf(tenantId), definitionsSql, [tenantId]);
      return rows.map(({ definitionId }) => definitionId);
    },

    /** Counts the tenant's forms that were due for the stage before `grace` milliseconds. */
    async overdue(
      stage: 'lock' | 'delete',
      { tenantId, policies, now, grace }: { tenantId: string; policies: readonly Policy[]; now: Date; grace: number },
    ): Promise<Overdue> {
      const periods = policies.map(({ retention }) => (stage === 'lock' ? retention.lockAfter : retention.deleteAfter));
      const before = periods.map((period) => new Date(now.getTime() - period - grace));
      const values = [tenantId, policies.map(({ definitionId }) => definitionId), before, periods];
      const { rows } = await pool.query<{ count: number; oldest: Date | null }>(
        claimOf(tenantId),
        overdueSqls[stage],
        values,
      );
      return bounded(rows[0] ?? { count: 0, oldest: null });
    },
  };
}
