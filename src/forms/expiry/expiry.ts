// How long drafts and locked forms are kept. Pure.

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
