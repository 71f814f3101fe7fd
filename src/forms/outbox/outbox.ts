// The types of outbox rows. A row represents an event about a form, or a call to a service of the platform. The
// statement that changes the form writes the row of the event. A row never contains an address, a code or form data.
// Delivery renders the payload from the form's row and from the facts below, which may no longer be in the form's row.

import type { FormStatus } from '../forms/catalogue.ts';
import type { Language } from '../forms/form.ts';

/**
 * The subject and display name of the account that made a change. Outbox rows that the expiry writes have no actor;
 * their events name `form-service-job`.
 */
export interface Actor {
  id: string;
  name: string;
}

/**
 * The `facts` of a row. Every row needs `definitionId`, because the form may be deleted before delivery. The row's
 * `created` is the time of the change, and becomes the event's timestamp.
 *
 * | kind | written by | facts besides `definitionId` |
 * | --- | --- | --- |
 * | subscribe | create; send-code if lost | `noticeSuppressed` if it may apply, `subscriberId` once accepted |
 * | form-created | create | `actor`, `noticeSuppressed` |
 * | form-submitted | submit; create, if it submits the form | `actor`, `noticeSuppressed` |
 * | form-unlocked, -to-draft, -archived | the operation | `actor` |
 * | form-expiring | the reconciler | `lockOn`, `deleteOn`, `noticeSuppressed` |
 * | form-locked | the reconciler | `deleteOn`, `noticeSuppressed` |
 * | form-deleted | delete (`actor`), reconciler | `noticeSuppressed`, `files`, `wasDraft`, `language`, `subscriberId` |
 * | remove-subscriber, remove-files | acceptance of form-deleted | `subscriberId`, `noticesUntil`; `files` |
 * | remove-files | an upload that ends after the deletion | `files` |
 */
export interface OutboxFacts {
  definitionId: string;
  /** Removed when the row is accepted. */
  actor?: Actor;
  /**
   * True if the budget of the applicant's address does not allow a mail about the event (`forms/notice-budget.ts`,
   * `expiry/notice-limit.ts`).
   */
  noticeSuppressed?: true;
  /** ISO 8601 time at which the draft will be locked. */
  lockOn?: string;
  /** ISO 8601 time at which the locked form will be deleted. */
  deleteOn?: string;
  /** The language of the deleted form's applicant. */
  language?: Language;
  /** True if the deleted form was not submitted. */
  wasDraft?: boolean;
  /** The URNs of the files that the deleted form names, and of those that the intake application uploaded for it. */
  files?: string[];
  /** The id (not the URN) of the form's subscriber at the notification service. */
  subscriberId?: string;
  /** ISO 8601 time by which the notification service has probably sent the notices of the form. */
  noticesUntil?: string;
}

/** The columns of the form's row that delivery reads. */
export interface OutboxForm {
  status: FormStatus;
  created: Date;
  createdBy: Actor;
  lastAccessed: Date;
  locked: Date | null;
  submitted: Date | null;
  applicant: {
    addressAs?: string | undefined;
    channels: { channel: string; address: string }[];
    language?: Language | undefined;
  };
  subscriberId: string | null;
}

/** An outbox row that this process has claimed for delivery. */
export interface OutboxRow<Kind extends string = string> {
  /** The row's sequence number: a bigint, as text. */
  sequence: string;
  formId: string;
  tenantId: string;
  kind: Kind;
  facts: OutboxFacts;
  /** The time of the change. For removals and postponed rows, the time at which the row is due. */
  created: Date;
  /** How often the row was claimed, including the current claim. */
  attempts: number;
  /** The row of the form. Undefined if the form was deleted. */
  form: OutboxForm | undefined;
}
