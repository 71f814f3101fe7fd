// What the outbox holds: one row for each thing that the platform must be told of a form, written by the statement that
// changes the form. Pure. A row never holds an address, a code or an answer: payloads are rendered at delivery, from the
// form's row and the few facts below that delivery could not read there any more.

import type { FormStatus } from '../forms/catalogue.ts';

/** Names of the events of namespace `form-service` that the outbox delivers. */
export const eventKinds = [
  'form-created',
  'form-submitted',
  'form-expiring',
  'form-locked',
  'form-unlocked',
  'form-to-draft',
  'form-archived',
  'form-deleted',
] as const;

export type EventKind = (typeof eventKinds)[number];

/** Work at the notification service: the form's own subscriber is ensured, and removed after the form is. */
export type SubscriberKind = 'subscribe' | 'remove-subscriber';

/** Work at the file service, only where the deletion of files is switched on. */
export type FileKind = 'remove-files';

export type OutboxKind = EventKind | SubscriberKind | FileKind;

export const outboxKinds: readonly OutboxKind[] = ['subscribe', ...eventKinds, 'remove-subscriber', 'remove-files'];

/** Who did it: a subject and a display name. The rows of the expiry name nobody; their events name `form-service-job`. */
export interface Actor {
  id: string;
  name: string;
}

/**
 * What a row's `facts` hold. Every row needs `definitionId`, because the form's row may be gone at delivery. The moment
 * of the change is the row's `created`; it is the event's timestamp.
 *
 * | kind | who writes it | facts beside `definitionId` |
 * | --- | --- | --- |
 * | subscribe | create, before form-created | `noticeSuppressed` where the mail of form-created is; acceptance adds `subscriberId` |
 * | form-created | create | `actor`, and `noticeSuppressed` where its mail is |
 * | form-submitted, -unlocked, -to-draft, -archived | the operation | `actor` |
 * | form-expiring | the reconciler | `lockOn`, `deleteOn` |
 * | form-locked | the reconciler | `deleteOn` |
 * | form-deleted | delete and the reconciler | `actor` (of delete only), `files`, `subscriberId` where the form's row has one |
 * | remove-subscriber, remove-files | acceptance of form-deleted | `subscriberId`; `files` |
 */
export interface OutboxFacts {
  definitionId: string;
  actor?: Actor;
  /** The address got a mail a moment ago, so form-created must not send another. */
  noticeSuppressed?: true;
  /** ISO 8601: when the draft will be locked. */
  lockOn?: string;
  /** ISO 8601: when the locked form will be deleted. */
  deleteOn?: string;
  /** URNs of the files that the deleted form named. */
  files?: string[];
  /** Id (not URN) of the form's subscriber at the notification service. */
  subscriberId?: string;
}

/** What delivery reads of the form's row, as it is at delivery. */
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
  };
  subscriberId: string | null;
}

/** A row that this relay has claimed. */
export interface OutboxRow {
  /** A bigint, as text. */
  sequence: string;
  formId: string;
  tenantId: string;
  kind: OutboxKind;
  facts: OutboxFacts;
  /** When the change happened; for removals, when they fall due. */
  created: Date;
  /** How often the row was claimed, this time included. */
  attempts: number;
  /** Absent when the form's row is gone. */
  form: OutboxForm | undefined;
}

export function isEventKind(kind: OutboxKind): kind is EventKind {
  return (eventKinds as readonly string[]).includes(kind);
}

/** The same at every delivery of a row, and of no other row of any installation: form ids are UUIDs. */
export function idempotencyKey(row: Pick<OutboxRow, 'formId' | 'sequence'>): string {
  return `${row.formId}:${row.sequence}`;
}

/** Bounds of the wait between two tries, in milliseconds. */
export interface Backoff {
  first: number;
  cap: number;
}

/**
 * Milliseconds until the next try: doubled with each one, capped, and spread over the upper half, so that rows that
 * failed together do not come back together.
 */
export function retryDelay(attempts: number, { first, cap }: Backoff, random: () => number = Math.random): number {
  const ceiling = Math.min(cap, first * 2 ** Math.min(Math.max(attempts - 1, 0), 30));
  return Math.round(ceiling * (0.5 + random() / 2));
}
