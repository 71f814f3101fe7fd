// Stores accepted events in Postgres. An event and the job that routes it are committed together.
import { escapeLiteral } from 'pg';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { storedTraceparent } from '../../service/tracing/tracing.ts';
import { deleteOldRows } from '../batches.ts';
import { jobSql } from '../job-payload.ts';
import {
  type EventHead,
  idempotencyKey,
  type NewEvent,
  type RoutingPosition,
  type StoredEvent,
  type UnroutedEvent,
} from './event.ts';
import { isUnrouted } from './unrouted-sql.ts';

const headColumns = 'sequence, tenant, namespace, name, correlation_id AS "correlationId"';
const columns = `${headColumns}, id, occurred, context::text AS context, payload::text AS payload`;
/**
 * Maximum number of a tenant's events that are not routed yet, and of its notices. Fewer may be waiting when a large
 * event arrives, so that the texts of all events have at most some gigabytes.
 */
const mostWaiting = { small: 10_000, large: 2_000 };
/** Number of characters of a large event. */
const large = 65_536;
/** Number of further events that are accepted if they may use the reserve. */
const reserve = 10_000;
/** Maximum number of idempotency keys of a tenant. Its oldest ones beyond this number are deleted. */
const mostKeys = 1_000_000;
/** `full`: the tenant has too many waiting events and notices. */
export type Acceptance = 'stored' | 'repeated' | 'full';

/** The priority of a routing job: one of 101 levels, because the library stores a priority in 16 bits. */
const priority = 'priority => (least(n, 1000) / 10)::integer';

export type EventStore = ReturnType<typeof createEventStore>;

/** `keyOf` returns the key by which a repeated event is recognised. A tenant keeps at most `most` of these keys. */
export function createEventStore(
  database: Queryable,
  keyOf: typeof idempotencyKey = idempotencyKey,
  most: number = mostKeys,
) {
  async function oneOf<Event extends EventHead>(sql: string, sequence: string): Promise<Event | undefined> {
    return (await database.query<Event>(sql, [sequence])).rows[0];
  }

  return {
    /**
     * Stores the event and its routing job in one statement. If an event with this idempotency key exists in the same
     * tenant and namespace, or if the tenant has too many waiting events and notices, stores nothing. If a tenant has
     * many events that are not routed yet, further ones get a lower priority, so that they do not delay those of other
     * tenants. `isReserved` lets the event use the reserve.
     */
    async accept(event: NewEvent, now: Date, isReserved = false): Promise<Acceptance> {
      const [context, payload] = [JSON.stringify(event.context), JSON.stringify(event.payload)];
      const most = context.length + payload.length > large ? mostWaiting.large : mostWaiting.small;
      const key = keyOf(event.context) ?? null;
      const { rowCount } = await database.query(acceptSql, [
        ...[event.tenant, event.namespace, key, now, event.name, event.occurred, event.correlationId ?? null],
        ...[context, payload, storedTraceparent(), isReserved ? most + reserve : most],
      ]);
      if (rowCount === 1) return 'stored';
      const known = 'SELECT FROM event_keys WHERE tenant = $1 AND namespace = $2 AND key = $3';
      const { rowCount: keys } = await database.query(known, [event.tenant, event.namespace, key]);
      return keys === 1 ? 'repeated' : 'full';
    },

    /**
     * Locks an event that is not routed yet. Returns undefined if the event is already routed. Requires a transaction.
     */
    lockUnrouted(sequence: string): Promise<UnroutedEvent | undefined> {
      return oneOf(
        `SELECT ${headColumns}, routed_to AS "routedTo" FROM events WHERE sequence = $1 AND routed IS NULL FOR UPDATE`,
        sequence,
      );
    },

    findHead(sequence: string): Promise<EventHead | undefined> {
      return oneOf(`SELECT ${headColumns} FROM events WHERE sequence = $1`, sequence);
    },

    find(sequence: string): Promise<StoredEvent | undefined> {
      return oneOf(`SELECT ${columns} FROM events WHERE sequence = $1`, sequence);
    },

    /**
     * Adds another routing job for an event whose job is running. The new job runs after 2 s, plus 10 ms for each of
     * the tenant's first 6,000 events that are not routed yet. `attempts` is the number of its failures so far, which
     * count for the quarantine.
     */
    async postpone(sequence: string, attempts: number): Promise<void> {
      await database.query(
        `SELECT (graphile_worker.reschedule_jobs(ARRAY[(graphile_worker.add_job('route-event',
           ${jobSql("'event', sequence::text", '$3')}, max_attempts => 32767, ${priority},
           run_at => now() + (2 + n / 100.0) * interval '1 second')).id], attempts => $2)).id
         FROM events own, LATERAL (
           SELECT count(*) AS n FROM (
             SELECT FROM events WHERE tenant = own.tenant AND routed IS NULL LIMIT 6000) AS all_own) AS waiting
         WHERE sequence = $1 AND routed IS NULL`,
        [sequence, attempts, storedTraceparent()],
      );
    },

    /** Records how far the event is routed. */
    async saveRoutedTo(sequence: string, position: RoutingPosition): Promise<void> {
      await database.query('UPDATE events SET routed_to = $2 WHERE sequence = $1', [sequence, position]);
    },

    async markRouted(sequence: string, now: Date): Promise<void> {
      await database.query('UPDATE events SET routed = $2 WHERE sequence = $1', [sequence, now]);
    },

    async remove(sequence: string): Promise<void> {
      await database.query('DELETE FROM events WHERE sequence = $1', [sequence]);
    },

    /** Deletes idempotency keys that were accepted before `limit`. Stops early if `signal` is aborted. */
    async forgetKeys(limit: Date, signal: AbortSignal): Promise<void> {
      await deleteOldRows(database, keyTable, limit, signal);
    },

    /**
     * Deletes the oldest idempotency keys of tenants that have too many. Reads the index of all keys. Stops early if
     * `signal` is aborted.
     */
    async forgetExcessKeys(signal: AbortSignal): Promise<void> {
      const { rows } = await database.query<{ tenant: string; from: Date }>(crowdedSql, [most]);
      for (const { tenant, from } of rows)
        await deleteOldRows(database, { ...keyTable, unless: `t.tenant <> ${escapeLiteral(tenant)}` }, from, signal);
    },

    /** Returns the number of events that are neither routed nor in quarantine, and the time of the oldest one. */
    async waiting(): Promise<{ count: number; oldest: Date | null }> {
      const { rows } = await database.query<{ count: number; oldest: Date | null }>(
        `SELECT count(*)::integer AS count, min(accepted) AS oldest FROM events WHERE ${isUnrouted('events')}`,
      );
      return rows[0] ?? { count: 0, oldest: null };
    },
  };
}

const keyTable = { table: 'event_keys', column: 'accepted' };

/** Finds the tenants with at least $1 keys, and the time of the oldest key that each of them keeps. */
const crowdedSql = `
SELECT tenants.id AS tenant, kept.accepted AS "from" FROM tenants, LATERAL (
  SELECT k.accepted FROM event_keys k WHERE k.tenant = tenants.id ORDER BY k.accepted DESC OFFSET $1 - 1 LIMIT 1) kept`;

/**
 * $1 tenant, $2 namespace, $3 idempotency key, $4 now, $5 name, $6 time, $7 correlation id, $8 context, $9 payload,
 * $10 trace, $11 maximum number of waiting events and notices. Quarantined ones do not count; a tenant has at most
 * 5,000 of them.
 */
const acceptSql = `
WITH waiting AS MATERIALIZED (
  SELECT (SELECT count(*) FROM (SELECT FROM events WHERE tenant = $1 AND ${isUnrouted('events')} LIMIT $11) AS own) AS n,
    (SELECT count(*) FILTER (WHERE NOT quarantined)
     FROM (SELECT quarantined FROM deliveries WHERE tenant = $1 LIMIT $11 + 5000) AS own) AS notices),
key AS (
  INSERT INTO event_keys (tenant, namespace, key, accepted)
  SELECT $1, $2, $3, $4 FROM waiting WHERE $3::text IS NOT NULL AND n + notices < $11
  ON CONFLICT DO NOTHING RETURNING 1),
event AS (
  INSERT INTO events (id, tenant, namespace, name, occurred, correlation_id, context, payload, accepted)
  SELECT gen_random_uuid(), $1, $2, $5, $6, $7, $8::jsonb, $9::json, $4 FROM waiting
  WHERE n + notices < $11 AND ($3::text IS NULL OR EXISTS (SELECT 1 FROM key)) RETURNING sequence)
SELECT (graphile_worker.add_job('route-event', ${jobSql("'event', sequence::text", '$10')},
  max_attempts => 32767, ${priority})).id FROM event, waiting`;
