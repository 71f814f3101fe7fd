// Finds and changes one form of a tenant. Each change is one statement. The statement also writes the change's outbox
// row and idempotency record, if it has any, so that a crash leaves all of them or none.
import type { Requester } from '../../service/limits/fair-queue.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import { storedOrigin } from '../../service/tracing/tracing.ts';
import { deletionFacts, deletionSql } from '../expiry/deletion.ts';
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
import type { Form, Person, Tombstone } from './form.ts';
import type { Transition } from './form-metrics.ts';
import { type Author, appendSql, type HistoryRow } from './history.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import { countNoticeSql, isOverBudget, isUnheardOf, suppressedFacts } from './notice-budget.ts';

export interface FormKey {
  tenantId: string;
  formId: string;
}

/** Returns the requester of a form's statements on the database connections. */
export function requesterOf({ tenantId, formId }: FormKey): Requester {
  return { tenant: tenantId, member: formId };
}

/** Which form is changed, who changes it, and when. */
export interface Change extends FormKey {
  actor: Person;
  now: Date;
}

/** A change that the form's history records. */
export interface RecordedChange extends Change {
  by: Author;
}

/** HMACs of the addresses whose budgets decide whether a notice is sent. Without them, it is sent in any case. */
interface Budgeted {
  budgets?: Buffer[] | undefined;
}

interface Move extends RecordedChange, Budgeted {
  operation: MoveOperation;
  revision?: string;
  record?: IdempotencyRecord | undefined;
}

export interface Hold {
  reason?: string | undefined;
}

/** The columns of a form without its form data, which this module handles only as text. */
export const formColumns = `id, tenant_id AS "tenantId", definition_id AS "definitionId", status, created,
  created_by AS "createdBy", created_by_issuer AS issuer, anonymous_applicant AS "anonymousApplicant",
  for_another AS "forAnother", applicant, subscriber_id AS "subscriberId", last_accessed AS "lastAccessed", locked, submitted,
  held, hold_reason AS "holdReason", held_by AS "heldBy", revision`;

/**
 * Returns SQL that inserts the idempotency record in $1 to $9, or replaces an expired one. $5, the hash of the key, is
 * null if the request has no idempotency key.
 */
export const recordSql = (source: string) => `
INSERT INTO idempotency_keys (tenant_id, issuer, subject, route, key_hash, body_hash, form_id, answer, created)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 ${source}
ON CONFLICT (tenant_id, issuer, subject, route, key_hash) DO UPDATE
  SET body_hash = excluded.body_hash, form_id = excluded.form_id, answer = excluded.answer, created = excluded.created`;

/** Returns the values of $1 to $9 for {@link recordSql}. */
export function recordValues(record: IdempotencyRecord | undefined, { tenantId, formId }: FormKey, now: Date) {
  const { issuer, subject, route, keyHash, bodyHash, response } = record ?? {};
  return [tenantId, issuer, subject, route, keyHash, bodyHash, formId, response, now];
}

// $1 to $9: recordSql. $10: actor. $11, $12: status before and after. $13: kind of the event. $14: date to set. $15:
// the required revision. $16 to $18: the history's event, role and account. $19, $20: trace, request id. $21: budgets.
const moveSql = `
WITH form AS (
  UPDATE forms SET status = $12, revision = revision + 1,
    locked = CASE WHEN $12 = 'Draft' THEN NULL ELSE locked END,
    last_accessed = CASE WHEN $14 = 'last_accessed' THEN $9 ELSE last_accessed END,
    submitted = CASE WHEN $14 = 'submitted' THEN $9 ELSE submitted END,
    history = ${appendSql({ event: '$16', time: '$9', role: '$17', account: '$18' })}
  WHERE id = $7 AND tenant_id = $1 AND status = $11 AND ($15::bigint IS NULL OR revision = $15)
  RETURNING ${formColumns}
), record AS (
  ${recordSql('FROM form WHERE $5::bytea IS NOT NULL')}
), notice AS (
  ${countNoticeSql({ source: 'form', hashes: '$21', now: '$9', paused: 'false' })}
), judged AS (
  SELECT form.*, ${isOverBudget('$21')} AS suppressed FROM form
), event AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent, request_id)
  SELECT id, "tenantId", $13, jsonb_build_object('definitionId', "definitionId", 'actor', $10::jsonb)
    || ${suppressedFacts('suppressed')}, $9, $9, $19, $20
  FROM judged
)
SELECT * FROM judged`;

const restartSql = (status: ExpiringStatus) => {
  const { since } = statuses[status].expiry;
  return `${since} = CASE WHEN held AND NOT $4 AND status = '${status}' THEN $3 ELSE ${since} END`;
};

const heldEvent = `CASE WHEN $4 THEN '${operations.hold.recorded}' ELSE '${operations.release.recorded}' END`;

// A release is recorded only if the form is held. A second hold without a reason keeps the first reason and its author.
const holdSql = `
UPDATE forms SET held = $4, hold_reason = CASE WHEN $4 THEN coalesce($5, hold_reason) END,
  held_by = CASE WHEN $4 AND $5::text IS NULL THEN coalesce(held_by, $6) ELSE $6 END,
  history = CASE WHEN held OR $4 THEN ${appendSql({ event: heldEvent, time: '$3', role: '$7', account: '$8' })} ELSE history END,
  ${expiringStatuses.map(restartSql).join(', ')}
WHERE id = $1 AND tenant_id = $2
RETURNING ${formColumns}`;

const recordSentSql = `
UPDATE forms SET history = ${appendSql({ event: `'${operations['send-code'].recorded}'`, time: '$3', role: '$4', account: '$5' })}
WHERE id = $1 AND tenant_id = $2`;

const removeSql = `
WITH due AS MATERIALIZED (
  SELECT id, true AS notified, ${isUnheardOf} AS unheard FROM forms
  WHERE id = $1 AND tenant_id = $2 AND NOT held AND status = ANY($4) FOR UPDATE
), ${deletionSql('$3')}, notice AS (
  ${countNoticeSql({ source: '(SELECT FROM due WHERE NOT unheard) AS heard', hashes: '$8', now: '$3', paused: 'true' })}
), judged AS (
  SELECT id, unheard OR ${isOverBudget('$8')} AS suppressed FROM due
), told AS (
  INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, traceparent, request_id)
  SELECT id, tenant_id, 'form-deleted', ${deletionFacts('$5')} || ${suppressedFacts('suppressed')}, $3, $3, $6, $7
  FROM gone JOIN judged USING (id)
)
SELECT suppressed FROM gone JOIN judged USING (id)`;

const backlogSql = `
SELECT FROM outbox WHERE form_id = $1 AND accepted IS NULL AND not_before < 'infinity'
ORDER BY sequence DESC NULLS LAST OFFSET 999 LIMIT 1`;

interface Judged {
  suppressed: boolean;
}

export type FormStore = ReturnType<typeof createFormStore>;

/**
 * `onTransition` is called after each commit that changed a status or deleted a form, and `onSuppressed` after each
 * commit of an event whose notice is suppressed.
 */
export interface FormCounts {
  onTransition?(transition: Transition): void;
  onSuppressed?(): void;
}

export function createFormStore(pool: SharedPool, { onTransition, onSuppressed }: FormCounts = {}) {
  const count = (transition: Transition, suppressed: boolean) => {
    onTransition?.(transition);
    if (suppressed) onSuppressed?.();
  };

  return {
    async find(key: FormKey): Promise<Form | undefined> {
      const sql = `SELECT ${formColumns} FROM forms WHERE id = $1 AND tenant_id = $2`;
      return (await pool.query<Form>(requesterOf(key), sql, [key.formId, key.tenantId])).rows[0];
    },

    /** Finds the tombstone of a form that was deleted after `since`. */
    async findTombstone(key: FormKey, since: Date): Promise<Tombstone | undefined> {
      const sql = `SELECT definition_id AS "definitionId", anonymous_applicant AS "anonymousApplicant" FROM tombstones
        WHERE form_id = $1 AND tenant_id = $2 AND deleted > $3`;
      return (await pool.query<Tombstone>(requesterOf(key), sql, [key.formId, key.tenantId, since])).rows[0];
    },

    /** Reads the form data that a submit validates, and its revision. Does not set lastAccessed. */
    async peek(key: FormKey): Promise<{ data: string; revision: string } | undefined> {
      const sql = 'SELECT data::text, revision FROM forms WHERE id = $1 AND tenant_id = $2';
      const values = [key.formId, key.tenantId];
      return (await pool.query<{ data: string; revision: string }>(requesterOf(key), sql, values)).rows[0];
    },

    /**
     * Changes the status of a form. Writes the outbox row of the operation's event and, if given, the idempotency
     * record. Returns undefined unless the form has the status that the operation requires and the given `revision`.
     */
    async move(change: Move): Promise<Form | undefined> {
      const { move, event, recorded }: { move: StatusMove; event: EventKind; recorded: Transition } =
        operations[change.operation];
      const values = [...recordValues(change.record, change, change.now), change.actor, move.from, move.to, event];
      values.push(move.sets, change.revision, recorded, change.by.role, change.by.account, ...storedOrigin());
      const { rows } = await pool.query<Form & Judged>(requesterOf(change), moveSql, [...values, change.budgets]);
      if (!rows[0]) return undefined;
      const { suppressed, ...form } = rows[0];
      count(recorded, suppressed);
      return form;
    },

    /** True if at least 1,000 of the form's outbox rows are neither delivered nor in quarantine. */
    hasBacklog: async (key: FormKey): Promise<boolean> =>
      (await pool.query(requesterOf(key), backlogSql, [key.formId])).rows.length === 1,

    /** Sets lastAccessed of a draft. Returns undefined if the form is not a draft. */
    async keep({ now, ...key }: FormKey & { now: Date }): Promise<Form | undefined> {
      const sql = `UPDATE forms SET last_accessed = greatest(last_accessed, $3)
        WHERE id = $1 AND tenant_id = $2 AND status = 'Draft' RETURNING ${formColumns}`;
      return (await pool.query<Form>(requesterOf(key), sql, [key.formId, key.tenantId, now])).rows[0];
    },

    /**
     * Holds a form if `hold` is given, otherwise releases it. A release restarts the retention period of the form's
     * status. Returns undefined if the form does not exist.
     */
    async setHeld(change: RecordedChange & { hold: Hold | undefined }): Promise<Form | undefined> {
      const { actor, now, hold, by, formId, tenantId } = change;
      const values = [formId, tenantId, now, hold !== undefined, hold?.reason, hold && actor, by.role, by.account];
      return (await pool.query<Form>(requesterOf(change), holdSql, values)).rows[0];
    },

    /** Records in the history that a code was sent. */
    async recordSent({ formId, tenantId, now, by }: Omit<RecordedChange, 'actor'>): Promise<void> {
      await pool.query(requesterOf({ formId, tenantId }), recordSentSql, [formId, tenantId, now, by.role, by.account]);
    },

    /** Reads the recorded entries of the history. Returns undefined if the form does not exist. */
    async history(key: FormKey): Promise<HistoryRow[] | undefined> {
      const sql = 'SELECT history FROM forms WHERE id = $1 AND tenant_id = $2';
      const { rows } = await pool.query<{ history: HistoryRow[] }>(requesterOf(key), sql, [key.formId, key.tenantId]);
      return rows[0]?.history;
    },

    /**
     * Deletes a form that is not held and has one of `statuses`, with its idempotency records and codes. Writes a
     * tombstone and the outbox row `form-deleted`, whose notice is suppressed if the applicant has not heard of the
     * form. Returns false if no such form exists.
     */
    async remove(change: Change & Budgeted & { statuses: readonly FormStatus[] }): Promise<boolean> {
      const { actor, now, statuses, budgets, ...key } = change;
      const values = [key.formId, key.tenantId, now, statuses, actor, ...storedOrigin(), budgets];
      const { rows } = await pool.query<Judged>(requesterOf(key), removeSql, values);
      if (rows[0]) count('deleted', rows[0].suppressed);
      return rows.length === 1;
    },
  };
}
