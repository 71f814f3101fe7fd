// Lists the deletions of forms, and repeats them after the database was restored from a backup. An entry of the list
// contains ids, a time, flags and a sequence number, but no form data.
import type pg from 'pg';
import { z } from 'zod';
import { deletionFacts, deletionSql } from './deletion.ts';

export const erasureSchema = z.strictObject({
  formId: z.uuid(),
  tenantId: z.string().min(1),
  definitionId: z.string(),
  anonymousApplicant: z.boolean(),
  deleted: z.iso.datetime(),
  /** False only if the expiry deleted the form before the event service accepted its `form-locked` event. */
  notified: z.boolean(),
  /**
   * Sequence number of the `form-deleted` row, which is part of the idempotency key of its event. Null if the row was
   * purged.
   */
  sequence: z
    .string()
    .regex(/^\d{1,18}$/)
    .nullable(),
});

export type Erasure = z.infer<typeof erasureSchema>;

const pageSql = `
SELECT t.form_id AS "formId", t.tenant_id AS "tenantId", t.definition_id AS "definitionId",
  t.anonymous_applicant AS "anonymousApplicant", t.deleted, t.notified,
  (SELECT max(o.sequence)::text FROM outbox o WHERE o.form_id = t.form_id AND o.kind = 'form-deleted') AS sequence
FROM tombstones t WHERE (t.deleted, t.form_id) > ($1, $2) ORDER BY t.deleted, t.form_id LIMIT 1000`;

type ErasureRow = Omit<Erasure, 'deleted'> & { deleted: Date };

/**
 * Returns the deletions of forms from the time `since` on, oldest first. The database keeps the entries for 30 days.
 */
export async function* listErasures(pool: Pick<pg.Pool, 'query'>, since: Date): AsyncGenerator<Erasure> {
  let position = [since, '00000000-0000-0000-0000-000000000000'] as [Date, string];
  for (;;) {
    const { rows } = await pool.query<ErasureRow>(pageSql, position);
    for (const row of rows) yield { ...row, deleted: row.deleted.toISOString() };
    const last = rows.at(-1);
    if (!last) return;
    position = [last.deleted, last.formId];
  }
}

/**
 * Number of sequence numbers to skip. Without the skip, the restored database would give its next events the numbers of
 * the events that followed the backup. A consumer ignores an event with a used idempotency key as a duplicate. No
 * installation writes this many events between two backups.
 */
const skipped = 1_000_000_000;

const skipSql = `
SELECT setval(pg_get_serial_sequence('outbox', 'sequence'),
  (SELECT coalesce(last_value, 0) FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = 'outbox_sequence_seq')
    + ${skipped})`;

/** Moves the outbox's sequence forward, so that the next rows get unused numbers. */
export async function skipSequences(db: Pick<pg.Pool, 'query'>): Promise<void> {
  await db.query(skipSql);
}

// A `form-deleted` row keeps its number, so that consumers recognise the event. If another row already has that number,
// the `form-deleted` row gets a new one. This happens if the form service ran between the restore and this statement.
//
// A form that was created after the backup has no row. Its subscriber may remain, because the pending removal was lost
// with the database. The delivery of a `subscribe` row without a form finds the subscriber by its user id, and has it
// removed (outbox/delivery.ts). A listed form that already has a tombstone was deleted before the backup, so the outbox
// of the backup has everything that must follow.
const eraseSql = `
WITH listed AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS l ("formId" uuid, "tenantId" text, "definitionId" text,
    "anonymousApplicant" boolean, deleted timestamptz, notified boolean, sequence bigint)
), due AS MATERIALIZED (
  SELECT f.id, l.notified, l.sequence FROM forms f
  JOIN listed l ON l."formId" = f.id AND l."tenantId" = f.tenant_id FOR UPDATE OF f
), known AS (
  INSERT INTO tombstones (form_id, tenant_id, definition_id, anonymous_applicant, deleted, notified)
  SELECT "formId", "tenantId", "definitionId", "anonymousApplicant", deleted, notified FROM listed
  WHERE NOT EXISTS (SELECT FROM forms f WHERE f.id = "formId")
  ON CONFLICT (form_id) DO NOTHING RETURNING form_id, tenant_id, definition_id
), search AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
  SELECT form_id, tenant_id, 'subscribe', jsonb_build_object('definitionId', definition_id), $2, $2 FROM known
), ${deletionSql('$2')}, event AS (
  INSERT INTO outbox (sequence, form_id, tenant_id, kind, facts, created, not_before) OVERRIDING SYSTEM VALUE
  SELECT CASE WHEN due.sequence IS NULL OR EXISTS (SELECT FROM outbox o WHERE o.sequence = due.sequence)
      THEN nextval(pg_get_serial_sequence('outbox', 'sequence')) ELSE due.sequence END,
    gone.id, gone.tenant_id, 'form-deleted', ${deletionFacts('NULL')}, $2, $2
  FROM gone JOIN due USING (id)
)
SELECT id, tenant_id AS "tenantId" FROM gone`;

/**
 * Keeps one entry for each form, if possible one with a sequence number. An exported entry has no sequence number if
 * the form's outbox row had already been purged.
 */
export function withoutRepetitions(erasures: Erasure[]): Erasure[] {
  const kept = new Map<string, Erasure>();
  for (const erasure of erasures) {
    const other = kept.get(erasure.formId);
    if (!other?.sequence) kept.set(erasure.formId, erasure);
  }
  return [...kept.values()];
}

/**
 * Deletes the listed forms that exist, in one statement. Makes the outbox look for the subscribers of the other forms.
 * Returns the deleted forms. Each form may be listed only once.
 */
export async function eraseAgain(db: Pick<pg.Pool, 'query'>, erasures: Erasure[], now: Date): Promise<ErasedForm[]> {
  return (await db.query<ErasedForm>(eraseSql, [JSON.stringify(erasures), now])).rows;
}

interface ErasedForm {
  id: string;
  tenantId: string;
}
