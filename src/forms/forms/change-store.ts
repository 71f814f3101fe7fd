// Creates, moves, holds and removes forms. One statement makes the change and writes its outbox rows and its idempotency
// record, so that a crash leaves all of them or none.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import { deletionFacts, deletionSql } from '../expiry/deletion.ts';
import type { IdempotencyRecord } from '../idempotency/idempotency.ts';
import type { EventKind } from '../outbox/event-catalogue.ts';
import {
  type ExpiringStatus,
  expiringStatuses,
  type FormStatus,
  type MoveOperation,
  operations,
  type StatusMove,
  statuses,
} from './catalogue.ts';
import type { Form, Person } from './form.ts';
import { type FormRow, formColumns, toForm } from './store.ts';

export interface NewForm extends Pick<Form, 'id' | 'tenantId' | 'definitionId' | 'created' | 'createdBy' | 'issuer'> {
  anonymousApplicant: boolean;
  /** Whether the definition allows this creator only one form. */
  onePerApplicant: boolean;
  applicant: Form['applicant'];
  /** HMACs of the addresses that the mail about the created draft may go to. */
  noticeHashes: Buffer[];
}

export interface Change {
  tenantId: string;
  formId: string;
  actor: Person;
  now: Date;
}

export interface ChangeStore {
  /**
   * Creates the form and writes the outbox rows `subscribe` (if there is a channel) and `form-created`. The latter
   * suppresses its mail if an address got a mail within the last minute, or five within the hour. False if no form was
   * created: the idempotency key was used, or the creator has a form of the definition.
   */
  create(form: NewForm, record: IdempotencyRecord | undefined): Promise<boolean>;
  /**
   * Changes the status, and writes the event's outbox row and the idempotency record, if given. Undefined if the form does
   * not have the status that the operation requires, or not the `revision`, if given.
   */
  move(
    change: Change & { operation: MoveOperation; revision?: string; record?: IdempotencyRecord | undefined },
  ): Promise<Form | undefined>;
  /** Undefined if there is no such form. Releasing a held form restarts the period of its status. */
  setHeld(change: Omit<Change, 'actor'> & { held: boolean }): Promise<Form | undefined>;
  /**
   * Removes a form that is not held and has one of `statuses`, with its idempotency records and codes; writes a tombstone
   * and the outbox row `form-deleted`. False if no such form exists.
   */
  remove(change: Change & { statuses: readonly FormStatus[] }): Promise<boolean>;
}

/** Inserts the idempotency record in $1 to $9, or replaces an expired one. $5 is null if there is no record. */
const recordSql = (source: string) => `
INSERT INTO idempotency_keys (tenant_id, issuer, subject, route, key_hash, body_hash, form_id, answer, created)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 ${source}
ON CONFLICT (tenant_id, issuer, subject, route, key_hash) DO UPDATE
  SET body_hash = excluded.body_hash, form_id = excluded.form_id, answer = excluded.answer, created = excluded.created`;

/**
 * One row for each address ($17) that may get a mail now ($9). Mails with codes and about other created drafts count.
 * An existing row is locked, so only one of several concurrent creates sends a mail.
 */
const noticeSql = `
INSERT INTO created_notices AS known (address_hash, latest, sent)
SELECT hash, $9, ARRAY[$9::timestamptz] FROM form, unnest($17::bytea[]) AS hash
WHERE ${codesLeft('hash', '0')}
ORDER BY hash
ON CONFLICT (address_hash) DO UPDATE SET latest = excluded.latest,
  sent = excluded.sent || ARRAY(SELECT moment FROM unnest(known.sent) AS moment WHERE ${lastHour('moment')})
WHERE known.latest <= $9 - interval '1 minute'
  AND ${codesLeft('known.address_hash', `(SELECT count(*) FROM unnest(known.sent) AS moment WHERE ${lastHour('moment')})`)}
RETURNING address_hash`;

function lastHour(moment: string): string {
  return `${moment} > $9 - interval '1 hour'`;
}

/** Whether an address got no code within the last minute, and fewer than five mails (codes and `others`) within the hour. */
function codesLeft(hash: string, others: string): string {
  return `(SELECT count(*) + ${others} < 5 AND coalesce(max(c.sent) <= $9 - interval '1 minute', true)
    FROM code_sends c WHERE c.address_hash = ${hash} AND ${lastHour('c.sent')})`;
}

// Creates the form only if the key is free. It waits for a concurrent create with the same key.
const createSql = `
WITH existing AS (
  SELECT FROM forms
  WHERE $15 AND tenant_id = $1 AND definition_id = $10 AND created_by_issuer = $11 AND created_by ->> 'id' = $12::jsonb ->> 'id'
    AND NOT anonymous_applicant
  LIMIT 1
), record AS (
  ${recordSql('WHERE $5::bytea IS NOT NULL AND NOT EXISTS (SELECT FROM existing)')}
  WHERE idempotency_keys.created <= $16
  RETURNING form_id
), form AS (
  INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
    one_per_applicant, applicant, last_accessed)
  SELECT $7, $1, $10, 'Draft', $9, $12, $11, $13, $15, $14, $9
  WHERE NOT EXISTS (SELECT FROM existing) AND ($5::bytea IS NULL OR EXISTS (SELECT FROM record))
  RETURNING id
), notice AS (
  ${noticeSql}
), judged AS (
  SELECT id, (SELECT count(*) FROM notice) < cardinality($17::bytea[]) AS suppressed FROM form
), told AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
  SELECT judged.id, $1, rows.kind, rows.facts || CASE WHEN suppressed THEN '{"noticeSuppressed":true}'::jsonb ELSE '{}' END,
    $9, $9
  FROM judged CROSS JOIN LATERAL (VALUES
    (1, 'subscribe', jsonb_build_object('definitionId', $10::text)),
    (2, 'form-created', jsonb_build_object('definitionId', $10::text, 'actor', $12::jsonb))
  ) AS rows (rank, kind, facts)
  WHERE rows.rank = 2 OR jsonb_array_length($14::jsonb -> 'channels') > 0
  ORDER BY rows.rank
)
SELECT suppressed FROM judged`;

const moveSql = `
WITH form AS (
  UPDATE forms SET status = $12, revision = revision + 1,
    locked = CASE WHEN $12 = 'Draft' THEN NULL ELSE locked END,
    last_accessed = CASE WHEN $14 = 'last_accessed' THEN $9 ELSE last_accessed END,
    submitted = CASE WHEN $14 = 'submitted' THEN $9 ELSE submitted END
  WHERE id = $7 AND tenant_id = $1 AND status = $11 AND ($15::bigint IS NULL OR revision = $15)
  RETURNING ${formColumns}
), record AS (
  ${recordSql('FROM form WHERE $5::bytea IS NOT NULL')}
), told AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
  SELECT id, tenant_id, $13, jsonb_build_object('definitionId', definition_id, 'actor', $10::jsonb), $9, $9 FROM form
)
SELECT ${formColumns} FROM form`;

const restartSql = (status: ExpiringStatus) => {
  const { since } = statuses[status].expiry;
  return `${since} = CASE WHEN held AND NOT $4 AND status = '${status}' THEN $3 ELSE ${since} END`;
};

const holdSql = `
UPDATE forms SET ${['held = $4', ...expiringStatuses.map(restartSql)].join(', ')}
WHERE id = $1 AND tenant_id = $2
RETURNING ${formColumns}`;

const removeSql = `
WITH due AS MATERIALIZED (
  SELECT id, true AS notified FROM forms
  WHERE id = $1 AND tenant_id = $2 AND NOT held AND status = ANY($4) FOR UPDATE
), ${deletionSql('$3')}, told AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
  SELECT id, tenant_id, 'form-deleted', ${deletionFacts('$5')}, $3, $3 FROM gone
)
SELECT id FROM gone`;

/** `onSuppressed` is called for each created draft whose mail is suppressed. */
export function createChangeStore(pool: SharedPool, onSuppressed: () => void = () => undefined): ChangeStore {
  return {
    async create(form, record) {
      const keep = recordValues(record, { tenantId: form.tenantId, formId: form.id, now: form.created });
      const claim = { tenant: form.tenantId, member: form.id };
      const values = [...keep, form.definitionId, form.issuer, form.createdBy, form.anonymousApplicant, form.applicant];
      try {
        const { rows } = await pool.query<{ suppressed: boolean }>(claim, createSql, [
          ...values,
          form.onePerApplicant,
          record?.expired,
          form.noticeHashes,
        ]);
        if (rows[0]?.suppressed) onSuppressed();
        return rows.length === 1;
      } catch (error) {
        // Concurrent creates by the same creator: the index admits one.
        if (isViolation(error, 'forms_one_per_applicant')) return false;
        throw error;
      }
    },
    async move({ tenantId, formId, actor, now, operation, revision, record }) {
      const { move, event }: { move: StatusMove; event: EventKind } = operations[operation];
      const values = [
        ...recordValues(record, { tenantId, formId, now }),
        actor,
        move.from,
        move.to,
        event,
        move.sets,
        revision,
      ];
      const [row] = (await pool.query<FormRow>({ tenant: tenantId, member: formId }, moveSql, values)).rows;
      return row && toForm(row);
    },
    async setHeld({ tenantId, formId, now, held }) {
      const [row] = (
        await pool.query<FormRow>({ tenant: tenantId, member: formId }, holdSql, [formId, tenantId, now, held])
      ).rows;
      return row && toForm(row);
    },
    async remove({ tenantId, formId, actor, now, statuses }) {
      const { rowCount } = await pool.query({ tenant: tenantId, member: formId }, removeSql, [
        formId,
        tenantId,
        now,
        statuses,
        actor,
      ]);
      return rowCount === 1;
    },
  };
}

/** $1 to $9 of a statement that may write an idempotency record. */
function recordValues(record: IdempotencyRecord | undefined, of: { tenantId: string; formId: string; now: Date }) {
  const { issuer, subject, route, keyHash, bodyHash, answer } = record ?? {};
  return [of.tenantId, issuer, subject, route, keyHash, bodyHash, of.formId, answer, of.now];
}

function isViolation(error: unknown, constraint: string): boolean {
  return error instanceof Error && 'constraint' in error && error.constraint === constraint;
}
