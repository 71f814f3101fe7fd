// The SQL that settles claimed outbox rows as accepted, failed or quarantined. Each statement runs as one transaction.
import { escapeLiteral } from 'pg';
import type { QuarantineCause } from '../../service/quarantine/quarantine.ts';
import type { OutboxKind } from './event-catalogue.ts';

/** A claim of an outbox row. `claimedUntil` distinguishes it from other claims of the same row. */
export interface Claim {
  /** The row's sequence number: a bigint, as text. */
  sequence: string;
  claimedUntil: Date;
}

export interface AcceptedRow {
  /** The row without `claimedUntil`, because an acceptance counts even if the claim has expired. */
  row: Pick<Claim, 'sequence'> & { kind?: OutboxKind };
  /** The id of the form's subscriber; only for a `subscribe` row. */
  subscriberId?: string | undefined;
}

/**
 * A claimed row that was not accepted. `failed`: its delivery failed. `postponed`: its delivery asked to wait, so
 * that the row counts neither as failed nor as waiting until `notBefore`. `untried`: the claim is undone.
 */
export type UnacceptedRow = { row: Claim } & (
  | { kind: 'failed'; notBefore: Date; refusals?: number; files?: readonly string[] | undefined }
  /** `files`: the URNs of the files that a `remove-files` row must still remove. */
  | { kind: 'postponed'; notBefore: Date; files?: readonly string[] | undefined }
  | { kind: 'untried' }
);

export interface RefusedRow extends QuarantineCause {
  row: Claim;
}

export interface Settlement {
  now: Date;
  /** Due time of subscriber checks, and of the rows that remove the subscriber and the files of a deleted form. */
  removal: Date;
  /** The time by which the notification service has probably sent the notices of the accepted events. */
  noticesUntil?: Date | undefined;
  deleteFiles: boolean;
}

/**
 * Maximum time that the notification service is assumed to need for its queue of notices. After this time, the
 * applicants' addresses are removed in any case.
 */
const longestQueue = "interval '30 days'";

/**
 * Adds events to the estimated queue of the notification service. Returns the time at which that queue will be empty.
 */
export const queueSql = `
UPDATE notice_queue
SET busy_until = least(greatest(busy_until, $1) + $2 * interval '1 millisecond', $1::timestamptz + ${longestQueue})
WHERE only_row RETURNING busy_until AS "busyUntil"`;

/**
 * Planner settings that precede a statement in its transaction. They allow only index scans and lookups. A run of the
 * reconciler makes the statistics outdated. With outdated statistics, Postgres sorts a million rows for a claim (2.4 s
 * instead of 5 ms). Up to version 17, Postgres disables a plan by increasing its cost. The higher cost triggers JIT
 * compilation (0.7 s), so JIT is disabled as well.
 *
 * SET LOCAL and the statement are sent as one simple query, which saves round trips. A simple query has no parameters,
 * so the outbox statements contain their values.
 */
export const planSql = ['sort', 'bitmapscan', 'seqscan', 'hashjoin', 'mergejoin']
  .map((plan) => `SET LOCAL enable_${plan} = off; `)
  .concat('SET LOCAL jit = off;')
  .join('');

/**
 * SQL that is true if the row is not accepted. The expression makes Postgres look up the row by its key, not by a
 * partial index.
 */
export const isOpen = (row: string) => `coalesce(${row}.accepted, 'infinity') = 'infinity'`;

export const timestampSql = (date: Date) => `${escapeLiteral(date.toISOString())}::timestamptz`;

const recordsSql = (rows: readonly object[], columns: string) =>
  `jsonb_to_recordset(${escapeLiteral(JSON.stringify(rows))}::jsonb) AS i (${columns})`;

/**
 * Number of earlier rows of a deleted form from which a statement removes the actors' names. A form may have hundreds
 * of thousands of rows, and their update would exceed the statement timeout.
 */
const mostNamed = 1_000;

/**
 * The end of a statement whose CTE `done` returns the settled rows. For each `form-deleted`, it inserts the rows that
 * remove the subscriber and the files. The row for the subscriber comes first, so that a file that cannot be deleted
 * does not delay the removal of the subscriber. `more` is SQL that selects further rows to insert.
 * Only `outbox_subscribes_by_form` has the order of nulls in which the statement looks for the form's `subscribe`, so
 * Postgres cannot choose an index that contains all rows of the form.
 *
 * The actors' names are removed from each row when it is accepted. Rows that a pod of an older version has accepted
 * still contain names until they are purged. The statement removes these names too, but only from the latest rows.
 */
const removalsSql = ({ removal, noticesUntil, deleteFiles }: Settlement, more = '') => `
nameless AS (
  UPDATE outbox o SET facts = o.facts - 'actor'
  FROM done d CROSS JOIN LATERAL (
    SELECT p.sequence, p.facts FROM outbox p WHERE p.form_id = d.form_id AND p.sequence < d.sequence
    ORDER BY p.sequence DESC LIMIT ${mostNamed}) named
  WHERE d.kind = 'form-deleted' AND o.sequence = named.sequence AND named.facts ? 'actor'
)
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent, request_id)
SELECT form_id, tenant_id, kind, facts, ${timestampSql(removal)}, ${timestampSql(removal)}, traceparent, request_id FROM (
  SELECT 1 AS rank, d.form_id, d.tenant_id, d.traceparent, d.request_id, 'remove-subscriber' AS kind,
    jsonb_strip_nulls(jsonb_build_object('definitionId', d.facts -> 'definitionId', 'subscriberId', s.id,
      'noticesUntil', ${noticesUntil ? escapeLiteral(noticesUntil.toISOString()) : 'NULL'}::text)) AS facts
  FROM done d CROSS JOIN LATERAL (
    SELECT coalesce(
      (SELECT p.facts ->> 'subscriberId' FROM outbox p
       WHERE p.form_id = d.form_id AND p.kind = 'subscribe' ORDER BY p.sequence DESC NULLS LAST LIMIT 1),
      d.facts ->> 'subscriberId') AS id) s
  WHERE d.kind = 'form-deleted' AND s.id IS NOT NULL
  UNION ALL
  SELECT 3, d.form_id, d.tenant_id, d.traceparent, d.request_id, 'remove-files',
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'files', d.facts -> 'files')
  FROM done d
  WHERE ${deleteFiles} AND d.kind = 'form-deleted' AND jsonb_array_length(coalesce(d.facts -> 'files', '[]')) > 0
  ${more}
) removals
ORDER BY rank`;

/**
 * Selects the row that removes a subscriber whose form was deleted during `subscribe`, if no `form-deleted` is pending.
 * The order of nulls has the same purpose as in {@link removalsSql}.
 */
const orphanSql = `
  UNION ALL
  SELECT 2, d.form_id, d.tenant_id, d.traceparent, d.request_id, 'remove-subscriber',
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'subscriberId', d.subscriber_id)
  FROM done d
  WHERE d.kind = 'subscribe' AND d.subscriber_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM pointed WHERE pointed.id = d.form_id)
    AND (
      SELECT p.sequence FROM outbox p
      WHERE p.form_id = d.form_id AND p.kind = 'form-deleted' AND ${isOpen('p')} AND p.not_before < 'infinity'
      ORDER BY p.sequence DESC NULLS LAST LIMIT 1) IS NULL`;

/**
 * Marks rows as accepted, and writes the consequences. A row loses the name of its actor, which only its delivery
 * needs. A form gets its subscriber's id, and a deleted form gets the rows that remove its subscriber and files. The
 * service may have processed a subscribe request that failed in this process, so after a failed attempt the reconciler
 * looks for a second subscriber.
 *
 * A subscriber's id is always written into the `subscribe` row, even if the claim has expired. It is also written into
 * the form's row, if that row exists. If a concurrent transaction deletes the form, the update of `forms` waits for
 * that transaction, but this statement does not see the transaction's `form-deleted` row. In that case, two
 * `remove-subscriber` rows are written, which does no harm.
 */
export function acceptSql(rows: readonly AcceptedRow[], settlement: Settlement): string {
  const input = rows.map(({ row, subscriberId }) => ({
    sequence: row.sequence,
    subscriber_id: subscriberId?.toWellFormed(),
  }));
  return `
${planSql}
WITH input AS (
  SELECT * FROM ${recordsSql(input, 'sequence bigint, subscriber_id text')}
), done AS (
  UPDATE outbox o SET
    accepted = coalesce(o.accepted, ${timestampSql(settlement.now)}),
    claimed_until = NULL,
    facts = CASE
      WHEN i.subscriber_id IS NOT NULL THEN o.facts || jsonb_build_object('subscriberId', i.subscriber_id)
      ELSE o.facts - 'actor' END
  FROM input i
  WHERE o.sequence = i.sequence AND (${isOpen('o')} OR i.subscriber_id IS NOT NULL)
  RETURNING o.sequence, o.form_id, o.tenant_id, o.kind, o.facts, o.attempts, o.traceparent, o.request_id, i.subscriber_id
), pointed AS (
  UPDATE forms f SET subscriber_id = d.subscriber_id
  FROM done d WHERE d.kind = 'subscribe' AND d.subscriber_id IS NOT NULL AND f.id = d.form_id
  RETURNING f.id
), doubtful AS (
  INSERT INTO subscriber_checks (form_id, due)
  SELECT d.form_id, ${timestampSql(settlement.removal)} FROM done d JOIN pointed p ON p.id = d.form_id
  WHERE d.attempts > 1 ON CONFLICT (form_id) DO NOTHING
), ${removalsSql(settlement, orphanSql)}`;
}

/**
 * Ends the claims of rows that were not accepted. If a row was not tried or is postponed, its number of attempts is
 * reset to the value before the claim.
 */
export function failSql(rows: readonly UnacceptedRow[]): string {
  const input = rows.map(({ row, kind, ...outcome }) => ({
    sequence: row.sequence,
    claimed_until: row.claimedUntil,
    counts: kind === 'failed',
    postponed: kind === 'postponed',
    not_before: 'notBefore' in outcome ? outcome.notBefore : undefined,
    refusals: 'refusals' in outcome ? outcome.refusals : undefined,
    files: 'files' in outcome ? outcome.files : undefined,
  }));
  const columns = `sequence bigint, claimed_until timestamptz, counts boolean, postponed boolean, not_before timestamptz,
    refusals int, files jsonb`;
  return `
${planSql}
UPDATE outbox o SET not_before = coalesce(i.not_before, o.not_before), claimed_until = NULL,
  created = CASE WHEN i.postponed THEN i.not_before ELSE o.created END,
  facts = CASE WHEN i.files IS NULL THEN o.facts ELSE o.facts || jsonb_build_object('files', i.files) END,
  attempts = CASE WHEN i.counts THEN o.attempts ELSE o.attempts - 1 END, refusals = coalesce(i.refusals, o.refusals)
FROM ${recordsSql(input, columns)}
WHERE o.sequence = i.sequence AND ${isOpen('o')} AND o.claimed_until = i.claimed_until`;
}

/** The kinds of rows that are still delivered after the form was deleted. */
const outliving = "('subscribe', 'form-deleted', 'remove-subscriber', 'remove-files')";

/**
 * Postpones rows to infinity, adds an entry in `quarantine` for each, and writes the removals that follow
 * `form-deleted`. A row of a deleted form is dropped, unless its kind is in {@link outliving}. The statement locks the
 * forms. If a concurrent deletion gets the lock first, the row is dropped. Otherwise, the deletion finds the entry and
 * removes it.
 */
export function quarantineSql(rows: readonly RefusedRow[], settlement: Settlement, productVersion: string): string {
  const now = timestampSql(settlement.now);
  const input = rows.map(({ row, ...rest }) => ({ sequence: row.sequence, claimed_until: row.claimedUntil, ...rest }));
  const columns = 'sequence bigint, claimed_until timestamptz, reason text, detail text';
  return `
${planSql}
WITH input AS MATERIALIZED (
  SELECT i.*, o.form_id, o.kind FROM ${recordsSql(input, columns)}
  JOIN outbox o ON o.sequence = i.sequence
  WHERE ${isOpen('o')} AND o.claimed_until = i.claimed_until
), held AS MATERIALIZED (
  SELECT f.id FROM forms f WHERE f.id = ANY (ARRAY(SELECT form_id FROM input)) FOR KEY SHARE
), dropped AS (
  DELETE FROM outbox o USING input i
  WHERE o.sequence = i.sequence AND i.kind NOT IN ${outliving} AND i.form_id NOT IN (SELECT id FROM held)
), done AS (
  UPDATE outbox o SET not_before = 'infinity', claimed_until = NULL, refusals = 0 FROM input i
  WHERE o.sequence = i.sequence AND (i.kind IN ${outliving} OR i.form_id IN (SELECT id FROM held))
  RETURNING o.sequence, o.form_id, o.tenant_id, o.kind, o.facts, o.attempts, o.traceparent, o.request_id, i.reason, i.detail
), entries AS (
  INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
  SELECT kind, sequence::text, tenant_id,
    jsonb_build_object('formId', form_id, 'definitionId', facts -> 'definitionId'),
    reason, detail, ${now}, ${now}, attempts, ${escapeLiteral(productVersion)}
  FROM done
  ON CONFLICT (kind, item) DO UPDATE SET reason = excluded.reason, detail = excluded.detail,
    last_tried = excluded.last_tried, attempts = excluded.attempts, version = excluded.version, released = false
), ${removalsSql(settlement)}`;
}
