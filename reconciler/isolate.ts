// Processes a batch of forms even if one form makes the statement fail or exceed the statement timeout. Halves the
// batch until that form is alone, and then locks or deletes the form without its outbox row. If this fails too,
// quarantines the form. Failures of the infrastructure are thrown and never quarantine a form.
//
// A statement timeout may be due to the form or to a slow database. It counts as a failure of the form if a statement
// for this form alone times out, and the same statement then succeeds for a small control form. If the database is slow
// for every form, the statement for the control form times out too, and the timeout is thrown.
import type pg from 'pg';
import { tryControlForm } from '../src/forms/expiry/control-form.ts';
import type { Batch, ExpiryStore, Position, Stage } from '../src/forms/expiry/store.ts';
import { noticeEntry } from '../src/forms/quarantine/notices.ts';
import type { Clock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { isStatementTimeout } from '../src/service/postgres/postgres.ts';
import { databaseRefusal, type NewQuarantineItem, type QuarantineCause } from '../src/service/quarantine/quarantine.ts';
import { putInQuarantine } from '../src/service/quarantine/quarantine-store.ts';
import type { Writer } from './lease.ts';

export interface IsolationOptions {
  writer: Writer;
  store: ExpiryStore;
  clock: Clock;
  log: Logger;
}

export interface IsolatedBatch extends Batch {
  quarantined: number;
}

/** The next `limit` forms of a stage, after a position. */
interface Scan {
  stage: Stage;
  position: Position;
  limit: number;
}

/** Processes a batch. Rejects if the batch fails for a reason that no single form causes. */
export async function takeIsolated(scan: Scan, options: IsolationOptions): Promise<IsolatedBatch> {
  try {
    return { ...(await take(scan, options)), quarantined: 0 };
  } catch (error) {
    if (!mayConcernForm(error)) throw error;
  }
  if (scan.limit === 1) return takeOne(scan, options);
  const half = Math.ceil(scan.limit / 2);
  const first = await takeIsolated({ ...scan, limit: half }, options);
  if (!first.next) return first;
  return sum(first, await takeIsolated({ ...scan, position: first.next, limit: scan.limit - half }, options));
}

function take({ stage, ...scan }: Scan, { writer, store, clock }: IsolationOptions, dryRun = writer.dryRun) {
  const work = (client: pg.PoolClient) => store.batch(client, stage, { ...scan, now: clock(), dryRun });
  return writer.transact(work, { throwsTimeouts: true });
}

const mayConcernForm = (error: unknown) => databaseRefusal(error) !== undefined || isStatementTimeout(error);

/** Returns the reason why a statement for a single form failed; undefined for a failure of the infrastructure. */
async function causeOf(
  error: unknown,
  stage: Stage,
  { writer, clock }: IsolationOptions,
): Promise<QuarantineCause | undefined> {
  if (!isStatementTimeout(error) || writer.dryRun) return databaseRefusal(error);
  await writer.transact((client) => tryControlForm(client, stage, clock()), { throwsTimeouts: true });
  return { reason: 'database-refused', detail: 'SQLSTATE 57014' };
}

/**
 * Retries the only form of the scan. If the retry fails in the stage `lock` or `delete`, processes the form without its
 * outbox row. If no attempt succeeds, quarantines the form. A dry run before the attempts and another one after them
 * must find the same form. Otherwise, the form is not quarantined, and the next run retries it.
 */
async function takeOne(scan: Scan, options: IsolationOptions): Promise<IsolatedBatch> {
  const before = await take(scan, options, true);
  // The scan has the limit 1, so the position after the batch is its form.
  const formId = before.next?.after?.id;
  if (formId === undefined) return { ...before, quarantined: 0 };
  try {
    return { ...(await take(scan, options)), quarantined: 0 };
  } catch (error) {
    const cause = await causeOf(error, scan.stage, options);
    if (!cause) throw error;
    const bare = await takeBare(scan, { formId, cause }, options);
    if (bare) return bare;
    const { next } = await take(scan, options, true);
    const isSame = next?.after?.id === formId;
    if (isSame) await quarantine(scan.stage, next, cause, options);
    return { ...untouched, next, quarantined: isSame ? 1 : 0 };
  }
}

const untouched: Omit<Batch, 'next'> = { walked: 1, warned: 0, locked: 0, deleted: 0, waiting: 0, unnotified: [] };

/**
 * In one transaction, processes the form without its outbox row and quarantines that row. Returns undefined if the form
 * itself cannot be changed.
 */
async function takeBare(
  { stage, position }: Scan,
  { formId, cause }: { formId: string; cause: QuarantineCause },
  options: IsolationOptions,
): Promise<IsolatedBatch | undefined> {
  const { writer, store, clock } = options;
  if (stage === 'warn') return undefined;
  try {
    const write = async (client: pg.PoolClient) => {
      const taken = await store.takeBare(client, stage, { position, now: clock(), formId });
      const unwritten = taken.unwritten.map((form) => noticeEntry(stage, form, cause));
      await putInQuarantine(client, unwritten, clock());
      return { ...taken, unwritten };
    };
    const { unwritten, ...batch } = await writer.transact(write, { throwsTimeouts: true });
    for (const entry of unwritten) report(entry, options);
    return { ...batch, quarantined: unwritten.length };
  } catch (error) {
    if (!mayConcernForm(error)) throw error;
    return undefined;
  }
}

async function quarantine(stage: Stage, next: Position, cause: QuarantineCause, options: IsolationOptions) {
  const [policy] = next.policies;
  const formId = next.after?.id;
  if (!policy || formId === undefined) return;
  const { tenantId, definitionId } = policy;
  const entry = { kind: stage, item: formId, tenantId, about: { formId, definitionId }, ...cause };
  await options.writer.transact((client) => putInQuarantine(client, [entry], options.clock()));
  report(entry, options);
}

function report({ kind, item, tenantId, about, reason, detail }: NewQuarantineItem, { log }: IsolationOptions): void {
  const { definitionId } = about;
  log.warn({ kind, form: item, tenant: tenantId, definition: definitionId, reason, detail }, 'item quarantined');
}

function sum(one: IsolatedBatch, other: IsolatedBatch): IsolatedBatch {
  return {
    walked: one.walked + other.walked,
    warned: one.warned + other.warned,
    locked: one.locked + other.locked,
    deleted: one.deleted + other.deleted,
    waiting: one.waiting + other.waiting,
    unnotified: [...one.unnotified, ...other.unnotified],
    quarantined: one.quarantined + other.quarantined,
    next: other.next,
  };
}
