// The SQL of the outbox store, each statement a whole transaction.
//
// Order per form: rows of a form are inserted by transactions that hold the form's row, so their sequences are in the
// order of their commits, and a row is due only while it is the oldest undelivered one of its form. A look from before
// the acceptance of a row sees that row in the way, a look from after it does not; no look sees a later row first.
import { escapeLiteral } from 'pg';

export interface Claim {
  lane: string;
  now: Date;
  /** End of the claim. */
  until: Date;
  limit: number;
}

/**
 * Claims due rows in their order, by walking the index. A row that another relay is claiming is passed over; one that it
 * has just claimed fails the repeated check of `claimed_until`.
 *
 * The planner is told to walk: after a reconciler's run its statistics are of a table without backlog, and it would read
 * and sort a million rows for each claim (2.4 s against 5 ms). That takes a SET LOCAL in the same transaction, and one
 * round trip, so this is one simple query, an implicit transaction, with its values written in. The scalar subquery
 * keeps it from anti-joining the whole backlog.
 *
 * Up to version 17 Postgres tells the planner so by a cost of 10,000,000,000, for the last sort as well, and then
 * compiles what looks so dear: 0.7 s for a claim of a millisecond. Hence no JIT.
 */
export function claimSql({ lane, now, until, limit }: Claim): string {
  const [lanePart, nowPart, untilPart] = [lane, now.toISOString(), until.toISOString()].map((text) =>
    escapeLiteral(text),
  );
  return `
SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH due AS MATERIALIZED (
  SELECT o.sequence FROM outbox o
  WHERE o.accepted IS NULL AND o.lane = ${lanePart} AND o.not_before <= ${nowPart}
    AND (o.claimed_until IS NULL OR o.claimed_until <= ${nowPart})
    AND o.sequence = (
      SELECT p.sequence FROM outbox p
      WHERE p.form_id = o.form_id AND p.accepted IS NULL
      ORDER BY p.sequence LIMIT 1)
  ORDER BY o.not_before, o.sequence
  LIMIT ${Math.trunc(limit)}
  FOR UPDATE OF o SKIP LOCKED
), claimed AS (
  UPDATE outbox o SET claimed_until = ${untilPart}, attempts = o.attempts + 1
  FROM due WHERE o.sequence = due.sequence
  RETURNING o.sequence, o.form_id, o.tenant_id, o.kind, o.facts, o.created, o.attempts
)
SELECT c.sequence, c.form_id, c.tenant_id, c.kind, c.facts, c.created AS outbox_created, c.attempts,
  f.status, f.created AS form_created, f.created_by, f.last_accessed, f.locked, f.submitted, f.applicant, f.subscriber_id
FROM claimed c LEFT JOIN forms f ON f.id = c.form_id
ORDER BY c.sequence`;
}

/**
 * $1 sequences, $2 subscriber ids, $3 now, $4 when removals fall due, $5 whether files are deleted.
 *
 * A subscriber is always written into its `subscribe` row, also by a relay whose claim had run out; the form's row is
 * told if it is still there. If it is not, and no form-deleted is to come that would see to it, the removal is written
 * here. The update of `forms` may wait for a transaction that deletes the form and whose form-deleted this statement
 * does not see; then there are two removals, which does no harm. Removals stand before files, so that a file that
 * cannot be deleted holds back nothing.
 */
export const acceptSql = `
WITH input AS (
  SELECT * FROM unnest($1::bigint[], $2::text[]) AS i (sequence, subscriber_id)
), done AS (
  UPDATE outbox o SET
    accepted = coalesce(o.accepted, $3),
    claimed_until = NULL,
    facts = CASE
      WHEN o.kind = 'form-deleted' THEN o.facts - 'actor'
      WHEN i.subscriber_id IS NOT NULL THEN o.facts || jsonb_build_object('subscriberId', i.subscriber_id)
      ELSE o.facts END
  FROM input i
  WHERE o.sequence = i.sequence AND (o.accepted IS NULL OR i.subscriber_id IS NOT NULL)
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
SELECT form_id, tenant_id, kind, facts, $4::timestamptz, $4::timestamptz FROM (
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
      SELECT FROM outbox p WHERE p.form_id = d.form_id AND p.kind = 'form-deleted' AND p.accepted IS NULL)
  UNION ALL
  SELECT 3, d.form_id, d.tenant_id, 'remove-files',
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'files', d.facts -> 'files')
  FROM done d
  WHERE $5 AND d.kind = 'form-deleted' AND jsonb_array_length(coalesce(d.facts -> 'files', '[]')) > 0
) followers
ORDER BY rank`;

/** $1 sequences, $2 ends of the claims, $3 next tries. */
export const failSql = `
UPDATE outbox o SET not_before = i.not_before, claimed_until = NULL
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS i (sequence, claimed_until, not_before)
WHERE o.sequence = i.sequence AND o.accepted IS NULL AND o.claimed_until = i.claimed_until`;

/** $1 now. Rows are counted from `created` on; of a removal that is the moment when it falls due. */
export const backlogSql = `
SELECT kind, count(*)::int AS count,
  extract(epoch FROM $1::timestamptz - min(created))::float8 AS "oldestSeconds",
  (count(*) FILTER (WHERE attempts >= 10))::int AS failing
FROM outbox WHERE accepted IS NULL AND created <= $1
GROUP BY kind`;
