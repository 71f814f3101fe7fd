// Renders a form event from its outbox row. Pure. It never puts an address, a channel, a code or a subscriber into a
// payload, and answers only where the definition asks for them in form-submitted.
import type { Urns } from '../../service/urn.ts';
import {
  type Actor,
  type EventKind,
  idempotencyKey,
  type OutboxFacts,
  type OutboxForm,
  type OutboxKind,
  type OutboxRow,
} from './outbox.ts';

export const eventNamespace = 'form-service';

/** What events say of a form's definition, and how its drafts are linked to. */
export interface EventDefinition {
  id: string;
  name: string;
  description?: string | null | undefined;
  /** http(s) URL with `{{id}}` or `{id}` where the form's id goes. */
  formDraftUrlTemplate?: string | null | undefined;
  includeDataInSubmission?: boolean | null | undefined;
}

/** What a subscription asks for in the context of events if it must not get all of them (decision 0035). */
export const noticeContext = { notice: 'due' } as const;

/** An event as the event service takes it; `context.idempotencyKey` names the delivery's subject, not the delivery. */
export interface FormEvent {
  namespace: typeof eventNamespace;
  name: EventKind;
  timestamp: string;
  correlationId: string;
  /** `notice`: whether the applicant may get a mail about it. See {@link noticeContext}. */
  context: { definitionId: string; formId: string; idempotencyKey: string; notice: 'due' | 'suppressed' };
  tenantId: string;
  payload: Record<string, unknown>;
}

export interface EventSource {
  row: OutboxRow & { kind: EventKind };
  /** Undefined when the definition is not configured any more. */
  definition: EventDefinition | undefined;
  /** The answers, already read because {@link wantsData} said so; null otherwise. */
  data: Record<string, unknown> | null;
  urns: Urns;
}

/**
 * Whether the submitted event carries the answers: the definition says so, and the form still is what was submitted at
 * that moment. Answers that were changed after a to-draft are not those of this submission.
 */
export function wantsData(row: OutboxRow, definition: EventDefinition | undefined): boolean {
  if (row.kind !== 'form-submitted' || definition?.includeDataInSubmission !== true) return false;
  const { form } = row;
  const unchanged = form?.status === 'Submitted' || form?.status === 'Archived';
  return unchanged && form?.submitted?.getTime() === row.created.getTime();
}

/** The event of a row; payloads as in the older platform, with this service's statuses. */
export function renderEvent(source: EventSource): FormEvent {
  const { row, urns } = source;
  return {
    namespace: eventNamespace,
    name: row.kind,
    timestamp: row.created.toISOString(),
    correlationId: urns.form(row.formId),
    context: {
      definitionId: row.facts.definitionId,
      formId: row.formId,
      idempotencyKey: idempotencyKey(row),
      notice: row.facts.noticeSuppressed ? 'suppressed' : noticeContext.notice,
    },
    tenantId: row.tenantId,
    payload: payloads[row.kind](source),
  };
}

const payloads: Record<EventKind, (source: EventSource) => Record<string, unknown>> = {
  'form-created': (source) => ({
    form: renderForm(source),
    createdBy: actorOf(source.row.facts),
  }),
  'form-submitted': (source) => ({
    form: renderForm(source),
    submission: null,
    submittedBy: actorOf(source.row.facts),
    data: source.data,
    dryRun: false,
  }),
  'form-expiring': (source) => ({
    form: renderForm(source),
    lockOn: source.row.facts.lockOn ?? null,
    deleteOn: source.row.facts.deleteOn ?? null,
  }),
  'form-locked': (source) => ({
    form: renderForm(source),
    lockedBy: actorOf(source.row.facts),
    deleteOn: source.row.facts.deleteOn ?? null,
  }),
  'form-unlocked': (source) => ({
    form: renderForm(source),
    unlockedBy: actorOf(source.row.facts),
  }),
  'form-to-draft': (source) => ({
    form: renderForm(source),
    toDraftBy: actorOf(source.row.facts),
  }),
  'form-archived': ({ row }) => ({
    id: row.formId,
    archivedBy: actorOf(row.facts),
  }),
  // The older platform names only urn, id and deletedBy; the definition is for the notice, the files for their owner.
  'form-deleted': ({ row, definition, urns }) => ({
    urn: urns.form(row.formId),
    id: row.formId,
    deletedBy: actorOf(row.facts),
    definition: renderDefinition(definition),
    files: fileUrns(row.facts.files ?? [], urns),
  }),
};

/** Only file URNs: what else an applicant may have named a file is an answer. */
function fileUrns(files: readonly string[], urns: Urns): string[] {
  return files.filter((urn) => urn.startsWith(`${urns.service('file-service')}:v1:/files/`));
}

/** A row without an actor was written by this service's own expiry. */
function actorOf(facts: OutboxFacts): Actor {
  const { id, name } = facts.actor ?? {
    id: 'form-service-job',
    name: 'form-service-job',
  };
  return { id, name };
}

/** The status that the form had when the event happened. The row's own status may have moved on since. */
const statusAfter: Partial<Record<OutboxKind, OutboxForm['status']>> = {
  'form-created': 'Draft',
  'form-submitted': 'Submitted',
  'form-expiring': 'Draft',
  'form-locked': 'Locked',
  'form-unlocked': 'Draft',
  'form-to-draft': 'Draft',
};

/**
 * The form as it was when the event happened, as far as the row can still tell: what the event itself implies (status,
 * lock and submission time) comes from the event, the rest from the form's row; null where that row is gone.
 */
function renderForm({ row, definition, urns }: EventSource): Record<string, unknown> {
  const { form, kind, created: at } = row;
  const urn = urns.form(row.formId);
  return {
    urn,
    id: row.formId,
    definition: renderDefinition(definition),
    formDraftUrl: formDraftUrl(definition, row.formId),
    status: statusAfter[kind],
    created: (kind === 'form-created' ? at : form?.created)?.toISOString() ?? null,
    createdBy: form ? { id: form.createdBy.id, name: form.createdBy.name } : null,
    locked: kind === 'form-locked' ? at.toISOString() : null,
    submitted: submittedAt(row),
    lastAccessed: form ? earlier(form.lastAccessed, at).toISOString() : null,
    applicant: form?.applicant.addressAs ? { addressAs: form.applicant.addressAs } : null,
    dryRun: false,
    _links: {
      self: { href: urn },
      data: { href: `${urn}/data` },
      collection: { href: urn.slice(0, urn.lastIndexOf('/')) },
    },
  };
}

function submittedAt({ kind, created, form }: OutboxRow): string | null {
  if (kind === 'form-submitted') return created.toISOString();
  const submitted = form?.submitted;
  return submitted && submitted <= created ? submitted.toISOString() : null;
}

function earlier(a: Date, b: Date): Date {
  return a < b ? a : b;
}

function renderDefinition(definition: EventDefinition | undefined) {
  return definition
    ? {
        id: definition.id,
        name: definition.name,
        description: definition.description ?? null,
      }
    : null;
}

/** The link to a draft; null without a template, and for one that makes anything but an http(s) URL. */
export function formDraftUrl(definition: EventDefinition | undefined, formId: string): string | null {
  const template = definition?.formDraftUrlTemplate;
  if (!template) return null;
  const url = template.replace(/\{\{\{?\s*id\s*\}?\}\}|\{id\}/g, encodeURIComponent(formId));
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : null;
}
