// Stores pending deliveries in Postgres: one row and one job for each combination of event, type and subscriber.
// Neither the row nor the job contains an address or the text of a notice.
import type { Queryable } from '../../service/postgres/postgres.ts';
import { storedTraceparent } from '../../service/tracing/tracing.ts';
import { jobSql } from '../job-payload.ts';

export interface Delivery {
  /** The event's sequence. */
  event: string;
  typeId: string;
  subscriberId: string;
}

export interface RoutedEvent {
  sequence: string;
  tenant: string;
  correlationId?: string | undefined;
  context: Record<string, unknown>;
}

const key = 'event = $1 AND type_id = $2 AND subscriber_id = $3';
const values = ({ event, typeId, subscriberId }: Delivery): unknown[] => [event, typeId, subscriberId];

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;

export function createDeliveryStore(database: Queryable) {
  return {
    /**
     * Creates the deliveries of an event to the subscribers of a type, with their jobs, and returns the number of
     * deliveries. A subscription without criteria matches every event. Otherwise one of its criteria must match: its
     * correlation id is equal or absent, and its context keys are equal. Deliveries of a tenant with many waiting
     * deliveries get a lower priority.
     */
    async route(event: RoutedEvent, typeId: string, now: Date): Promise<number> {
      const { rowCount } = await database.query(
        `WITH matched AS (
           SELECT subscriber_id FROM subscriptions WHERE tenant = $2 AND type_id = $3 AND everything
           UNION SELECT subscriber_id FROM subscription_criteria c
             WHERE tenant = $2 AND type_id = $3 AND correlation_id = $4 AND ${contextMatches}
           UNION SELECT subscriber_id FROM subscription_criteria c
             WHERE tenant = $2 AND type_id = $3 AND correlation_id IS NULL AND ${contextMatches}),
         made AS (
           INSERT INTO deliveries (event, type_id, subscriber_id, created, tenant)
           SELECT $1, $3, subscriber_id, $6, $2 FROM matched ON CONFLICT DO NOTHING RETURNING *),
         waiting AS (SELECT count(*) AS n FROM (SELECT FROM deliveries WHERE tenant = $2 LIMIT 1000) AS own)
         SELECT (graphile_worker.add_job('deliver',
           ${jobSql("'event', event::text, 'typeId', type_id, 'subscriberId', subscriber_id", '$7')},
           max_attempts => 32767, job_key => concat_ws(':', 'deliver', event, type_id, subscriber_id),
           priority => (((SELECT n FROM waiting) + row_number() OVER ()) / 10)::integer)).id FROM made`,
        [
          ...[event.sequence, event.tenant, typeId, event.correlationId ?? null, JSON.stringify(event.context), now],
          storedTraceparent(),
        ],
      );
      return rowCount ?? 0;
    },

    async isPending(delivery: Delivery): Promise<boolean> {
      const { rowCount } = await database.query(`SELECT 1 FROM deliveries WHERE ${key}`, values(delivery));
      return rowCount === 1;
    },

    /** Deletes a completed or dropped delivery, and the event after its last delivery. Requires a transaction. */
    async finish(delivery: Delivery): Promise<void> {
      // If the last two deliveries finish concurrently, the second must see that the first is deleted.
      await database.query('SELECT 1 FROM events WHERE sequence = $1 FOR UPDATE', [delivery.event]);
      await database.query(`DELETE FROM deliveries WHERE ${key}`, values(delivery));
      await database.query(
        `DELETE FROM events e WHERE sequence = $1 AND routed IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event = e.sequence)`,
        [delivery.event],
      );
    },

    async markFailed(delivery: Delivery, refused: boolean): Promise<void> {
      await database.query(`UPDATE deliveries SET refused = $4 WHERE ${key} AND refused <> $4`, [
        ...values(delivery),
        refused,
      ]);
    },

    /** Deletes events that were routed before `limit` and have no deliveries left. */
    async forgetEvents(limit: Date): Promise<void> {
      await database.query(
        `DELETE FROM events e WHERE routed < $1 AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event = e.sequence)`,
        [limit],
      );
    },

    /** Returns the number of pending deliveries, and the time of the oldest. */
    async waiting(): Promise<{ count: number; oldest: Date | null }> {
      const { rows } = await database.query<{ count: number; oldest: Date | null }>(
        'SELECT count(*)::integer AS count, min(created) AS oldest FROM deliveries WHERE NOT quarantined',
      );
      return rows[0] ?? { count: 0, oldest: null };
    },
  };
}

const contextMatches = `NOT EXISTS (
  SELECT 1 FROM jsonb_each(c.context) wanted WHERE $5::jsonb -> wanted.key IS DISTINCT FROM wanted.value)`;
