// Types and constants for how long drafts and locked forms are kept.

/** How long forms are kept. All periods are in milliseconds. */
export interface Retention {
  /** Period from the warning to the lock. It must be shorter than `lockAfter`. 0 means that no warning is sent. */
  warnBefore: number;
  /** Period from the applicant's last access until the form is locked. */
  lockAfter: number;
  /** Period from the lock of the form to its deletion. */
  deleteAfter: number;
}

/** A form definition, and how long its forms are kept. */
export interface Policy {
  /** The tenant's URN. */
  tenantId: string;
  definitionId: string;
  retention: Retention;
  /** True if the configured warning period is not shorter than `lockAfter`. In that case, no warning is sent. */
  ignoresWarning?: true;
}

/**
 * Milliseconds that an overdue deletion waits for the event service to accept `form-locked`. After that, the form is
 * deleted and recorded as not notified.
 */
export const noticeGrace = 15 * 86_400_000;
