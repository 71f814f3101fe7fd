// Creates forms. One statement writes the form, its outbox rows and its idempotency record, so that a crash leaves all
// of them or none.
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import { storedOrigin } from '../../service/tracing/tracing.ts';
import { operations } from './catalogue.ts';
import type { Form } from './form.ts';
import { type Author, entrySql } from './history.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import { countNoticeSql, isOverBudget, suppressedFacts } from './notice-budget.ts';
import { type FormCounts, recordSql, recordValues } from './store.ts';

export interface NewForm extends Pick<Form, 'id' | 'tenantId' | 'definitionId' | 'created' | 'createdBy' | 'issuer'> {
  anonymousApplicant: boolean;
  /** True if a clerk enters the form for someone else. */
  forAnother: boolean;
  /** `Submitted` if the form is submitted immediately. */
  status: 'Draft' | 'Submitted';
  /** JSON text of the form data, and of the files; undefined for an empty object. */
  data?: string | undefined;
  files?: string | undefined;
  /** True if the definition allows this creator only one form. */
  onePerApplicant: boolean;
  applicant: Form['applicant'];
  /** HMACs of the addresses to which notices about the form may be sent. */
  noticeHashes: Buffer[];
  /** True if the budgets of the addresses also apply to the notices after `form-created`. */
  isBudgeted: boolean;
  /** HMACs of all addresses of the applicant, for the search by address. */
  addressHashes: Buffer[];
  /** The author of the submission, for the history of a form that is submitted immediately. */
  by?: Author;
}

const submissionSql = entrySql({
  event: `'${operations.submit.recorded}'`,
  time: '$9',
  role: '$26',
  account: '$27',
});

// Creates the form only if the idempotency key is unused. Waits for a concurrent request with the same key. $1 to $9:
// recordSql. $10: definition. $11, $12: the creator's issuer, and the creator. $13: anonymousApplicant. $14: applicant.
// $15: onePerApplicant. $16: records up to this time have expired. $17: noticeHashes. $18: status. $19, $20: data,
// files. $21: addressHashes. $22, $23: trace, request id. $24: forAnother. $25: isBudgeted. $26, $27: role and account
// of `by`.
const createSql = `
WITH existing AS (
  SELECT FROM forms
  WHERE $15 AND tenant_id = $1 AND definition_id = $10 AND created_by_issuer = $11 AND created_by ->> 'id' = $12::jsonb ->> 'id'
    AND NOT anonymous_applicant AND NOT for_another
  LIMIT 1
), record AS (
  ${recordSql('WHERE $5::bytea IS NOT NULL AND NOT EXISTS (SELECT FROM existing)')}
  WHERE idempotency_keys.created <= $16
  RETURNING form_id
), form AS (
  INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
    one_per_applicant, applicant, last_accessed, submitted, data, files, for_another, history)
  SELECT $7, $1, $10, $18, $9, $12, $11, $13, $15, $14, $9, CASE WHEN $18 = 'Submitted' THEN $9::timestamptz END,
    coalesce($19::json, '{}'), coalesce($20::json, '{}'), $24,
    CASE WHEN $18 = 'Submitted' THEN jsonb_build_array(${submissionSql}) ELSE '[]' END
  WHERE NOT EXISTS (SELECT FROM existing) AND ($5::bytea IS NULL OR EXISTS (SELECT FROM record))
  RETURNING id
), addresses AS (
  INSERT INTO applicant_addresses (form_id, address_hash) SELECT id, hash FROM form, unnest($21::bytea[]) AS hash
), notice AS (
  ${countNoticeSql({ source: 'form', hashes: '$17', now: '$9', paused: "$18 = 'Draft'" })}
), judged AS (
  SELECT id, ($18 = 'Draft' OR $25) AND ${isOverBudget('$17')} AS suppressed FROM form
), events AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent, request_id)
  SELECT judged.id, $1, rows.kind, rows.facts || ${suppressedFacts("suppressed OR (rows.kind = 'subscribe' AND $25)")},
    $9, $9, $22, $23
  FROM judged CROSS JOIN LATERAL (VALUES
    (1, 'subscribe', jsonb_build_object('definitionId', $10::text)),
    (2, 'form-created', jsonb_build_object('definitionId', $10::text, 'actor', $12::jsonb)),
    (3, 'form-submitted', jsonb_build_object('definitionId', $10::text, 'actor', $12::jsonb))
  ) AS rows (rank, kind, facts)
  WHERE CASE rows.rank WHEN 1 THEN jsonb_array_length($14::jsonb -> 'channels') > 0
    ELSE rows.rank = CASE $18 WHEN 'Submitted' THEN 3 ELSE 2 END END
  ORDER BY rows.rank
)
SELECT suppressed FROM judged`;

export type CreationStore = ReturnType<typeof createCreationStore>;

export function createCreationStore(pool: SharedPool, { onSuppressed, onTransition }: FormCounts = {}) {
  return {
    /**
     * Creates the form and writes the outbox rows `subscribe` (if the applicant has a channel) and `form-created` or
     * `form-submitted`. The mail of `form-created` is suppressed if an address got a mail within the last minute, or
     * five within the last hour. The mail of `form-submitted` counts as well, and is suppressed only after five mails,
     * and only if the form is budgeted.
     * Returns false if no form was created, either because the idempotency key was used or because the creator already
     * has a form of the definition.
     */
    async create(form: NewForm, record: IdempotencyRecord | undefined): Promise<boolean> {
      const { tenantId, id, created, onePerApplicant, noticeHashes, addressHashes } = form;
      const values = [
        ...recordValues(record, { tenantId, formId: id }, created),
        ...[form.definitionId, form.issuer, form.createdBy, form.anonymousApplicant, form.applicant],
        ...[onePerApplicant, record?.expired, noticeHashes, form.status, form.data, form.files, addressHashes],
        ...storedOrigin(),
        ...[form.forAnother, form.isBudgeted, form.by?.role, form.by?.account],
      ];
      try {
        const requester = { tenant: tenantId, member: id };
        const { rows } = await pool.query<{ suppressed: boolean }>(requester, createSql, values);
        if (rows.length === 0) return false;
        onTransition?.('created');
        if (form.status === 'Submitted') onTransition?.('submitted');
        if (rows[0]?.suppressed) onSuppressed?.();
        return true;
      } catch (error) {
        // A concurrent request of the same creator has created the form first. The unique index allows only one form.
        if (error instanceof Error && 'constraint' in error && error.constraint === 'forms_one_per_applicant')
          return false;
        throw error;
      }
    },

    /** Returns the id of the oldest form of a definition that a signed-in person created for themselves. */
    async findOfCreator(form: Pick<NewForm, 'tenantId' | 'definitionId' | 'issuer' | 'createdBy'>) {
      const { tenantId, definitionId, issuer, createdBy } = form;
      const { rows } = await pool.query<{ id: string }>(
        { tenant: tenantId, member: createdBy.id },
        `SELECT id FROM forms WHERE tenant_id = $1 AND definition_id = $2 AND created_by_issuer = $3
          AND created_by ->> 'id' = $4 AND NOT anonymous_applicant AND NOT for_another
        ORDER BY created, id LIMIT 1`,
        [tenantId, definitionId, issuer, createdBy.id],
      );
      return rows[0]?.id;
    },
  };
}
