// The outbox table: claims, outcomes, backlog. Claims are short statements, never open transactions; a claim that is not
// settled runs out. A form's row waits until every earlier one is accepted or quarantined.
import type { QueryResult } from 'pg';
import { productVersion } from '../../service/operations/product-version.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { QuarantineCause } from '../../service/quarantine/quarantine.ts';
import type { OutboxKind } from './event-catalogue.ts';
import type { Actor, OutboxFacts, OutboxForm, OutboxRow } from './outbox.ts';
import { acceptSql, failSql, quarantineSql } from './settle-statements.ts';
import { backlogSql, claimSql, type Place } from './statements.ts';

/** A row as a relay holds it. */
export interface ClaimedRow extends OutboxRow<OutboxKind> {
  /** Names the claim: a claim that ran out and was taken by another relay has another value. */
  claimedUntil: Date;
  /** How often its service has refused it. */
  refusals: number;
}

export interface AcceptedRow {
  row: Pick<OutboxRow, 'sequence'>;
  subscriberId?: string | undefined;
}

export interface FailedRow {
  row: Pick<ClaimedRow, 'sequence' | 'claimedUntil'>;
  /** Next try; undefined for a row that was claimed and not tried, which is as due as it was. */
  notBefore: Date | undefined;
  /** Refusals by the service, where this try was one. */
  refusals?: number | undefined;
}

export interface RefusedRow extends QuarantineCause {
  row: Pick<ClaimedRow, 'sequence' | 'claimedUntil' | 'formId' | 'tenantId' | 'kind'>;
}

export interface Look {
  rows: ClaimedRow[];
  /** Where the next look may go on; undefined when nothing was claimed. */
  end: Place | undefined;
}

export interface Backlog {
  kind: OutboxKind;
  count: number;
  oldestSeconds: number;
  /** Of these, rows that were tried ten times or more. */
  failing: number;
}

export interface OutboxStore {
  /**
   * Claims due rows of a lane, oldest first, each the oldest undelivered one of its form, for `lease` milliseconds, and
   * reads their forms. Several relays never get the same row at once, unless a claim has run out. `after` spares a look
   * the rows that were accepted lately; what has become due before that place, only a look without it finds.
   */
  claim(options: { lane: string; limit: number; now: Date; lease: number; after?: Place | undefined }): Promise<Look>;
  /**
   * Marks rows as accepted, in one statement with what follows from it: a form learns its subscriber, a deleted form's
   * subscriber (and files) get the rows that remove them. A row may be marked again.
   */
  accept(rows: readonly AcceptedRow[], now: Date): Promise<void>;
  /** Gives rows back until `notBefore`; rows that another relay has claimed meanwhile stay with it. */
  fail(rows: readonly FailedRow[]): Promise<void>;
  /**
   * Quarantines rows, so that the later rows of their forms go on. What is left to do after form-deleted is done all the
   * same. A row of a form that was deleted meanwhile is dropped, unless it has to do with the form's deletion.
   */
  quarantine(rows: readonly RefusedRow[], now: Date): Promise<void>;
  backlog(now: Date): Promise<Backlog[]>;
  /** The answers of a form; null when it is gone. */
  readData(formId: string): Promise<Record<string, unknown> | null>;
}

export interface OutboxStoreOptions {
  pool: Queryable;
  /** Milliseconds from the acceptance of form-deleted to the removal of the subscriber: time for the last notice. */
  removalDelay: number;
  /** Whether deleted forms leave rows that delete their files. */
  deleteFiles: boolean;
}

export function createOutboxStore({ pool, removalDelay, deleteFiles }: OutboxStoreOptions): OutboxStore {
  return {
    async claim({ lane, limit, now, lease, after }) {
      const claimedUntil = new Date(now.getTime() + lease);
      const answer: unknown = await pool.query(claimSql({ lane, now, until: claimedUntil, limit, after }));
      const { rows } = (answer as QueryResult<ClaimRecord>[]).at(-1) ?? { rows: [] };
      const last = rows.at(-1);
      return {
        rows: rows.map((record) => ({ ...toRow(record), claimedUntil, refusals: record.refusals })),
        end: last && { notBefore: last.not_before, sequence: last.sequence },
      };
    },
    async accept(rows, now) {
      const accepted = rows.map(({ row, subscriberId }) => ({ sequence: row.sequence, subscriberId }));
      const removal = new Date(now.getTime() + removalDelay);
      await pool.query(acceptSql({ rows: accepted, now, removal, deleteFiles }));
    },
    async fail(rows) {
      await pool.query(
        failSql(
          rows.map(({ row, notBefore, refusals }) => ({ ...row, notBefore, refusals, tried: notBefore !== undefined })),
        ),
      );
    },
    async quarantine(rows, now) {
      const refused = rows.map(({ row: { sequence, claimedUntil }, reason, detail }) => ({
        ...{ sequence, claimedUntil, reason, detail },
      }));
      const removal = new Date(now.getTime() + removalDelay);
      await pool.query(quarantineSql({ rows: refused, now, removal, deleteFiles, version: productVersion() }));
    },
    async backlog(now) {
      const { rows } = await pool.query<Backlog>(backlogSql, [now]);
      return rows;
    },
    async readData(formId) {
      const { rows } = await pool.query<{ data: Record<string, unknown> }>('SELECT data FROM forms WHERE id = $1', [
        formId,
      ]);
      return rows[0]?.data ?? null;
    },
  };
}

interface ClaimRecord {
  not_before: string;
  sequence: string;
  form_id: string;
  tenant_id: string;
  kind: OutboxKind;
  facts: OutboxFacts;
  outbox_created: Date;
  attempts: number;
  refusals: number;
  status: OutboxForm['status'] | null;
  form_created: Date;
  created_by: Actor;
  last_accessed: Date;
  locked: Date | null;
  submitted: Date | null;
  applicant: OutboxForm['applicant'];
  subscriber_id: string | null;
}

function toRow(record: ClaimRecord): OutboxRow<OutboxKind> {
  return {
    sequence: record.sequence,
    formId: record.form_id,
    tenantId: record.tenant_id,
    kind: record.kind,
    facts: record.facts,
    created: record.outbox_created,
    attempts: record.attempts,
    form: record.status === null ? undefined : toForm(record, record.status),
  };
}

function toForm(record: ClaimRecord, status: OutboxForm['status']): OutboxForm {
  return {
    status,
    created: record.form_created,
    createdBy: record.created_by,
    lastAccessed: record.last_accessed,
    locked: record.locked,
    submitted: record.submitted,
    applicant: record.applicant,
    subscriberId: record.subscriber_id,
  };
}
