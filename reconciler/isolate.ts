// Takes a batch of forms although one of them may make the statement fail: halves the batch until that form stands alone,
// quarantines it, and takes the rest. A failure of the infrastructure is never blamed on a form; it is thrown.
import type { Batch, Place, Stage } from '../src/forms/expiry/store.ts';
import type { Logger } from '../src/service/log.ts';
import { databaseRefusal, type NewQuarantineItem, type QuarantineCause } from '../src/service/quarantine.ts';

export interface Isolation {
  stage: Stage;
  /** One batch, in a transaction. */
  take(place: Place, limit: number): Promise<Batch>;
  /** The same, changing nothing. */
  look(place: Place, limit: number): Promise<Batch>;
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
  if (!before.next) return { ...before, quarantined: 0 };
  try {
    return { ...(await io.take(place, 1)), quarantined: 0 };
  } catch (error) {
    const cause = databaseRefusal(error);
    if (!cause) throw error;
    const after = await io.look(place, 1);
    const isSame = after.next?.after?.id === before.next.after?.id;
    if (isSame) await setAside(io, after.next, cause);
    return { ...untouched, next: after.next, quarantined: isSame ? 1 : 0 };
  }
}

const untouched: Omit<Batch, 'next'> = { walked: 1, warned: 0, locked: 0, deleted: 0, waiting: 0, unnotified: [] };

async function setAside(io: Isolation, place: Place | undefined, cause: QuarantineCause): Promise<void> {
  const [policy] = place?.policies ?? [];
  const formId = place?.after?.id;
  if (!policy || formId === undefined) return;
  const { tenantId, definitionId } = policy;
  await io.quarantine({ kind: io.stage, item: formId, tenantId, about: { formId, definitionId }, ...cause });
  io.log.warn(
    { kind: io.stage, form: formId, tenant: tenantId, definition: definitionId, ...cause },
    'item quarantined',
  );
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
