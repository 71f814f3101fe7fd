// Stores subscriptions and their criteria in Postgres.
import type { Queryable } from '../../service/postgres/postgres.ts';
import { maxPageBytes, type PageRow, pageSql } from '../list-sql.ts';
import { type Criterion, mostCompared, mostCriteria, type Subscription } from './subscription.ts';

interface SubscriptionRow {
  typeId: string;
  subscriberId: string;
  criteria: { description: string | null; correlationId: string | null; context: Record<string, unknown> }[];
}

/**
 * A subscription with its criteria, oldest first. Criteria that an earlier version stored may exceed today's limits.
 * Criteria beyond the size of a page are left out, so that no subscription exhausts the memory of this process.
 */
const columns = `s.type_id AS "typeId", s.subscriber_id AS "subscriberId", ARRAY(
  SELECT json_build_object('description', c.description, 'correlationId', c.correlation_id, 'context', c.context)
  FROM (
    SELECT *, sum(octet_length(context::text)) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS size FROM (
      SELECT * FROM subscription_criteria WHERE subscriber_id = s.subscriber_id AND type_id = s.type_id
      ORDER BY id LIMIT ${mostCriteria}) oldest) c
  WHERE c.size <= ${maxPageBytes} ORDER BY c.id) AS criteria`;

export type SubscriptionStore = ReturnType<typeof createSubscriptionStore>;

export function createSubscriptionStore(database: Queryable) {
  return { ...createReads(database), ...createWrites(database), ...createCriteriaWrites(database) };
}

function createReads(database: Queryable) {
  return {
    async find(tenant: string, typeId: string, subscriberId: string): Promise<Subscription | undefined> {
      const { rows } = await database.query<SubscriptionRow>(
        `SELECT ${columns} FROM subscriptions s WHERE s.tenant = $1 AND s.type_id = $2 AND s.subscriber_id = $3`,
        [tenant, typeId, subscriberId],
      );
      return rows[0] && toSubscription(rows[0]);
    },

    /** Returns a page, which has fewer than `top` subscriptions if their criteria are large. */
    async list(
      tenant: string,
      typeId: string,
      { top, after, match }: { top: number; after: string | undefined; match: Criterion | undefined },
    ): Promise<{ items: Subscription[]; hasMore: boolean }> {
      const values: unknown[] = [tenant, typeId];
      const conditions: string[] = [];
      if (match?.correlationId !== undefined)
        conditions.push(`AND correlation_id = $${values.push(match.correlationId)}`);
      if (match?.context !== undefined && Object.keys(match.context).length > 0)
        conditions.push(`AND context @> $${values.push(JSON.stringify(match.context))}::jsonb`);
      const matches =
        conditions.length === 0
          ? ''
          : `AND s.subscriber_id IN (
             SELECT subscriber_id FROM subscription_criteria
             WHERE tenant = $1 AND type_id = $2 ${conditions.join(' ')})`;
      const sql = pageSql({ top }, values, {
        first: `$${values.push(after ?? '')}::text`,
        position: '"subscriberId"',
        sizes: ['criteria'],
        rowAfter: (subscriberId) =>
          `SELECT ${columns} FROM subscriptions s
           WHERE s.tenant = $1 AND s.type_id = $2 AND s.subscriber_id > ${subscriberId} ${matches}
           ORDER BY s.subscriber_id LIMIT 1`,
      });
      const { rows } = await database.query<SubscriptionRow & PageRow>(sql, values);
      return { items: rows.map(toSubscription), hasMore: rows.at(-1)?.more === true };
    },
  };
}

function createWrites(database: Queryable) {
  return {
    /** Creates the subscription, or locks the existing one. Requires a transaction. */
    async lockOrCreate(
      tenant: string,
      typeId: string,
      subscriberId: string,
    ): Promise<{ created: boolean; everything: boolean }> {
      const created = await database.query(
        `INSERT INTO subscriptions (subscriber_id, type_id, tenant, everything) VALUES ($1, $2, $3, false)
         ON CONFLICT (subscriber_id, type_id) DO NOTHING`,
        [subscriberId, typeId, tenant],
      );
      if (created.rowCount === 1) return { created: true, everything: false };
      const { rows } = await database.query<{ everything: boolean }>(
        'SELECT everything FROM subscriptions WHERE subscriber_id = $1 AND type_id = $2 FOR UPDATE',
        [subscriberId, typeId],
      );
      if (!rows[0]) throw Object.assign(new Error('a concurrent request removed the subscription'), { code: '40001' });
      return { created: false, everything: rows[0].everything };
    },

    /** Locks the subscription. Resolves to false if it does not exist. Requires a transaction. */
    async lock(tenant: string, typeId: string, subscriberId: string): Promise<boolean> {
      const { rowCount } = await database.query(
        'SELECT 1 FROM subscriptions WHERE tenant = $1 AND type_id = $2 AND subscriber_id = $3 FOR UPDATE',
        [tenant, typeId, subscriberId],
      );
      return rowCount === 1;
    },

    async remove(tenant: string, typeId: string, subscriberId: string): Promise<boolean> {
      const { rowCount } = await database.query(
        'DELETE FROM subscriptions WHERE tenant = $1 AND type_id = $2 AND subscriber_id = $3',
        [tenant, typeId, subscriberId],
      );
      return rowCount === 1;
    },
  };
}

function createCriteriaWrites(database: Queryable) {
  return {
    /**
     * Adds a criterion, unless the subscription has one that matches the same events (`known`), or has its maximum of
     * criteria (`full`). Requires a transaction that holds the lock of the subscription.
     */
    async addCriterion(
      tenant: string,
      typeId: string,
      subscriberId: string,
      criterion: Criterion,
    ): Promise<'added' | 'known' | 'full'> {
      const { rows } = await database.query<{ outcome: 'added' | 'known' | 'full' }>(
        `WITH present AS (
           SELECT count(*) < $7 AS has_room, coalesce(bool_or(${sameMatch}), false) AS known
           FROM subscription_criteria WHERE subscriber_id = $1 AND type_id = $2),
         added AS (
           INSERT INTO subscription_criteria (subscriber_id, type_id, tenant, description, correlation_id, context)
           SELECT $1, $2, $5, $6, $3, $4 FROM present WHERE has_room AND NOT known)
         SELECT CASE WHEN known THEN 'known' WHEN has_room THEN 'added' ELSE 'full' END AS outcome FROM present`,
        [...criterionValues(typeId, subscriberId, criterion), tenant, criterion.description ?? null, mostCriteria],
      );
      return rows[0]?.outcome ?? 'full';
    },

    /**
     * Removes the criteria that match the same events as this one, and the subscription if none is left. Resolves to
     * false if there is no such criterion. Requires a transaction that holds the lock of the subscription.
     */
    async removeCriterion(typeId: string, subscriberId: string, criterion: Criterion): Promise<boolean> {
      const { rowCount } = await database.query(
        `DELETE FROM subscription_criteria WHERE subscriber_id = $1 AND type_id = $2 AND ${sameMatch}`,
        criterionValues(typeId, subscriberId, criterion),
      );
      if (!rowCount) return false;
      await database.query(
        `DELETE FROM subscriptions WHERE subscriber_id = $1 AND type_id = $2 AND NOT EXISTS (
           SELECT FROM subscription_criteria c WHERE c.subscriber_id = $1 AND c.type_id = $2)`,
        [subscriberId, typeId],
      );
      return true;
    },

    /**
     * Replaces the criteria of a subscription. If the new list is empty, the subscription matches every event. Returns
     * the correlation ids of which the subscription now has more or larger criteria.
     */
    async setCriteria(
      tenant: string,
      typeId: string,
      subscriberId: string,
      criteria: Criterion[],
    ): Promise<(string | null)[]> {
      const { rows: before } = await database.query<StoredSize>(
        `DELETE FROM subscription_criteria WHERE subscriber_id = $1 AND type_id = $2 ${storedSize}`,
        [subscriberId, typeId],
      );
      await database.query('UPDATE subscriptions SET everything = $3 WHERE subscriber_id = $1 AND type_id = $2', [
        subscriberId,
        typeId,
        criteria.length === 0,
      ]);
      const { rows: after } = await database.query<StoredSize>(
        `INSERT INTO subscription_criteria (subscriber_id, type_id, tenant, description, correlation_id, context)
         SELECT $1, $2, $3, c ->> 'description', c ->> 'correlationId', coalesce(c -> 'context', '{}')
         FROM jsonb_array_elements($4::jsonb) WITH ORDINALITY AS given(c, nth) ORDER BY nth
         ${storedSize}`,
        [subscriberId, typeId, tenant, JSON.stringify(criteria)],
      );
      return grown(before, after);
    },

    /**
     * Returns whether the tenant has too many or too large criteria with one of these correlation ids. Null stands for
     * criteria without a correlation id.
     */
    async exceedsCompared(tenant: string, correlationIds: (string | null)[]): Promise<boolean> {
      const some = (condition: string) => `SELECT correlation_id, context FROM subscription_criteria
        WHERE tenant = $1 AND ${condition} LIMIT ${mostCompared.criteria + 1}`;
      const { rowCount } = await database.query(
        `SELECT FROM (
           SELECT compared.* FROM unnest($2::text[]) AS given(id), LATERAL (${some('correlation_id = given.id')}) AS compared
           UNION ALL (${some('correlation_id IS NULL AND $3')})) AS compared
         GROUP BY correlation_id
         HAVING count(*) > ${mostCompared.criteria} OR sum(octet_length(context::text)) > ${mostCompared.bytes} LIMIT 1`,
        [tenant, [...new Set(correlationIds)].filter((id) => id !== null), correlationIds.includes(null)],
      );
      return rowCount === 1;
    },
  };
}

interface StoredSize {
  correlationId: string | null;
  bytes: number;
}

const storedSize = 'RETURNING correlation_id AS "correlationId", octet_length(context::text) AS bytes';

/** Returns the correlation ids of which `after` has more criteria than `before`, or more bytes of them. */
function grown(before: StoredSize[], after: StoredSize[]): (string | null)[] {
  const sizesOf = (sizes: StoredSize[], id: string | null) => sizes.filter(({ correlationId }) => correlationId === id);
  const bytesOf = (sizes: StoredSize[]) => sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  return [...new Set(after.map(({ correlationId }) => correlationId))].filter((id) => {
    const [old, present] = [sizesOf(before, id), sizesOf(after, id)];
    return present.length > old.length || bytesOf(present) > bytesOf(old);
  });
}

/** SQL that is true for criteria that match the same events. Descriptions are not compared. */
const sameMatch = 'correlation_id IS NOT DISTINCT FROM $3::text AND context = $4::jsonb';

function criterionValues(typeId: string, subscriberId: string, { correlationId, context }: Criterion): unknown[] {
  return [subscriberId, typeId, correlationId ?? null, JSON.stringify(context ?? {})];
}

function toSubscription({ typeId, subscriberId, criteria }: SubscriptionRow): Subscription {
  return {
    typeId,
    subscriberId,
    criteria: criteria.map(({ description, correlationId, context }) => ({
      ...(description !== null && { description }),
      ...(correlationId !== null && { correlationId }),
      ...(Object.keys(context).length > 0 && { context }),
    })),
  };
}
