// Stores subscriptions and their criteria in Postgres.
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { Criterion, Subscription } from './subscription.ts';

interface SubscriptionRow {
  typeId: string;
  subscriberId: string;
  criteria: { description: string | null; correlationId: string | null; context: Record<string, unknown> }[];
}

const columns = `s.type_id AS "typeId", s.subscriber_id AS "subscriberId", ARRAY(
  SELECT json_build_object('description', c.description, 'correlationId', c.correlation_id, 'context', c.context)
  FROM subscription_criteria c WHERE c.subscriber_id = s.subscriber_id AND c.type_id = s.type_id ORDER BY c.id) AS criteria`;

export type SubscriptionStore = ReturnType<typeof createSubscriptionStore>;

export function createSubscriptionStore(database: Queryable) {
  return { ...createReads(database), ...createWrites(database) };
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

    async list(
      tenant: string,
      typeId: string,
      options: { top: number; after: string | undefined; match: Criterion | undefined },
    ): Promise<Subscription[]> {
      const { rows } = await database.query<SubscriptionRow>(
        `SELECT ${columns} FROM subscriptions s
         WHERE s.tenant = $1 AND s.type_id = $2 AND s.subscriber_id > $3 AND ($4::text IS NULL OR EXISTS (
           SELECT 1 FROM subscription_criteria c WHERE c.subscriber_id = s.subscriber_id AND c.type_id = s.type_id
             AND c.correlation_id = $4))
         ORDER BY s.subscriber_id LIMIT $5`,
        [tenant, typeId, options.after ?? '', options.match?.correlationId ?? null, options.top + 1],
      );
      return rows.map(toSubscription);
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

    /** Replaces the criteria of a subscription. If the new list is empty, the subscription matches every event. */
    async setCriteria(tenant: string, typeId: string, subscriberId: string, criteria: Criterion[]): Promise<void> {
      await database.query('DELETE FROM subscription_criteria WHERE subscriber_id = $1 AND type_id = $2', [
        subscriberId,
        typeId,
      ]);
      await database.query('UPDATE subscriptions SET everything = $3 WHERE subscriber_id = $1 AND type_id = $2', [
        subscriberId,
        typeId,
        criteria.length === 0,
      ]);
      for (const { description, correlationId, context } of criteria)
        await database.query(
          `INSERT INTO subscription_criteria (subscriber_id, type_id, tenant, description, correlation_id, context)
           VALUES ($1, $2, $3, $4, $5, $6)`,
          [subscriberId, typeId, tenant, description ?? null, correlationId ?? null, JSON.stringify(context ?? {})],
        );
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
