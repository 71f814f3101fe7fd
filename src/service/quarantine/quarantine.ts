// Defines the entries of quarantined items, which are items that cannot be processed because of their own content. An
// entry contains ids and a reason. It contains no values and no error messages, because messages of Postgres and of
// services may quote content.

/** The reasons must not change, because operators filter and alert on them. */
export type QuarantineReason =
  /** Postgres rejects a value of the row, or a statement on the row times out; the detail is the SQLSTATE. */
  | 'database-refused'
  /** A service rejects the request; the detail is the service and the HTTP status. */
  | 'service-refused'
  /** The mail server rejects the message; the detail is the SMTP reply code. */
  | 'mail-refused'
  /** The mail server got the message, but does not reply, so that each attempt may have delivered the message. */
  | 'mail-unconfirmed'
  /** The request or the message cannot be created from the stored data; the detail is the class of the error. */
  | 'cannot-render'
  /** The secret that the item needs is sealed with a key that is no longer in the key ring. */
  | 'key-missing';

export interface QuarantineCause {
  reason: QuarantineReason;
  /** Contains only codes and class names. */
  detail: string;
}

/** An item to quarantine. */
export interface NewQuarantineItem extends QuarantineCause {
  /** The operation that failed: `lock`, `form-locked`, `delivery` … */
  kind: string;
  /** Identifies the item among those of its kind. */
  item: string;
  /** URN or id of the tenant; null for an item without a tenant. */
  tenantId: string | null;
  about: QuarantineAbout;
}

/** Ids of related objects, and times; never content. */
export interface QuarantineAbout {
  formId?: string;
  definitionId?: string;
  [name: string]: string | string[] | undefined;
}

export interface QuarantineItem extends NewQuarantineItem {
  id: string;
  firstSeen: Date;
  lastTried: Date;
  attempts: number;
  /** The version of Formgate that made the last attempt. */
  version: string;
  /** True if the item was released. It is then retried soon. */
  released: boolean;
}

// PostgreSQL, appendix A: 21 cardinality, 22 data, 23 integrity, 44 check option, 54 program limits (a value that is
// too deep or too large), P0001 an exception that a trigger raised, XX001 a damaged row.
const rowStates = /^(?:21|22|23|44|54|P0001$|XX001$)/;

/**
 * Returns the cause if Postgres rejected a statement because of the content of a row. Returns undefined for a failure
 * of the infrastructure: a lost connection, a timeout, a deadlock, a full disk.
 */
export function databaseRefusal(error: unknown): QuarantineCause | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  const { severity, code } = error;
  if (severity !== 'ERROR' || typeof code !== 'string' || !rowStates.test(code)) return undefined;
  return { reason: 'database-refused', detail: `SQLSTATE ${code}` };
}

/** Returns the cause for an error in Formgate's own code, such as a TypeError. */
export function renderingFailure(error: unknown): QuarantineCause {
  const name = error instanceof Error && /^[A-Za-z]{1,60}$/.test(error.name) ? error.name : 'unknown';
  return { reason: 'cannot-render', detail: name };
}
