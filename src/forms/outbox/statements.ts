// The SQL that claims outbox rows, and what the store's statements share. Each statement is a whole transaction.
//
// Order per form: rows of a form are inserted by transactions that hold the form's row, so their sequences are in the
// order of their commits, and a row is due only while it is the oldest of its form that is neither delivered nor
// quarantined. A quarantined row is due at infinity, where no claim comes by it. A look from before
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
export const planSql = ['sort', 'bitmapscan', 'seqscan', 'hashjoin', 'mergejoin']
  .map((way) => `SET LOCAL enable_${way} = off; `)
  .concat('SET LOCAL jit = off;')
  .join('');

/** The row is not accepted. Said so that it keeps the partial index out: these rows are looked up, not walked. */
export const isOpen = (row: string) => `coalesce(${row}.accepted, 'infinity') = 'infinity'`;

export const momentOf = (date: Date) => `${escapeLiteral(date.toISOString())}::timestamptz`;

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
      WHERE p.form_id = o.form_id AND ${isOpen('p')} AND p.not_before < 'infinity'
      ORDER BY p.sequence LIMIT 1)
  ORDER BY o.not_before, o.sequence
  LIMIT ${Math.trunc(limit)}
  FOR UPDATE OF o SKIP LOCKED
), claimed AS (
  UPDATE outbox o SET claimed_until = ${momentOf(until)}, attempts = o.attempts + 1
  FROM due WHERE o.sequence = due.sequence
  RETURNING o.sequence, o.form_id, o.tenant_id, o.kind, o.facts, o.created, o.attempts, o.refusals, due.not_before
)
SELECT c.not_before::text, c.sequence, c.form_id, c.tenant_id, c.kind, c.facts, c.created AS outbox_created, c.attempts, c.refusals,
  f.status, f.created AS form_created, f.created_by, f.last_accessed, f.locked, f.submitted, f.applicant, f.subscriber_id
FROM claimed c LEFT JOIN forms f ON f.id = c.form_id
ORDER BY c.not_before, c.sequence`;
}

/** $1 now. Rows are counted from `created` on; of a removal that is the moment when it falls due. */
export const backlogSql = `
SELECT kind, count(*)::int AS count,
  extract(epoch FROM $1::timestamptz - min(created))::float8 AS "oldestSeconds",
  (count(*) FILTER (WHERE attempts >= 10))::int AS failing
FROM outbox WHERE accepted IS NULL AND created <= $1 AND not_before < 'infinity'
GROUP BY kind`;
