// The catalogue of events. For each kind, it contains the description, the payload, the notice to the applicant, and
// the definition that delivery needs. The event types, the notification type, the rendered events and the table in
// docs/notices.md are derived from it. No event contains an address, a channel, a code or a subscriber, and only
// form-submitted contains form data.
//
// README.md says how to add an event.
//
// The events of a form are delivered in the order of its changes. The entries below follow the life of a form.
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
  inFrench,
  type JsonSchema,
  language,
  noDryRun,
  noSubmission,
  noticeLink,
  objectSchema,
  type PayloadSource,
  wasDraft,
} from './event-fields.ts';
import type { OutboxRow } from './outbox.ts';

export interface EventEntry {
  description: string;
  payload: Record<string, Field>;
  /** The templates of the notice; undefined if the applicant is not notified. */
  notice?: NoticeTemplates;
  /**
   * How delivery depends on the form's definition. `unused`: it does not. `optional`: the event contains the definition
   * if it can be read. `readable`: delivery waits until the definition can be read, and accepts an invalid definition.
   * `usable`: delivery also waits until the definition is valid, because the definition decides whether the payload
   * contains form data.
   */
  definition: 'unused' | 'optional' | 'readable' | 'usable';
}

/** Payload members that the templates of notices need. */
const forNotice = { language, inFrench };

/** Every event that the form service sends. */
export const events = {
  'form-created': {
    description: 'A draft form was created.',
    payload: { form: formAfter('Draft', 'creates'), createdBy: actor, ...forNotice },
    notice: noticeTemplates.created,
    definition: 'readable',
  },
  'form-submitted': {
    description: 'A form was submitted. Contains the form data only if the form definition asks for it.',
    payload: {
      form: formAfter('Submitted', 'submits'),
      submission: noSubmission,
      submittedBy: actor,
      data: formData,
      dryRun: noDryRun,
      ...forNotice,
    },
    notice: noticeTemplates.submitted,
    definition: 'usable',
  },
  'form-expiring': {
    description: 'A draft form that has not been opened for some time will soon be locked.',
    payload: {
      form: formAfter('Draft'),
      lockOn: factTime('lockOn'),
      deleteOn: factTime('deleteOn'),
      keepUrl: noticeLink('keep'),
      deleteUrl: noticeLink('delete'),
      ...forNotice,
    },
    notice: noticeTemplates.expiring,
    definition: 'readable',
  },
  'form-locked': {
    description: 'A draft form was locked because it was not opened for too long. It will be deleted later.',
    payload: { form: formAfter('Locked'), lockedBy: actor, deleteOn: factTime('deleteOn'), ...forNotice },
    notice: noticeTemplates.locked,
    definition: 'readable',
  },
  'form-unlocked': {
    description: 'A locked form was made a draft again by an administrator.',
    payload: { form: formAfter('Draft'), unlockedBy: actor, ...forNotice },
    notice: noticeTemplates.unlocked,
    definition: 'readable',
  },
  'form-to-draft': {
    description: 'A submitted form was given back to its applicant as a draft.',
    payload: { form: formAfter('Draft'), toDraftBy: actor, ...forNotice },
    notice: noticeTemplates.toDraft,
    definition: 'readable',
  },
  'form-archived': {
    description: 'A submitted form was archived.',
    payload: { id: formId, archivedBy: actor },
    definition: 'unused',
  },
  // The older platform sends only urn, id and deletedBy. Formgate adds the definition for the notice, and the URNs of
  // the files for the consumers that own these files. The applicant's information is removed only after this event, so
  // the event does not wait for the definition.
  'form-deleted': {
    description: 'A form and the information of its applicant were deleted.',
    payload: { urn: formUrn, id: formId, deletedBy: actor, definition, files, wasDraft, ...forNotice },
    notice: noticeTemplates.deleted,
    definition: 'optional',
  },
} as const satisfies Record<string, EventEntry>;

export type EventKind = keyof typeof events;

export const eventKinds = Object.keys(events) as EventKind[];

/**
 * The kinds of outbox rows: events, and calls to the notification and file services. `remove-files` rows are written
 * only if DELETE_FILES is on.
 */
export type OutboxKind = EventKind | 'subscribe' | 'remove-subscriber' | 'remove-files';

/** All kinds of outbox rows, in the order in which the rows of a form may follow each other. */
export const outboxKinds: readonly OutboxKind[] = ['subscribe', ...eventKinds, 'remove-subscriber', 'remove-files'];

export function isEventKind(kind: OutboxKind): kind is EventKind {
  return Object.hasOwn(events, kind);
}

/** An event type in the format for its registration at the event service. */
export interface EventType {
  name: string;
  description: string;
  payloadSchema: JsonSchema;
}

/**
 * Returns the event types of a catalogue. The event service rejects an event that does not match its schema. The
 * schemas allow unknown properties, because a newer pod may send new members before it has registered their schema, and
 * do not require new members, because an older pod does not send them.
 */
export function eventTypesOf(catalogue: Record<string, EventEntry>): EventType[] {
  return Object.entries(catalogue).map(([name, { description, payload }]) => {
    const members = Object.entries(payload);
    const properties = Object.fromEntries(members.map(([member, { schema }]) => [member, schema] as const));
    const newOnes = members.flatMap(([member, { isNew }]) => (isNew ? [member] : []));
    return { name, description, payloadSchema: objectSchema(properties, newOnes) };
  });
}

export const eventNamespace = 'form-service';

/** The event context that a subscription can require in order to receive only events with a notice (decision 0035). */
export const noticeContext = { notice: 'due' } as const;

/**
 * An event in the format of the event service. `context.idempotencyKey` is the same for every delivery of the event. It
 * is unique across installations, because form ids are UUIDs.
 */
export interface FormEvent {
  namespace: typeof eventNamespace;
  name: string;
  timestamp: string;
  correlationId: string;
  /** `notice` says whether the applicant may get a mail about the event. See {@link noticeContext}. */
  context: { definitionId: string; formId: string; idempotencyKey: string; notice: 'due' | 'suppressed' };
  tenantId: string;
  payload: Record<string, unknown>;
}

/**
 * True if the event contains form data. Three conditions must hold: the event's payload has a member for form data, the
 * definition asks for form data, and the form has not changed since this row submitted it. Form data that was changed
 * after the operation to-draft does not belong to this submission.
 */
export function wantsData(row: OutboxRow<EventKind>, definition: EventDefinition | undefined): boolean {
  if (!('data' in events[row.kind].payload) || definition?.includeDataInSubmission !== true) return false;
  const { form } = row;
  const unchanged = form?.status === 'Submitted' || form?.status === 'Archived';
  return unchanged && form?.submitted?.getTime() === row.created.getTime();
}

/** Renders the event of a row. */
export function renderEvent(source: PayloadSource & { row: OutboxRow<EventKind> }): FormEvent {
  const { row, urns } = source;
  const members = Object.entries<Field>(events[row.kind].payload).map(
    ([member, { render }]) => [member, render(source)] as const,
  );
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
