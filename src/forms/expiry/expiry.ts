// How long drafts and locked forms are kept, and since when they are overdue. Pure. It decides only by times: the statements
// check status and hold.

/** Periods in milliseconds. */
export interface Retention {
  /** Before the lock, and shorter than `lockAfter`; 0 for no warning. */
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
  /** The configured warning is not shorter than `lockAfter`, so no warning is sent. */
  ignoresWarning?: true;
}

/**
 * How long after `deleteAfter` a deletion waits until the event service has accepted form-locked. Then the form is deleted and
 * recorded as not notified. Milliseconds.
 */
export const noticeGrace = 15 * 86_400_000;

/** Bounds of what is due. They are exclusive: a form of exactly the bound's time is not due. */
export interface DueBounds {
  /** Drafts last accessed before this are locked. */
  lockBefore: Date;
  /** Drafts last accessed between `lockBefore` and this are warned of. */
  warnBefore: Date;
  /** Forms locked before this are deleted if their notice was accepted. */
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
    warnBefore: ago(lockAfter - warnBefore),
    deleteBefore: ago(deleteAfter),
    deleteAnyhowBefore: ago(deleteAfter + noticeGrace),
    deleteOn: new Date(now.getTime() + deleteAfter),
  };
}
