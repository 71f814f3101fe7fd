// How long drafts and locked forms are kept, and when the periods of a definition are over. Pure. It decides by moments
// only: status and hold are conditions of the statements.

/** Periods in milliseconds. */
export interface Retention {
  /** Before the lock; 0 for no warning. */
  warnBefore: number;
  /** From the last access to the lock. */
  lockAfter: number;
  /** From the lock to the deletion. */
  deleteAfter: number;
}

/** The forms of a definition, and how long they are kept. */
export interface Policy {
  /** URN */
  tenantId: string;
  definitionId: string;
  retention: Retention;
}

/**
 * Beyond `deleteAfter`, how long a deletion waits for the event service to accept the form-locked event: then the form
 * is deleted all the same, and recorded as not notified. Milliseconds.
 */
export const noticeGrace = 15 * 86_400_000;

/** What falls due at `now`, as bounds of moments. Older means earlier than the bound: at the bound itself it is not due. */
export interface DueBounds {
  /** Drafts last accessed before this are locked. */
  lockBefore: Date;
  /** Drafts last accessed before this, and not to be locked yet, are warned; never before `lockBefore`. */
  warnBefore: Date;
  /** Forms locked before this are deleted once their notice is accepted. */
  deleteBefore: Date;
  /** Forms locked before this are deleted in any case. */
  deleteAnyhowBefore: Date;
  /** When a form that is locked now will be deleted. */
  deleteOn: Date;
}

export function dueBounds({ warnBefore, lockAfter, deleteAfter }: Retention, now: Date): DueBounds {
  const ago = (milliseconds: number) => new Date(now.getTime() - milliseconds);
  return {
    lockBefore: ago(lockAfter),
    warnBefore: ago(Math.max(lockAfter - warnBefore, 0)),
    deleteBefore: ago(deleteAfter),
    deleteAnyhowBefore: ago(deleteAfter + noticeGrace),
    deleteOn: new Date(now.getTime() + deleteAfter),
  };
}
