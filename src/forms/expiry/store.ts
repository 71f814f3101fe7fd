// Processes batches of drafts to warn about or to lock, and of locked forms to delete. Each batch is one statement in the
// caller's transaction, which checks the caller's lease. Form data never leaves the database.
import type pg from 'pg';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { ExpiringStatus } from '../forms/catalogue.ts';
import { planSql } from '../outbox/settle-statements.ts';
import { dueBounds, type Policy } from './expiry.ts';
import type { DefinitionKey } from './retention.ts';
import {
  bareDeleteSql,
  bareLockSql,
  countSql,
  definitionsSql,
  deleteLookSql,
  deleteSql,
  lockLookSql,
  lockSql,
  oldestOverdueSql,
  warnLookSql,
  warnSql,
} from './statements.ts';

export const stages = ['warn', 'lock', 'delete'] as const;

export type Stage = (typeof stages)[number];

/** Stages that change a form even if its outbox row cannot be written. A warning consists only of its outbox row. */
export type BareStage = Exclude<Stage, 'warn'>;

/** Where a walk goes on: the definitions that are left, and the last form of the first of them. */
export interface Position {
  policies: readonly Policy[];
  after?: { at: string; id: string };
}

export interface BatchOptions {
  position: Position;
  now: Date;
  /** Number of forms to scan. */
  limit: number;
  /** Only counts the forms that would be changed. */
  dryRun: boolean;
}

export interface Batch {
  /** Number of scanned forms. */
  walked: number;
  warned: number;
  locked: number;
  deleted: number;
  /** Locked forms that are due but whose notice the event service has not accepted. */
  waiting: number;
  /** The deleted forms whose applicant could not be notified. */
  unnotified: UnnotifiedForm[];
  /** Undefined when the walk is at its end. */
  next: Position | undefined;
}

export interface UnnotifiedForm extends DefinitionKey {
  formId: string;
}

/** A changed form without its outbox row. */
export interface UntoldForm {
  formId: string;
  tenantId: string;
  /** The facts of the missing row. */
  facts: { definitionId: string; deleteOn?: string; subscriberId?: string; files?: string[] };
}

export interface BareBatch extends Batch {
  /** The form, if it was changed. */
  untold: UntoldForm[];
}

export interface ExpiryStore {
  /** Every definition with forms that may expire. */
  definitions(db: Queryable): Promise<DefinitionKey[]>;
  /** In a transaction. `policies` should be a few hundred at most: they are sent with each batch. */
  batch(db: pg.ClientBase, stage: Stage, options: BatchOptions): Promise<Batch>;
  /**
   * In a transaction. Takes the next form after `position` without writing its outbox row. Changes nothing if that is
   * not `formId`.
   */
  takeBare(
    db: pg.ClientBase,
    stage: BareStage,
    options: { position: Position; now: Date; formId: string },
  ): Promise<BareBatch>;
  /** The number of forms that a stage will scan. */
  count(db: Queryable, stage: Stage, policies: readonly Policy[], now: Date): Promise<number>;
  /** When the most overdue draft should have been locked. */
  oldestOverdue(db: Queryable, policies: readonly Policy[], now: Date): Promise<Date | undefined>;
}

const farPast = '-infinity';
const firstId = '00000000-0000-0000-0000-000000000000';

/** The SQL of a stage. `from` and `before` bound the column that the period counts from. */
interface StageSql {
  status: ExpiringStatus;
  sql: string;
  look: string;
  from(policy: Policy, now: Date): string;
  before(policy: Policy, now: Date): string;
  /** $8 and on. */
  more(policies: readonly Policy[], now: Date): unknown[];
}

const bound = (pick: keyof ReturnType<typeof dueBounds>) => (policy: Policy, now: Date) =>
  dueBounds(policy.retention, now)[pick].toISOString();
const bounds = (policies: readonly Policy[], now: Date, pick: keyof ReturnType<typeof dueBounds>) =>
  policies.map((policy) => bound(pick)(policy, now));

const stageSql: Record<Stage, StageSql> = {
  warn: {
    status: 'Draft',
    sql: warnSql,
    look: warnLookSql,
    from: bound('lockBefore'),
    before: bound('warnBefore'),
    more: (policies, now) => [
      bounds(policies, now, 'lockBefore'),
      policies.map(({ retention }) => retention.lockAfter),
      policies.map(({ retention }) => retention.deleteAfter),
    ],
  },
  lock: {
    status: 'Draft',
    sql: lockSql,
    look: lockLookSql,
    from: () => farPast,
    before: bound('lockBefore'),
    more: (policies, now) => [bounds(policies, now, 'deleteOn')],
  },
  delete: {
    status: 'Locked',
    sql: deleteSql,
    look: deleteLookSql,
    from: () => farPast,
    before: bound('deleteBefore'),
    more: (policies, now) => [bounds(policies, now, 'deleteAnyhowBefore')],
  },
};

const tenantsOf = (policies: readonly Policy[]) => policies.map(({ tenantId }) => tenantId);
const definitionsOf = (policies: readonly Policy[]) => policies.map(({ definitionId }) => definitionId);

/** $1 to $8 and on. */
function valuesOf(stage: Stage, { position, now, limit }: Omit<BatchOptions, 'dryRun'>): unknown[] {
  const { from, before, more } = stageSql[stage];
  const { policies, after } = position;
  return [
    tenantsOf(policies),
    definitionsOf(policies),
    policies.map((policy, index) => (index === 0 && after ? after.at : from(policy, now))),
    policies.map((_, index) => (index === 0 && after ? after.id : firstId)),
    policies.map((policy) => before(policy, now)),
    limit,
    now,
    ...more(policies, now),
  ];
}

const bareSql: Record<BareStage, string> = { lock: bareLockSql, delete: bareDeleteSql };

type BatchRow = Partial<Omit<Batch, 'next'>> & { position: number; at: string; id: string; walked: number };

export function createExpiryStore(): ExpiryStore {
  return {
    async definitions(db) {
      return (await db.query<DefinitionKey>(definitionsSql)).rows;
    },
    async batch(db, stage, { position, now, limit, dryRun }) {
      const { sql, look } = stageSql[stage];
      await db.query(planSql);
      const { rows } = await db.query<BatchRow>(dryRun ? look : sql, valuesOf(stage, { position, now, limit }));
      return toBatch(rows[0], position.policies, limit);
    },
    async takeBare(db, stage, { position, now, formId }) {
      const values = [...valuesOf(stage, { position, now, limit: 1 }), formId];
      await db.query(planSql);
      const [row] = (await db.query<BatchRow & Pick<BareBatch, 'untold'>>(bareSql[stage], values)).rows;
      return { untold: [], ...toBatch(row, position.policies, 1) };
    },
    async count(db, stage, policies, now) {
      const { status, from, before } = stageSql[stage];
      const { rows } = await db.query<{ count: number }>(countSql(status), [
        tenantsOf(policies),
        definitionsOf(policies),
        policies.map((policy) => from(policy, now)),
        policies.map((policy) => before(policy, now)),
      ]);
      return rows[0]?.count ?? 0;
    },
    async oldestOverdue(db, policies, now) {
      const { rows } = await db.query<{ moment: Date | null }>(oldestOverdueSql, [
        tenantsOf(policies),
        definitionsOf(policies),
        bounds(policies, now, 'lockBefore'),
        policies.map(({ retention }) => retention.lockAfter),
      ]);
      return rows[0]?.moment ?? undefined;
    },
  };
}

function toBatch(row: BatchRow | undefined, policies: readonly Policy[], limit: number): Batch {
  const { position = 0, at = '', id = '', ...counts } = row ?? {};
  const isLast = (row?.walked ?? 0) < limit;
  const next = isLast ? undefined : { policies: policies.slice(position - 1), after: { at, id } };
  return { walked: 0, warned: 0, locked: 0, deleted: 0, waiting: 0, unnotified: [], ...counts, next };
}
