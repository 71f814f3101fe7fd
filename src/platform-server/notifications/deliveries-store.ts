// Stores pending deliveries in Postgres: one row and one job for each combination of event, notification type and
// subscriber. Rows and jobs contain no addresses and no texts of notices.
import type { Queryable } from '../../service/postgres/postgres.ts';
import { storedTraceparent } from '../../service/tracing/tracing.ts';
import { deleteOldRows } from '../batches.ts';
import type { EventHead } from '../events/event.ts';
import { isUnrouted } from '../events/unrouted-sql.ts';
import { jobSql } from '../job-payload.ts';

export interface Delivery {
  /** The sequence number of the event. */
  event: string;
  typeId: string;
  subscriberId: string;
}

export type RoutedEvent = Pick<EventHead, 'sequence' | 'tenant' | 'correlationId'>;

/** The subscribers of a type to which one call routes an event. */
export interface RoutingPage {
  typeId: string;
  /** The id of the last subscriber of the page before; '' for the first page. */
  after: string;
  /** Maximum number of subscribers. */
  size: number;
}

/**
 * The state of a delivery. `gone`: nothing is left to deliver. `early`: an earlier event about the same form is not
 * delivered yet.
 */
export type DeliveryState = 'gone' | 'early' | 'due';

/** Maximum number of a tenant's notices up to which its events are routed at once. */
const mostDeliveries = 10_000;

const key = 'event = $1 AND type_id = $2 AND subscriber_id = $3';
/** SQL that builds the key of a delivery's job from the columns of `deliveries`. */
export const deliveryJobKey = "concat_ws(':', 'deliver', event, type_id, subscriber_id)";
const payload = (trace: string) =>
  jobSql("'event', event::text, 'typeId', type_id, 'subscriberId', subscriber_id", trace);
const values = ({ event, typeId, subscriberId }: Delivery): unknown[] => [event, typeId, subscriberId];

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;

export function createDeliveryStore(database: Queryable) {
  return {
    ...createReads(database),

    /**
     * Creates the deliveries of an event to a page of subscribers of a notification type, and a job for each delivery.
     * Returns the id of the page's last subscriber if further ones may follow. A subscription without criteria matches
     * every event. Otherwise, at least one of its criteria must match. A criterion matches if its correlation id is
     * absent or equals the event's, and if the event's context contains every member of the criterion's context. If a
     * tenant has many waiting deliveries, further ones get a lower priority: one of 101 levels, because the library
     * stores a priority in 16 bits.
     */
    async route(event: RoutedEvent, { typeId, after, size }: RoutingPage, now: Date): Promise<string | undefined> {
      const { rows } = await database.query<{ last: string | null }>(routeSql, [
        ...[event.sequence, event.tenant, typeId, event.correlationId, now, storedTraceparent()],
        ...[after, size],
      ]);
      return rows[0]?.last ?? undefined;
    },

    /**
     * Adds another job for a delivery whose job is running. The new job runs after 2 s, plus 10 ms for each of the
     * tenant's first 6,000 waiting deliveries. A tenant with at most 6,000 waiting deliveries therefore causes at most
     * 100 such jobs a second.
     */
    async postpone(delivery: Delivery): Promise<void> {
      await database.query(
        `SELECT (graphile_worker.add_job('deliver', ${payload('$4')}, max_attempts => 32767, job_key => ${deliveryJobKey},
           priority => (least(n, 1000) / 10)::integer, run_at => now() + (2 + n / 100.0) * interval '1 second')).id
         FROM deliveries own,
           LATERAL (SELECT count(*) AS n FROM (SELECT FROM deliveries WHERE tenant = own.tenant LIMIT 6000) AS all_own) AS waiting
         WHERE ${key}`,
        [...values(delivery), storedTraceparent()],
      );
    },

    /**
     * Deletes a completed or dropped delivery. Also deletes the event if it is routed and has no other delivery. The
     * next notice about the same form to the same subscriber becomes due. Requires a transaction.
     */
    async finish(delivery: Delivery): Promise<void> {
      await database.query(
        `SELECT graphile_worker.reschedule_jobs(array_agg(id), run_at => now()) FROM graphile_worker.jobs
         WHERE locked_at IS NULL AND key = (
           SELECT ${deliveryJobKey} FROM deliveries WHERE subscriber_id = $3 AND event > $1 AND NOT quarantined
             AND correlation_id = (SELECT correlation_id FROM deliveries WHERE ${key}) ORDER BY event LIMIT 1)
         HAVING count(*) > 0`,
        values(delivery),
      );
      // The lock matters if the last two deliveries finish concurrently: the second must see that the first is deleted.
      // While the event is being routed, its row is locked for the time of a page. The delivery does not wait for it.
      await database.query('SELECT 1 FROM events WHERE sequence = $1 AND routed IS NOT NULL FOR UPDATE', [
        delivery.event,
      ]);
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

    /** Deletes events that were routed before `limit` and have no deliveries. Stops early if `signal` is aborted. */
    async forgetEvents(limit: Date, signal: AbortSignal): Promise<void> {
      const unless = 'EXISTS (SELECT FROM deliveries d WHERE d.event = t.sequence)';
      await deleteOldRows(database, { table: 'events', column: 'routed', unless }, limit, signal);
    },
  };
}

function createReads(database: Queryable) {
  return {
    /**
     * True if the event may be routed to its next page of subscribers. False if its tenant has too many deliveries.
     * Later deliveries may wait for this event (`stateOf`), so the tenant's first event is routed nevertheless, once
     * nothing earlier is left to deliver.
     */
    async hasRoom({ sequence, tenant }: Pick<RoutedEvent, 'sequence' | 'tenant'>): Promise<boolean> {
      const { rowCount } = await database.query(
        `SELECT WHERE (SELECT count(*) FILTER (WHERE NOT quarantined)
             FROM (SELECT quarantined FROM deliveries WHERE tenant = $2 LIMIT $3 + 5000) AS own) < $3
           OR NOT EXISTS (SELECT FROM deliveries WHERE tenant = $2 AND event <= $1 AND NOT quarantined)
             AND NOT EXISTS (SELECT FROM events earlier
               WHERE earlier.tenant = $2 AND earlier.sequence < $1 AND ${isUnrouted('earlier')})`,
        [sequence, tenant, mostDeliveries],
      );
      return rowCount === 1;
    },

    /** True if the event has deliveries. */
    async hasAny(event: string): Promise<boolean> {
      return (await database.query('SELECT FROM deliveries WHERE event = $1 LIMIT 1', [event])).rowCount === 1;
    },

    /** Returns the state of a delivery. An earlier notice or event that is quarantined does not delay it. */
    async stateOf(delivery: Delivery): Promise<DeliveryState> {
      const { rows } = await database.query<{ early: boolean }>(
        `SELECT EXISTS (SELECT FROM deliveries earlier WHERE earlier.subscriber_id = own.subscriber_id
             AND earlier.correlation_id = own.correlation_id AND earlier.event < own.event AND NOT earlier.quarantined)
           OR EXISTS (SELECT FROM events earlier WHERE earlier.tenant = own.tenant
             AND earlier.correlation_id = own.correlation_id AND earlier.sequence < own.event AND ${isUnrouted('earlier')}) AS early
         FROM deliveries own WHERE ${key}`,
        values(delivery),
      );
      if (!rows[0]) return 'gone';
      return rows[0].early ? 'early' : 'due';
    },

    /** Returns the number of pending deliveries, and the time of the oldest one. */
    async waiting(): Promise<{ count: number; oldest: Date | null }> {
      const { rows } = await database.query<{ count: number; oldest: Date | null }>(
        'SELECT count(*)::integer AS count, min(created) AS oldest FROM deliveries WHERE NOT quarantined',
      );
      return rows[0] ?? { count: 0, oldest: null };
    },
  };
}

/** The expression makes a copy in memory. Each comparison would otherwise decompress a large context again. */
const eventContext = `context || '{}'`;

const contextMatches = `NOT EXISTS (
  SELECT 1 FROM jsonb_each(c.context) wanted WHERE (SELECT context FROM event) -> wanted.key IS DISTINCT FROM wanted.value)`;

/** $1 event, $2 tenant, $3 type, $4 correlation id, $5 now, $6 trace, $7 last subscriber before the page, $8 size. */
const routeSql = `
WITH event AS MATERIALIZED (SELECT ${eventContext} AS context FROM events WHERE sequence = $1),
matched AS MATERIALIZED (
  (SELECT subscriber_id FROM subscriptions WHERE tenant = $2 AND type_id = $3 AND everything AND subscriber_id > $7
    ORDER BY subscriber_id LIMIT $8)
  UNION SELECT subscriber_id FROM subscription_criteria c
    WHERE tenant = $2 AND type_id = $3 AND correlation_id = $4 AND subscriber_id > $7 AND ${contextMatches}
  UNION SELECT subscriber_id FROM subscription_criteria c
    WHERE tenant = $2 AND type_id = $3 AND correlation_id IS NULL AND subscriber_id > $7 AND ${contextMatches}
  ORDER BY subscriber_id LIMIT $8),
made AS (
  INSERT INTO deliveries (event, type_id, subscriber_id, created, tenant, correlation_id)
  SELECT $1, $3, subscriber_id, $5, $2, $4 FROM matched ON CONFLICT DO NOTHING RETURNING *),
waiting AS (SELECT count(*) AS n FROM (SELECT FROM deliveries WHERE tenant = $2 LIMIT 1000) AS own),
specs AS (
  SELECT ROW('deliver', ${payload('$6')}, NULL, NULL, 32767, ${deliveryJobKey},
    least((SELECT n FROM waiting) + row_number() OVER (), 1000) / 10, NULL)::graphile_worker.job_spec AS spec
  FROM made)
SELECT (SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg(spec) FROM specs))) AS made,
  (SELECT max(subscriber_id) FROM matched HAVING count(*) = $8) AS last`;
