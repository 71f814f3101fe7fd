// Quarantines an event or a notice if its own content makes its routing or delivery fail, and a notice that may have
// been sent too often. Quarantine ends the job and keeps the event or delivery. A release creates a new job.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import {
  databaseProblem,
  isMissingReference,
  isStatementTimeout,
  type Queryable,
  withTransaction,
} from '../../service/postgres/postgres.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import {
  databaseRefusal,
  type NewQuarantineItem,
  type QuarantineCause,
  renderingFailure,
} from '../../service/quarantine/quarantine.ts';
import {
  createQuarantineStore,
  putInQuarantine,
  type QuarantineStore,
  releaseInPages,
} from '../../service/quarantine/quarantine-store.ts';
import { MailError } from '../mail.ts';
import { type Delivery, deliveryJobKey } from './deliveries-store.ts';

/** Number of failures after which an item is quarantined. Eight attempts, with their pauses, take half an hour. */
const limit = 8;
/**
 * Maximum number of times that a notice may be sent although the mail server never replies. The pauses between the
 * attempts grow to six hours, so an outage of the mail server may last most of a day.
 */
const sendLimit = 12;
/**
 * The number of failures that a release stores for a delivery. The number exceeds `limit`, so the next failure
 * quarantines the delivery again.
 */
const releasedFailures = 1_000;

/** Maximum number of quarantined items of a tenant. Its oldest ones beyond this number are deleted. */
const mostQuarantined = 5_000;

/**
 * Milliseconds after which a quarantined item is deleted. It keeps its event, which may contain personal data, even if
 * all other recipients got their notices.
 */
const longestQuarantine = 30 * 86_400_000;

export interface JobQuarantine {
  /**
   * Runs the job of an item. Quarantines the item, and resolves as if the job had succeeded, if the item's content made
   * the job fail and this was the last of `limit` attempts, or if a mail may have been sent `sendLimit` times. For an
   * event, attempts that failed for other reasons count too. For a delivery, they do not.
   */
  event(sequence: string, attempts: number, job: () => Promise<void>): Promise<void>;
  delivery(delivery: Delivery, job: () => Promise<void>): Promise<void>;
  /**
   * Releases items that another version of the product quarantined. Deletes items that have been in quarantine for 30
   * days, or that are the oldest of a tenant with more than `mostQuarantined`. Deletes quarantine entries whose item no
   * longer exists.
   */
  upkeep(): Promise<void>;
}

/**
 * Returns the reason to quarantine an item whose job failed with this error. Undefined if a later attempt may succeed.
 */
function causeOf(error: unknown): QuarantineCause | undefined {
  if (error instanceof MailError) {
    // Each attempt may have reached the recipient, so the number of attempts must be limited.
    if (error.mayHaveSent) return { reason: 'mail-unconfirmed', detail: 'no reply' };
    return error.refused ? { reason: 'mail-refused', detail: `SMTP ${error.reply ?? ''}`.trim() } : undefined;
  }
  // The next attempt does not find the subscriber that was deleted during this one.
  if (isMissingReference(error)) return undefined;
  const refusal = databaseRefusal(error);
  if (refusal) return refusal;
  // Each job is about one item. If its statement still times out after half an hour, the item is probably the reason.
  if (isStatementTimeout(error)) return { reason: 'database-refused', detail: 'SQLSTATE 57014' };
  const isBusy = error instanceof Problem && error.status >= 500;
  return isBusy || databaseProblem(error) ? undefined : renderingFailure(error);
}

export function createJobQuarantine(options: { pool: pg.Pool; clock: Clock; log: Logger }): JobQuarantine {
  const { pool, clock, log } = options;
  const store = createNoticeQuarantine(pool);
  const put = async (db: Queryable, item: NewQuarantineItem, attempts: number) => {
    await putInQuarantine(db, [{ ...item, attempts }], clock());
    const { kind, tenantId, about, reason, detail } = item;
    log.warn({ kind, tenant: tenantId, ...about, reason, detail }, 'item quarantined');
  };

  return {
    async event(sequence, attempts, job) {
      try {
        await job();
      } catch (error) {
        const cause = causeOf(error);
        if (!cause || attempts < limit) throw error;
        const about = { event: sequence };
        const tenantId = await tenantOf(pool, sequence);
        await put(pool, { kind: 'event', item: sequence, tenantId, about, ...cause }, attempts);
      }
    },
    async delivery(delivery, job) {
      try {
        await job();
      } catch (error) {
        const cause = causeOf(error);
        if (!cause) throw error;
        const isQuarantined = await withTransaction(pool, async (client) => {
          const most = cause.reason === 'mail-unconfirmed' ? sendLimit : limit;
          const failures = await countFailure(client, delivery, most);
          if (failures < most) return false;
          const { event, typeId, subscriberId } = delivery;
          const item = `${event}:${typeId}:${subscriberId}`;
          // A released delivery has been tried once since its release.
          const attempts = failures > releasedFailures ? 1 : failures;
          const tenantId = await tenantOf(client, event);
          await put(client, { kind: 'delivery', item, tenantId, about: { ...delivery }, ...cause }, attempts);
          return true;
        });
        if (!isQuarantined) throw error;
      }
    },
    async upkeep() {
      await releaseInPages((after) => store.release('of other versions', after));
      const limit = new Date(clock().getTime() - longestQuarantine);
      const { rows } = await pool.query<Dropped>(dropSql, [limit, mostQuarantined]);
      const dropped = rows[0] ?? { notices: 0, events: 0 };
      if (dropped.notices + dropped.events > 0) log.warn(dropped, 'quarantined items dropped');
      await pool.query(tidySql);
    },
  };
}

/**
 * Counts a failure of a delivery, and marks the delivery as quarantined at the limit `most`. Returns the new number of
 * failures.
 */
async function countFailure(db: Queryable, { event, typeId, subscriberId }: Delivery, most: number): Promise<number> {
  const { rows } = await db.query<{ refusals: number }>(
    `UPDATE deliveries SET refusals = refusals + 1, quarantined = refusals + 1 >= $4
     WHERE event = $1 AND type_id = $2 AND subscriber_id = $3 RETURNING refusals`,
    [event, typeId, subscriberId, most],
  );
  return rows[0]?.refusals ?? 0;
}

async function tenantOf(db: Queryable, sequence: string): Promise<string | null> {
  const { rows } = await db.query<{ tenant: string }>('SELECT tenant FROM events WHERE sequence = $1', [sequence]);
  return rows[0]?.tenant ?? null;
}

/** The ids of a quarantined delivery. Each entry contains them, so that they can be looked up by the primary key. */
const idsOf = (about: string) => `(${about} ->> 'event')::bigint, ${about} ->> 'typeId', ${about} ->> 'subscriberId'`;

/** $1 the `about` of the released entries. */
export const resumeDeliveriesSql = `
WITH resumed AS (
  UPDATE deliveries SET quarantined = false, refusals = ${releasedFailures}
  FROM (SELECT ${idsOf('about')} FROM unnest($1::jsonb[]) about) AS i (event, type_id, subscriber_id)
  WHERE deliveries.event = i.event AND deliveries.type_id = i.type_id AND deliveries.subscriber_id = i.subscriber_id
    AND quarantined
  RETURNING deliveries.event, deliveries.type_id, deliveries.subscriber_id)
SELECT (graphile_worker.add_job('deliver',
  json_build_object('event', event::text, 'typeId', type_id, 'subscriberId', subscriber_id),
  max_attempts => 32767, job_key => ${deliveryJobKey})).id FROM resumed`;

const resumeEventsSql = `
SELECT (graphile_worker.add_job('route-event', json_build_object('event', sequence::text), max_attempts => 32767)).id
FROM events WHERE sequence = ANY ($1::bigint[]) AND routed IS NULL`;

interface Dropped {
  notices: number;
  events: number;
}

/**
 * Deletes up to 10,000 items that were quarantined before $1, and 10,000 beyond the newest $2 of their tenant. The
 * cleanup of events (`forgetEvents`) deletes an event whose last notice is deleted.
 */
export const dropSql = `
WITH old AS MATERIALIZED (
  (SELECT kind, item, about FROM quarantine WHERE first_seen < $1 AND NOT released ORDER BY first_seen LIMIT 10000)
  UNION ALL
  (SELECT kind, item, about FROM (
     SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY first_seen DESC, id) AS nth
     FROM quarantine WHERE NOT released) ranked
   WHERE nth > $2 AND first_seen >= $1 LIMIT 10000)
), notices AS (
  DELETE FROM deliveries d
  USING (SELECT ${idsOf('about')} FROM old WHERE kind = 'delivery') AS i (event, type_id, subscriber_id)
  WHERE d.event = i.event AND d.type_id = i.type_id AND d.subscriber_id = i.subscriber_id AND d.quarantined
  RETURNING 1
), events AS (
  DELETE FROM events e USING old
  WHERE e.sequence = CASE WHEN old.kind = 'event' THEN old.item::bigint END AND e.routed IS NULL
  RETURNING 1
)
SELECT (SELECT count(*)::int FROM notices) AS notices, (SELECT count(*)::int FROM events) AS events`;

export const tidySql = `
DELETE FROM quarantine q
WHERE (q.kind = 'event' AND NOT EXISTS (
    SELECT FROM events WHERE sequence = CASE WHEN q.kind = 'event' THEN q.item::bigint END AND routed IS NULL))
  OR (q.kind = 'delivery' AND NOT EXISTS (
    SELECT FROM deliveries WHERE (event, type_id, subscriber_id) = (${idsOf('q.about')})))`;

/** Creates the store of quarantined notices and events. A release creates a job for each item. */
export function createNoticeQuarantine(pool: pg.Pool): QuarantineStore {
  return createQuarantineStore({
    pool: unsharedPool(pool),
    async resume(db, items) {
      const of = (kind: string) => items.filter((item) => item.kind === kind);
      await db.query(resumeDeliveriesSql, [of('delivery').map(({ about }) => JSON.stringify(about))]);
      await db.query(resumeEventsSql, [of('event').map(({ item }) => item)]);
      return [];
    },
  });
}
