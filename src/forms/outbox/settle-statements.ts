// The SQL that records what became of claimed outbox rows. Each statement is a whole transaction.
import { escapeLiteral } from 'pg';
import { isOpen, momentOf, planSql } from './statements.ts';

/** Rows of values, whatever is in them. */
const valuesOf = (rows: readonly object[], columns: string) =>
  `jsonb_to_recordset(${escapeLiteral(JSON.stringify(rows))}::jsonb) AS i (${columns})`;

interface Settlement {
  now: Date;
  /** When removals that follow fall due. */
  removal: Date;
  /** Whether files are deleted. */
  deleteFiles: boolean;
}

export interface Acceptance extends Settlement {
  rows: readonly { sequence: string; subscriberId: string | undefined }[];
}

/** Of the rows in `done`: takes the names of actors out of what a deleted form leaves. */
const namelessSql = `
nameless AS (
  UPDATE outbox p SET facts = p.facts - 'actor'
  FROM done d
  WHERE d.kind = 'form-deleted' AND p.form_id = d.form_id AND p.sequence < d.sequence AND p.facts ? 'actor'
)`;

/**
 * Of the rows in `done`: what remains to be removed elsewhere after form-deleted. The subscriber comes before the files,
 * so that a file that cannot be deleted holds back nothing.
 */
const removalsSql = (deleteFiles: boolean) => `
  SELECT 1 AS rank, d.form_id, d.tenant_id, 'remove-subscriber' AS kind,
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'subscriberId', s.id) AS facts
  FROM done d CROSS JOIN LATERAL (
    SELECT coalesce(
      (SELECT p.facts ->> 'subscriberId' FROM outbox p
       WHERE p.form_id = d.form_id AND p.kind = 'subscribe' ORDER BY p.sequence DESC LIMIT 1),
      d.facts ->> 'subscriberId') AS id) s
  WHERE d.kind = 'form-deleted' AND s.id IS NOT NULL
  UNION ALL
  SELECT 3, d.form_id, d.tenant_id, 'remove-files',
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'files', d.facts -> 'files')
  FROM done d
  WHERE ${deleteFiles} AND d.kind = 'form-deleted' AND jsonb_array_length(coalesce(d.facts -> 'files', '[]')) > 0`;

/**
 * Marks rows as accepted, and writes what follows.
 *
 * A subscriber is always written into its `subscribe` row, also by a relay whose claim had run out; the form's row is
 * told if it is still there. If it is not, and no form-deleted is to come that would see to it, the removal is written
 * here. The update of `forms` may wait for a transaction that deletes the form and whose form-deleted this statement
 * does not see; then there are two removals, which does no harm.
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
), ${namelessSql}
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
SELECT form_id, tenant_id, kind, facts, ${due}, ${due} FROM (
${removalsSql(deleteFiles)}
  UNION ALL
  SELECT 2, d.form_id, d.tenant_id, 'remove-subscriber',
    jsonb_build_object('definitionId', d.facts -> 'definitionId', 'subscriberId', d.subscriber_id)
  FROM done d
  WHERE d.kind = 'subscribe' AND d.subscriber_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM pointed WHERE pointed.id = d.form_id)
    AND NOT EXISTS (
      SELECT FROM outbox p WHERE p.form_id = d.form_id AND p.kind = 'form-deleted' AND ${isOpen('p')}
        AND p.not_before < 'infinity')
) followers
ORDER BY rank`;
}

export interface Failure {
  sequence: string;
  claimedUntil: Date;
  notBefore: Date | undefined;
  refusals: number | undefined;
  tried: boolean;
}

/** Ends claims. A row that was not tried is as it was before its claim. */
export function failSql(rows: readonly Failure[]): string {
  const input = rows.map(({ sequence, claimedUntil, notBefore, refusals, tried }) => ({
    sequence,
    claimed_until: claimedUntil,
    not_before: notBefore,
    refusals,
    tries: tried ? 0 : 1,
  }));
  return `
${planSql}
UPDATE outbox o SET not_before = coalesce(i.not_before, o.not_before), claimed_until = NULL,
  attempts = o.attempts - i.tries, refusals = coalesce(i.refusals, o.refusals)
FROM ${valuesOf(input, 'sequence bigint, claimed_until timestamptz, not_before timestamptz, refusals int, tries int')}
WHERE o.sequence = i.sequence AND ${isOpen('o')} AND o.claimed_until = i.claimed_until`;
}

export interface Quarantining extends Settlement {
  rows: readonly { sequence: string; claimedUntil: Date; reason: string; detail: string }[];
  /** Of the product. */
  version: string;
}

/** Kinds that a deleted form leaves something to do with. */
const outliving = "('subscribe', 'form-deleted', 'remove-subscriber', 'remove-files')";

/**
 * Sets rows aside until infinity, with an entry for each, and writes what remains to be removed after form-deleted. It
 * locks the forms, so that a deletion either comes before, and then the row is dropped, or finds the entry and clears it.
 */
export function quarantineSql({ rows, now, removal, deleteFiles, version }: Quarantining): string {
  const [due, moment] = [momentOf(removal), momentOf(now)];
  const input = rows.map(({ claimedUntil, ...row }) => ({ ...row, claimed_until: claimedUntil }));
  return `
${planSql}
WITH input AS MATERIALIZED (
  SELECT i.*, o.form_id, o.kind FROM ${valuesOf(input, 'sequence bigint, claimed_until timestamptz, reason text, detail text')}
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
  RETURNING o.sequence, o.form_id, o.tenant_id, o.kind, o.facts, o.attempts, i.reason, i.detail
), entries AS (
  INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
  SELECT kind, sequence::text, tenant_id,
    jsonb_build_object('formId', form_id, 'definitionId', facts -> 'definitionId'),
    reason, detail, ${moment}, ${moment}, attempts, ${escapeLiteral(version)}
  FROM done
  ON CONFLICT (kind, item) DO UPDATE SET reason = excluded.reason, detail = excluded.detail,
    last_tried = excluded.last_tried, attempts = excluded.attempts, version = excluded.version, released = false
), ${namelessSql}
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
SELECT form_id, tenant_id, kind, facts, ${due}, ${due} FROM (${removalsSql(deleteFiles)}
) followers
ORDER BY rank`;
}
