// Processes a batch of forms even if one of them makes the statement fail: halves the batch until that form is alone.
// That form is locked or deleted without its outbox row; if this fails too, it is quarantined. Failures of the
// infrastructure are thrown, and quarantine no form.
import type { BareStage, Batch, Position, Stage } from '../src/forms/expiry/store.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { databaseRefusal, type NewQuarantineItem, type QuarantineCause } from '../src/service/quarantine/quarantine.ts';

export interface Isolation {
  stage: Stage;
  /** Processes one batch, in a transaction. */
  take(position: Position, limit: number): Promise<Batch>;
  /** Like `take`, but changes nothing. */
  look(position: Position, limit: number): Promise<Batch>;
  /** Processes one form without its outbox row and quarantines that row, in one transaction. Changes no other form. */
  takeBare(
    position: Position,
    refused: { stage: BareStage; formId: string; cause: QuarantineCause },
  ): Promise<Batch & { entries: readonly NewQuarantineItem[] }>;
  quarantine(item: NewQuarantineItem): Promise<void>;
  log: Logger;
}

export interface IsolatedBatch extends Batch {
  quarantined: number;
}

/** Rejects with failures that no row caused. */
export async function takeIsolated(io: Isolation, position: Position, limit: number): Promise<IsolatedBatch> {
  try {
    return { ...(await io.take(position, limit)), quarantined: 0 };
  } catch (error) {
    if (!databaseRefusal(error)) throw error;
  }
  if (limit === 1) return takeOne(io, position);
  const half = Math.ceil(limit / 2);
  const first = await takeIsolated(io, position, half);
  return first.next ? sum(first, await takeIsolated(io, first.next, limit - half)) : first;
}

/** Retries the one form, between two looks that must find the same form; otherwise the next run retries it. */
async function takeOne(io: Isolation, position: Position): Promise<IsolatedBatch> {
  const before = await io.look(position, 1);
  const formId = before.next?.after?.id;
  if (formId === undefined) return { ...before, quarantined: 0 };
  try {
    return { ...(await io.take(position, 1)), quarantined: 0 };
  } catch (error) {
    const cause = databaseRefusal(error);
    if (!cause) throw error;
    const bare = await takeBare(io, position, { formId, cause });
    if (bare) return bare;
    const { next } = await io.look(position, 1);
    const isSame = next?.after?.id === formId;
    if (isSame) await setAside(io, next, cause);
    return { ...untouched, next, quarantined: isSame ? 1 : 0 };
  }
}

const untouched: Omit<Batch, 'next'> = { walked: 1, warned: 0, locked: 0, deleted: 0, waiting: 0, unnotified: [] };

/** Undefined if the form itself cannot be changed. */
async function takeBare(
  io: Isolation,
  position: Position,
  refused: { formId: string; cause: QuarantineCause },
): Promise<IsolatedBatch | undefined> {
  const { stage } = io;
  if (stage === 'warn') return undefined;
  try {
    const { entries, ...batch } = await io.takeBare(position, { stage, ...refused });
    for (const entry of entries) report(io, entry);
    return { ...batch, quarantined: entries.length };
  } catch (error) {
    if (!databaseRefusal(error)) throw error;
    return undefined;
  }
}

async function setAside(io: Isolation, position: Position | undefined, cause: QuarantineCause): Promise<void> {
  const [policy] = position?.policies ?? [];
  const formId = position?.after?.id;
  if (!policy || formId === undefined) return;
  const { tenantId, definitionId } = policy;
  const entry = { kind: io.stage, item: formId, tenantId, about: { formId, definitionId }, ...cause };
  await io.quarantine(entry);
  report(io, entry);
}

function report({ log }: Isolation, { kind, item, tenantId, about, reason, detail }: NewQuarantineItem): void {
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
