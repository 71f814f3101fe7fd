// Stores accepted events in Postgres. An event and the job that routes it are committed together.
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

const headColumns = 'sequence, tenant, namespace, name, correlation_id AS "correlationId"';
const columns = `${headColumns}, id, occurred, context::text AS context, payload::text AS payload`;
/** The priority of a routing job: one of 101 levels, because the library stores a priority in 16 bits. */
const priority = 'priority => (least(n, 1000) / 10)::integer';

export type EventStore = ReturnType<typeof createEventStore>;

/** `keyOf` returns the key by which a repeated event is recognised. */
export function createEventStore(database: Queryable, keyOf: typeof idempotencyKey = idempotencyKey) {
  async function oneOf<Event extends EventHead>(sql: string, sequence: string): Promise<Event | undefined> {
    return (await database.query<Event>(sql, [sequence])).rows[0];
  }

  return {
    /**
     * Stores the event and its routing job in one statement. If an event with this idempotency key exists in the same
     * tenant and namespace, stores nothing and returns false. If a tenant has many events that are not routed yet,
     * further ones get a lower priority, so that they do not delay those of other tenants.
     */
    async accept(event: NewEvent, now: Date): Promise<boolean> {
      const { rowCount } = await database.query(
        `WITH key AS (
           INSERT INTO event_keys (tenant, namespace, key, accepted)
           SELECT $1, $2, $3, $4 WHERE $3::text IS NOT NULL ON CONFLICT DO NOTHING RETURNING 1),
         event AS (
           INSERT INTO events (id, tenant, namespace, name, occurred, correlation_id, context, payload, accepted)
           SELECT gen_random_uuid(), $1, $2, $5, $6, $7, $8::jsonb, $9::json, $4
           WHERE $3::text IS NULL OR EXISTS (SELECT 1 FROM key) RETURNING sequence),
         waiting AS (
           SELECT count(*) AS n FROM (SELECT FROM events WHERE tenant = $1 AND routed IS NULL LIMIT 1000) AS own)
         SELECT (graphile_worker.add_job('route-event', ${jobSql("'event', sequence::text", '$10')},
           max_attempts => 32767, ${priority})).id FROM event, waiting`,
        [
          event.tenant,
          event.namespace,
          keyOf(event.context) ?? null,
          now,
          event.name,
          event.occurred,
          event.correlationId ?? null,
          JSON.stringify(event.context),
          JSON.stringify(event.payload),
          storedTraceparent(),
        ],
      );
      return rowCount === 1;
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
    forgetKeys: (limit: Date, signal: AbortSignal): Promise<void> =>
      deleteOldRows(database, { table: 'event_keys', column: 'accepted' }, limit, signal),

    /** Returns the number of events that are neither routed nor in quarantine, and the time of the oldest one. */
    async waiting(): Promise<{ count: number; oldest: Date | null }> {
      const { rows } = await database.query<{ count: number; oldest: Date | null }>(
        `SELECT count(*)::integer AS count, min(accepted) AS oldest FROM events
         WHERE routed IS NULL AND NOT EXISTS (
           SELECT FROM quarantine q WHERE q.kind = 'event' AND q.item = sequence::text AND NOT q.released)`,
      );
      return rows[0] ?? { count: 0, oldest: null };
    },
  };
}
