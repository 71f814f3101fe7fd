// A quarantined item cannot be processed because of its own content. An entry contains ids and a reason, never a value, because
// error messages of Postgres and of services may quote content.

/** Stable: operators filter and alert on these. */
export type QuarantineReason =
  /** Postgres rejects a value of the row; the detail is the SQLSTATE. */
  | 'database-refused'
  /** A service rejects the request; the detail is the service and the HTTP status. */
  | 'service-refused'
  /** The mail server rejects the message; the detail is the SMTP reply code. */
  | 'mail-refused'
  /** The request or the message cannot be created from the stored data; the detail is the class of the error. */
  | 'cannot-render'
  /** The secret that the item needs is sealed under a key that is no longer in the key ring. */
  | 'key-missing';

export interface QuarantineCause {
  reason: QuarantineReason;
  /** Codes and class names only. */
  detail: string;
}

/** An item to quarantine. */
export interface NewQuarantineItem extends QuarantineCause {
  /** The operation that failed: `lock`, `form-locked`, `delivery` … */
  kind: string;
  /** Identifies the item among those of its kind. */
  item: string;
  /** URN or id; null for an item without a tenant. */
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
  /** The version of the product that tried it last. */
  version: string;
  /** Released items are retried soon. */
  released: boolean;
}

// PostgreSQL, appendix A: 21 cardinality, 22 data, 23 integrity, 44 check option, 54 program limits (a value that is too
// deep or too large), P0001 an exception that a trigger raised, XX001 a damaged row.
const rowStates = /^(?:21|22|23|44|54|P0001$|XX001$)/;

/**
 * The cause, if Postgres refused a statement because of a row that it touched. Undefined for a failure of the
 * infrastructure: a lost connection, a timeout, a deadlock, a full disk.
 */
export function databaseRefusal(error: unknown): QuarantineCause | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  const { severity, code } = error;
  if (severity !== 'ERROR' || typeof code !== 'string' || !rowStates.test(code)) return undefined;
  return { reason: 'database-refused', detail: `SQLSTATE ${code}` };
}

/** The cause for an error of our own code, such as a TypeError. */
export function renderingFailure(error: unknown): QuarantineCause {
  const name = error instanceof Error && /^[A-Za-z]{1,60}$/.test(error.name) ? error.name : 'unknown';
  return { reason: 'cannot-render', detail: name };
}
