// Processes forms in batches: drafts to warn about, drafts to lock, and locked forms to delete. Each batch is one
// statement in the caller's transaction, which checks the caller's lease. Form data never leaves the database.
import type pg from 'pg';
import { earlier, later } from '../../service/clock.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { storedTraceparent } from '../../service/tracing/tracing.ts';
import { planSql } from '../outbox/settle-statements.ts';
import { countByTenantSql, countSql, oldestOverdueSql, undeliveredSql } from './count-statements.ts';
import { definitionsSql } from './definition-statements.ts';
import { noticeGrace, type Policy } from './expiry.ts';
import type { DefinitionKey } from './retention.ts';
import {
  bareDeleteSql,
  bareLockSql,
  deleteDryRunSql,
  deleteSql,
  lockDryRunSql,
  lockSql,
  setTraceSql,
  warnDryRunSql,
  warnSql,
} from './statements.ts';

export const stages = ['warn', 'lock', 'delete'] as const;

export type Stage = (typeof stages)[number];

/**
 * Stages that can change a form without writing its outbox row. The stage `warn` cannot, because a warning consists
 * only of its outbox row.
 */
export type BareStage = Exclude<Stage, 'warn'>;

/**
 * The point where the next scan continues: the remaining definitions, and the last scanned form of the first remaining
 * definition.
 */
export interface Position {
  policies: readonly Policy[];
  after?: { at: string; id: string };
}

export interface BatchOptions {
  position: Position;
  now: Date;
  /** Maximum number of forms to scan. */
  limit: number;
  /** True to count the forms that would be changed, without changing them. */
  dryRun: boolean;
}

export interface Batch {
  /** Number of scanned forms. */
  walked: number;
  warned: number;
  locked: number;
  deleted: number;
  /** Number of locked forms that are due for deletion, but wait for the event service to accept their lock notice. */
  waiting: number;
  /** The deleted forms whose lock notice the event service did not accept. */
  unnotified: UnnotifiedForm[];
  /** The position where the next batch continues. Undefined at the end of the scan. */
  next: Position | undefined;
}

export interface UnnotifiedForm extends DefinitionKey {
  formId: string;
}

/** The outbox row that was not written for a changed form. */
export interface UnwrittenNotice {
  formId: string;
  tenantId: string;
  /** The facts that the missing row would contain. */
  facts: { definitionId: string; deleteOn?: string; subscriberId?: string; files?: string[] };
}

export interface BareBatch extends Batch {
  /** The outbox row that was not written, if the form was changed; empty otherwise. */
  unwritten: UnwrittenNotice[];
}

export type TenantCount = { tenantId: string; count: number };

const farPast = '-infinity';
const firstId = '00000000-0000-0000-0000-000000000000';

// The bounds of due times are exclusive: a form whose time equals the bound is not due.
type Bound = (policy: Policy, now: Date) => string;
const lockBefore: Bound = ({ retention }, now) => earlier(now, retention.lockAfter).toISOString();
const valuesFor = (bound: Bound) => (policies: readonly Policy[], now: Date) => [
  policies.map((policy) => bound(policy, now)),
];

/** The SQL of a stage. `from` and `before` are bounds of the column from which the retention period counts. */
interface StageSql {
  /** SQL that counts the forms that the stage will scan. */
  count: string;
  countByTenant: string;
  sql: string;
  /** SQL that counts the forms that `sql` would change. */
  dryRunSql: string;
  from: Bound;
  before: Bound;
  /** Returns the parameters of `sql` and `dryRunSql` from $8 on. */
  more(policies: readonly Policy[], now: Date): unknown[];
}

const stageSql: Record<Stage, StageSql> = {
  warn: {
    count: countSql('Draft'),
    countByTenant: countByTenantSql('Draft'),
    sql: warnSql,
    dryRunSql: warnDryRunSql,
    from: lockBefore,
    before: ({ retention }, now) => earlier(now, retention.lockAfter - retention.warnBefore).toISOString(),
    more: (policies, now) => [
      ...valuesFor(lockBefore)(policies, now),
      policies.map(({ retention }) => retention.lockAfter),
      policies.map(({ retention }) => retention.deleteAfter),
    ],
  },
  lock: {
    count: countSql('Draft'),
    countByTenant: countByTenantSql('Draft'),
    sql: lockSql,
    dryRunSql: lockDryRunSql,
    from: () => farPast,
    before: lockBefore,
    // The time at which a form that is locked now will be deleted.
    more: valuesFor(({ retention }, now) => later(now, retention.deleteAfter).toISOString()),
  },
  delete: {
    count: countSql('Locked'),
    countByTenant: countByTenantSql('Locked'),
    sql: deleteSql,
    dryRunSql: deleteDryRunSql,
    from: () => farPast,
    before: ({ retention }, now) => earlier(now, retention.deleteAfter).toISOString(),
    more: valuesFor(({ retention }, now) => earlier(now, retention.deleteAfter + noticeGrace).toISOString()),
  },
};

const tenantsOf = (policies: readonly Policy[]) => policies.map(({ tenantId }) => tenantId);
const definitionsOf = (policies: readonly Policy[]) => policies.map(({ definitionId }) => definitionId);

/** Returns the parameters of the statements that count the forms of a stage. */
function boundsOf(stage: Stage, policies: readonly Policy[], now: Date): unknown[] {
  const { from, before } = stageSql[stage];
  return [
    tenantsOf(policies),
    definitionsOf(policies),
    policies.map((policy) => from(policy, now)),
    policies.map((policy) => before(policy, now)),
  ];
}

/** Returns the parameters of a stage's statement. */
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

/**
 * The commit does not wait for the disk. If the server crashes, the last batches are lost together with their outbox
 * rows, and the next run repeats them. No lost row was delivered, because the dispatcher's claim waits for the disk.
 */
const asyncCommitSql = 'SET LOCAL synchronous_commit = off;';

const bareSql: Record<BareStage, string> = { lock: bareLockSql, delete: bareDeleteSql };

type BatchRow = Partial<Omit<Batch, 'next'>> & { position: number; at: string; id: string; walked: number };

export type ExpiryStore = typeof expiryStore;

export const expiryStore = {
  /** Returns the definitions whose forms may expire. */
  async definitions(db: Queryable): Promise<DefinitionKey[]> {
    return (await db.query<DefinitionKey>(definitionsSql)).rows;
  },
  /**
   * Processes one batch in the caller's transaction. Pass at most a few hundred policies: each batch sends all of them.
   */
  async batch(db: pg.ClientBase, stage: Stage, { position, now, limit, dryRun }: BatchOptions): Promise<Batch> {
    const { sql, dryRunSql } = stageSql[stage];
    await db.query(planSql + asyncCommitSql + setTraceSql(storedTraceparent()));
    const { rows } = await db.query<BatchRow>(dryRun ? dryRunSql : sql, valuesOf(stage, { position, now, limit }));
    return toBatch(rows[0], position.policies, limit);
  },
  /**
   * Processes the next form after `position` without writing its outbox row. Changes nothing if the next form is not
   * `formId`. Call it in a transaction.
   */
  async takeBare(
    db: pg.ClientBase,
    stage: BareStage,
    { position, now, formId }: { position: Position; now: Date; formId: string },
  ): Promise<BareBatch> {
    const values = [...valuesOf(stage, { position, now, limit: 1 }), formId];
    await db.query(planSql + setTraceSql(storedTraceparent()));
    const [row] = (await db.query<BatchRow & Pick<BareBatch, 'unwritten'>>(bareSql[stage], values)).rows;
    return { unwritten: [], ...toBatch(row, position.policies, 1) };
  },
  /** Counts the forms that a stage will scan. */
  async count(db: Queryable, stage: Stage, policies: readonly Policy[], now: Date): Promise<number> {
    const { rows } = await db.query<{ count: number }>(stageSql[stage].count, boundsOf(stage, policies, now));
    return rows[0]?.count ?? 0;
  },
  /** Counts the forms of each tenant that a stage will scan, but at most `most` forms of each definition. */
  async countByTenant(
    db: Queryable,
    stage: Stage,
    { policies, now, most }: { policies: readonly Policy[]; now: Date; most: number },
  ): Promise<TenantCount[]> {
    return (await db.query(stageSql[stage].countByTenant, [...boundsOf(stage, policies, now), most])).rows;
  },
  /** Estimates the number of events that are due but not delivered, by tenant. It is exact if the table is small. */
  async countUndelivered(db: Queryable, now: Date): Promise<TenantCount[]> {
    return (await db.query<TenantCount>(undeliveredSql, [now])).rows;
  },
  /** Returns the time at which the most overdue draft should have been locked. Undefined if no draft is overdue. */
  async oldestOverdue(db: Queryable, policies: readonly Policy[], now: Date): Promise<Date | undefined> {
    const { rows } = await db.query<{ moment: Date | null }>(oldestOverdueSql, [
      tenantsOf(policies),
      definitionsOf(policies),
      ...valuesFor(lockBefore)(policies, now),
      policies.map(({ retention }) => retention.lockAfter),
    ]);
    return rows[0]?.moment ?? undefined;
  },
};

function toBatch(row: BatchRow | undefined, policies: readonly Policy[], limit: number): Batch {
  const { position = 0, at = '', id = '', ...counts } = row ?? {};
  const isLast = (row?.walked ?? 0) < limit;
  const next = isLast ? undefined : { policies: policies.slice(position - 1), after: { at, id } };
  return { walked: 0, warned: 0, locked: 0, deleted: 0, waiting: 0, unnotified: [], ...counts, next };
}
