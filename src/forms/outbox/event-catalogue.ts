// The catalogue of events: for each kind its description, payload, notice to the applicant, and what its delivery needs.
// Event types, notification type, rendered events and the table in docs/notices.md derive from it. No event contains an
// address, a channel, a code or a subscriber, and only form-submitted contains form data. To add an event, add an entry here, its template (notices/templates.ts) and its
// translation (docs/notices/fr.json).
//
// The events of a form are delivered in the order of its changes. The entries are in the order of a form's life.
import { type NoticeTemplates, noticeTemplates } from '../notices/templates.ts';
import {
  actor,
  definition,
  type EventDefinition,
  type Field,
  factTime,
  files,
  formAfter,
  formData,
  formId,
  formUrn,
  type JsonSchema,
  noDryRun,
  noSubmission,
  objectSchema,
  type PayloadSource,
} from './event-fields.ts';
import type { OutboxRow } from './outbox.ts';

export interface EventEntry {
  description: string;
  payload: Record<string, Field>;
  /** The templates of the notice; undefined if the applicant is not notified. */
  notice?: NoticeTemplates;
  /**
   * What delivery needs of the form's definition. `unused`: nothing. `optional`: it never waits for the definition.
   * `readable`: it waits while the definition cannot be read, but not for an invalid one. `usable`: it also waits for an
   * invalid definition, which says whether the payload contains form data.
   */
  definition: 'unused' | 'optional' | 'readable' | 'usable';
}

/** Every event that the form service sends. */
export const events = {
  'form-created': {
    description: 'A draft form was created.',
    payload: { form: formAfter('Draft', { isNew: true }), createdBy: actor },
    notice: noticeTemplates.created,
    definition: 'readable',
  },
  'form-submitted': {
    description: 'A form was submitted. Contains the form data only if the form definition asks for it.',
    payload: {
      form: formAfter('Submitted'),
      submission: noSubmission,
      submittedBy: actor,
      data: formData,
      dryRun: noDryRun,
    },
    notice: noticeTemplates.submitted,
    definition: 'usable',
  },
  'form-expiring': {
    description: 'A draft form that has not been opened for some time will soon be locked.',
    payload: { form: formAfter('Draft'), lockOn: factTime('lockOn'), deleteOn: factTime('deleteOn') },
    notice: noticeTemplates.expiring,
    definition: 'readable',
  },
  'form-locked': {
    description: 'A draft form was locked because it was not opened for too long. It will be deleted later.',
    payload: { form: formAfter('Locked'), lockedBy: actor, deleteOn: factTime('deleteOn') },
    notice: noticeTemplates.locked,
    definition: 'readable',
  },
  'form-unlocked': {
    description: 'A locked form was made a draft again by an administrator.',
    payload: { form: formAfter('Draft'), unlockedBy: actor },
    notice: noticeTemplates.unlocked,
    definition: 'readable',
  },
  'form-to-draft': {
    description: 'A submitted form was given back to its applicant as a draft.',
    payload: { form: formAfter('Draft'), toDraftBy: actor },
    notice: noticeTemplates.toDraft,
    definition: 'readable',
  },
  'form-archived': {
    description: 'A submitted form was archived.',
    payload: { id: formId, archivedBy: actor },
    definition: 'unused',
  },
  // The older platform sends only urn, id and deletedBy. The notice needs the definition, the owner of the files their URNs.
  // The removal of the applicant's information waits for this event, so the event does not wait for the definition.
  'form-deleted': {
    description: 'A form and the information of its applicant were deleted.',
    payload: { urn: formUrn, id: formId, deletedBy: actor, definition, files },
    notice: noticeTemplates.deleted,
    definition: 'optional',
  },
} as const satisfies Record<string, EventEntry>;

export type EventKind = keyof typeof events;

export const eventKinds = Object.keys(events) as EventKind[];

/** Events, and calls of the notification and file services. `remove-files` only if the deletion of files is enabled. */
export type OutboxKind = EventKind | 'subscribe' | 'remove-subscriber' | 'remove-files';

/** In the order in which rows of a form may follow each other. */
export const outboxKinds: readonly OutboxKind[] = ['subscribe', ...eventKinds, 'remove-subscriber', 'remove-files'];

export function isEventKind(kind: OutboxKind): kind is EventKind {
  return Object.hasOwn(events, kind);
}

/** An event type, as it is registered at the event service. */
export interface EventType {
  name: string;
  description: string;
  payloadSchema: JsonSchema;
}

/**
 * The event types of a catalogue. The event service refuses an event that does not match its schema. Schemas allow unknown
 * properties, so that a newer pod may add members before it has registered them.
 */
export function eventTypesOf(catalogue: Record<string, EventEntry>): EventType[] {
  return Object.entries(catalogue).map(([name, { description, payload }]) => {
    const properties = Object.entries(payload).map(([member, { schema }]) => [member, schema] as const);
    return { name, description, payloadSchema: objectSchema(Object.fromEntries(properties)) };
  });
}

export const eventNamespace = 'form-service';

/** The context that a subscription requires of events if it must not receive all of them (decision 0035). */
export const noticeContext = { notice: 'due' } as const;

/**
 * An event, as the event service takes it. `context.idempotencyKey` is the same at every delivery, and unique across
 * installations, because form ids are UUIDs.
 */
export interface FormEvent {
  namespace: typeof eventNamespace;
  name: string;
  timestamp: string;
  correlationId: string;
  /** `notice`: whether the applicant may get a mail about it. See {@link noticeContext}. */
  context: { definitionId: string; formId: string; idempotencyKey: string; notice: 'due' | 'suppressed' };
  tenantId: string;
  payload: Record<string, unknown>;
}

/**
 * Whether the event contains form data: its payload has that member, the definition asks for it, and the form is still the
 * submitted one. Form data that was changed after a to-draft does not belong to this submission.
 */
export function wantsData(row: OutboxRow<EventKind>, definition: EventDefinition | undefined): boolean {
  if (!('data' in events[row.kind].payload) || definition?.includeDataInSubmission !== true) return false;
  const { form } = row;
  const unchanged = form?.status === 'Submitted' || form?.status === 'Archived';
  return unchanged && form?.submitted?.getTime() === row.created.getTime();
}

/** The event of a row. */
export function renderEvent(source: PayloadSource & { row: OutboxRow<EventKind> }): FormEvent {
  return renderEntry(source, events[source.row.kind]);
}

/** As above, for an entry of any catalogue. */
export function renderEntry(source: PayloadSource, { payload }: Pick<EventEntry, 'payload'>): FormEvent {
  const { row, urns } = source;
  const members = Object.entries(payload).map(([member, { render }]) => [member, render(source)] as const);
  return {
    namespace: eventNamespace,
    name: row.kind,
    timestamp: row.created.toISOString(),
    correlationId: urns.form(row.formId),
    context: {
      definitionId: row.facts.definitionId,
      formId: row.formId,
      idempotencyKey: `${row.formId}:${row.sequence}`,
      notice: row.facts.noticeSuppressed ? 'suppressed' : noticeContext.notice,
    },
    tenantId: row.tenantId,
    payload: Object.fromEntries(members),
  };
}
