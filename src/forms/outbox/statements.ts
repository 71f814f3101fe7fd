// The SQL of the outbox store, each statement a whole transaction.
//
// Order per form: rows of a form are inserted by transactions that hold the form's row, so their sequences are in the
// order of their commits, and a row is due only while it is the oldest undelivered one of its form. A look from before
// the acceptance of a row sees that row in the way, a look from after it does not; no look sees a later row first.
import { escapeLiteral } from 'pg';

/** A place in the order of claims: that of a row. */
export interface Place {
  /** A moment as Postgres writes it, which is finer than a Date. */
  notBefore: string;
  /** A bigint, as text. */
  sequence: string;
}

export interface Claim {
  lane: string;
  now: Date;
  /** End of the claim. */
  until: Date;
  limit: number;
  /** Where the walk begins; without it at the oldest row. */
  after?: Place | undefined;
}

/**
 * Goes before each statement, in its transaction. The planner is told to walk and to look up: after a reconciler's run
 * its statistics are of a table without backlog, and it would read and sort a million rows for each claim (2.4 s against
 * 5 ms), or scan them for each acceptance. That takes a SET LOCAL in the same transaction, and one round trip, so each
 * statement is a simple query, an implicit transaction, with its values written in.
 *
 * Up to version 17 Postgres tells the planner so by a cost of 10,000,000,000, for the last sort as well, and then
 * compiles what looks so dear: 0.7 s for a claim of a millisecond. Hence no JIT.
 */
const planSql = ['sort', 'bitmapscan', 'seqscan', 'hashjoin', 'mergejoin']
  .map((way) => `SET LOCAL enable_${way} = off; `)
  .concat('SET LOCAL jit = off;')
  .join('');

/** The row is not accepted. Said so that it keeps the partial index out: these rows are looked up, not walked. */
const isOpen = (row: string) => `coalesce(${row}.accepted, 'infinity') = 'infinity'`;

const momentOf = (date: Date) => `${escapeLiteral(date.toISOString())}::timestamptz`;

/**
 * Claims due rows in their order, by walking the index. A row that another relay is claiming is passed over; one that it
 * has just claimed fails the repeated check of `claimed_until`. The scalar subquery keeps it from anti-joining the whole
 * backlog.
 *
 * Rows that were accepted stand at the head of the index until it is vacuumed, a hundred thousand in a minute and all of
 * them while an old transaction (a dump) is open. So a walk goes on `after` the last row of the one before.
 */
export function claimSql({ lane, now, until, limit, after }: Claim): string {
  const nowPart = momentOf(now);
  const from = after && `(${escapeLiteral(after.notBefore)}::timestamptz, ${escapeLiteral(after.sequence)}::bigint)`;
  return `
${planSql}
WITH due AS MATERIALIZED (
  SELECT o.sequence, o.not_before FROM outbox o
  WHERE o.accepted IS NULL AND o.lane = ${escapeLiteral(lane)} AND o.not_before <= ${nowPart}
    ${from ? `AND (o.not_before, o.sequence) > ${from}` : ''}
    AND (o.claimed_until IS NULL OR o.claimed_until <= ${nowPart})
    AND o.sequence = (
      SELECT p.sequence FROM outbox p
      WHERE p.form_id = o.form_id AND ${isOpen('p')}
      ORDER BY p.sequence LIMIT 1)
  ORDER BY o.not_before, o.sequence
  LIMIT ${Math.trunc(limit)}
  FOR UPDATE OF o SKIP LOCKED
), claimed AS (
  UPDATE outbox o SET claimed_until = ${momentOf(until)}, attempts = o.attempts + 1
  FROM due WHERE o.sequence = due.sequence
  RETURNING o.sequence, o.form_id, o.tenant_id, o.kind, o.facts, o.created, o.attempts, due.not_before
)
SELECT c.not_before::text, c.sequence, c.form_id, c.tenant_id, c.kind, c.facts, c.created AS outbox_created, c.attempts,
  f.status, f.created AS form_created, f.created_by, f.last_accessed, f.locked, f.submitted, f.applicant, f.subscriber_id
FROM claimed c LEFT JOIN forms f ON f.id = c.form_id
ORDER BY c.not_before, c.sequence`;
}

export interface Acceptance {
  rows: readonly { sequence: string; subscriberId: string | undefined }[];
  now: Date;
  /** When removals that follow fall due. */
  removal: Date;
  /** Whether files are deleted. */
  deleteFiles: boolean;
}

/** Rows of values, whatever is in them. */
const valuesOf = (rows: readonly object[], columns: string) =>
  `jsonb_to_recordset(${escapeLiteral(JSON.stringify(rows))}::jsonb) AS i (${columns})`;

/**
 * Marks rows as accepted, and writes what follows.
 *
 * A subscriber is always written into its `subscribe` row, also by a relay whose claim had run out; the form's row is
 * told if it is still there. If it is not, and no form-deleted is to come that would see to it, the removal is written
 * here. The update of `forms` may wait for a transaction that deletes the form and whose form-deleted this statement
 * does not see; then there are two removals, which does no harm. Removals stand before files, so that a file that
 * cannot be deleted holds back nothing.
 */
export function acceptSql({ rows, now, removal, deleteFiles }: Acceptance): string {
  const [due, input] = [
    momentOf(removal),
    rows.map((row) => ({ sequence: row.sequence, subscriber_id: row.subscriberId?.toWellFormed() })),
  ];
  return `
${planSql}
WITH input AS (
  SELECT * FROM ${valuesOf(input, 'sequence bigint, subscriber_id text')}
), done AS (
  UPDATE outbox o SET
    accepted = coalesce(o.accepted, ${momentOf(now)}),
    claimed_until = NULL,
    facts = CASE
      WHEN o.kind = 'form-deleted' THEN o.facts - 'actor'
      WHEN i.subscriber_id IS NOT NULL THEN o.facts || jsonb_build_object('subscriberId', i.subscriber_id)
      ELSE o.facts END
  FROM input i
  WHERE o.sequence = i.sequence AND (${isOpen('o')} OR i.subscriber_id IS NOT NULL)
  RETURNING o.sequence, o.form_id, o.tenant_id, o.kind, o.facts, i.subscriber_id
), pointed AS (
  UPDATE forms f SET subscriber_id = d.subscriber_id
  FROM done d WHERE d.kind = 'subscribe' AND d.subscriber_id IS NOT NULL AND f.id = d.form_id
  RETURNING f.id
), nameless AS (
  UPDATE outbox p SET facts = p.facts - 'actor'
  FROM done d
  WHERE d.kind = 'form-deleted' AND p.form_id = d.form_id AND p.sequence < d.sequence AND p.facts ? 'actor'
)
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
SELECT form_id, tenant_id, kind, facts, ${due}, ${due} FROM (
  SELECT 1 AS rank, d.form_id, d.tenant_id, 'remove-subscriber' AS kind,
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'subscriberId', s.id) AS facts
  FROM done d CROSS JOIN LATERAL (
    SELECT coalesce(
      (SELECT p.facts ->> 'subscriberId' FROM outbox p
       WHERE p.form_id = d.form_id AND p.kind = 'subscribe' ORDER BY p.sequence DESC LIMIT 1),
      d.facts ->> 'subscriberId') AS id) s
  WHERE d.kind = 'form-deleted' AND s.id IS NOT NULL
  UNION ALL
  SELECT 2, d.form_id, d.tenant_id, 'remove-subscriber',
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'subscriberId', d.subscriber_id)
  FROM done d
  WHERE d.kind = 'subscribe' AND d.subscriber_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM pointed WHERE pointed.id = d.form_id)
    AND NOT EXISTS (
      SELECT FROM outbox p WHERE p.form_id = d.form_id AND p.kind = 'form-deleted' AND ${isOpen('p')})
  UNION ALL
  SELECT 3, d.form_id, d.tenant_id, 'remove-files',
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'files', d.facts -> 'files')
  FROM done d
  WHERE ${deleteFiles} AND d.kind = 'form-deleted' AND jsonb_array_length(coalesce(d.facts -> 'files', '[]')) > 0
) followers
ORDER BY rank`;
}

export interface Failure {
  sequence: string;
  claimedUntil: Date;
  notBefore: Date | undefined;
  tried: boolean;
}

/** Ends claims. A row that was not tried is as it was before its claim. */
export function failSql(rows: readonly Failure[]): string {
  const input = rows.map(({ sequence, claimedUntil, notBefore, tried }) => ({
    sequence,
    claimed_until: claimedUntil,
    not_before: notBefore,
    tries: tried ? 0 : 1,
  }));
  return `
${planSql}
UPDATE outbox o SET not_before = coalesce(i.not_before, o.not_before), claimed_until = NULL, attempts = o.attempts - i.tries
FROM ${valuesOf(input, 'sequence bigint, claimed_until timestamptz, not_before timestamptz, tries int')}
WHERE o.sequence = i.sequence AND ${isOpen('o')} AND o.claimed_until = i.claimed_until`;
}

/** $1 now. Rows are counted from `created` on; of a removal that is the moment when it falls due. */
export const backlogSql = `
SELECT kind, count(*)::int AS count,
  extract(epoch FROM $1::timestamptz - min(created))::float8 AS "oldestSeconds",
  (count(*) FILTER (WHERE attempts >= 10))::int AS failing
FROM outbox WHERE accepted IS NULL AND created <= $1
GROUP BY kind`;
