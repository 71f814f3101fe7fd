// Takes a batch of forms although one of them may make the statement fail: halves the batch until that form stands alone.
// That form is locked or deleted without its outbox row; if this fails too, it is quarantined. A failure of the
// infrastructure is never blamed on a form; it is thrown.
import type { BareStage, Batch, Place, Stage } from '../src/forms/expiry/store.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { databaseRefusal, type NewQuarantineItem, type QuarantineCause } from '../src/service/quarantine/quarantine.ts';

export interface Isolation {
  stage: Stage;
  /** One batch, in a transaction. */
  take(place: Place, limit: number): Promise<Batch>;
  /** The same, changing nothing. */
  look(place: Place, limit: number): Promise<Batch>;
  /** Takes one form without its outbox row and quarantines that row, in one transaction. Changes no other form. */
  takeBare(
    place: Place,
    refused: { stage: BareStage; formId: string; cause: QuarantineCause },
  ): Promise<Batch & { entries: readonly NewQuarantineItem[] }>;
  quarantine(item: NewQuarantineItem): Promise<void>;
  log: Logger;
}

export interface IsolatedBatch extends Batch {
  quarantined: number;
}

/** Rejects with what is no row's fault. */
export async function takeIsolated(io: Isolation, place: Place, limit: number): Promise<IsolatedBatch> {
  try {
    return { ...(await io.take(place, limit)), quarantined: 0 };
  } catch (error) {
    if (!databaseRefusal(error)) throw error;
  }
  if (limit === 1) return takeOne(io, place);
  const half = Math.ceil(limit / 2);
  const first = await takeIsolated(io, place, half);
  return first.next ? sum(first, await takeIsolated(io, first.next, limit - half)) : first;
}

/** Tries the one form once more, between two looks that must find the same form: otherwise it is left to the next run. */
async function takeOne(io: Isolation, place: Place): Promise<IsolatedBatch> {
  const before = await io.look(place, 1);
  const formId = before.next?.after?.id;
  if (formId === undefined) return { ...before, quarantined: 0 };
  try {
    return { ...(await io.take(place, 1)), quarantined: 0 };
  } catch (error) {
    const cause = databaseRefusal(error);
    if (!cause) throw error;
    const bare = await takeBare(io, place, { formId, cause });
    if (bare) return bare;
    const { next } = await io.look(place, 1);
    const isSame = next?.after?.id === formId;
    if (isSame) await setAside(io, next, cause);
    return { ...untouched, next, quarantined: isSame ? 1 : 0 };
  }
}

const untouched: Omit<Batch, 'next'> = { walked: 1, warned: 0, locked: 0, deleted: 0, waiting: 0, unnotified: [] };

/** Undefined if the form itself cannot be changed. */
async function takeBare(
  io: Isolation,
  place: Place,
  refused: { formId: string; cause: QuarantineCause },
): Promise<IsolatedBatch | undefined> {
  const { stage } = io;
  if (stage === 'warn') return undefined;
  try {
    const { entries, ...batch } = await io.takeBare(place, { stage, ...refused });
    for (const entry of entries) report(io, entry);
    return { ...batch, quarantined: entries.length };
  } catch (error) {
    if (!databaseRefusal(error)) throw error;
    return undefined;
  }
}

async function setAside(io: Isolation, place: Place | undefined, cause: QuarantineCause): Promise<void> {
  const [policy] = place?.policies ?? [];
  const formId = place?.after?.id;
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
