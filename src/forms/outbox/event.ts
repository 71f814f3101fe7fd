// Renders a form event from its outbox row and the catalogue. Pure. It never puts an address, a channel, a code or a
// subscriber into a payload, and form data only into form-submitted, if the definition asks for it.
import { type EventEntry, type EventKind, events } from './event-catalogue.ts';
import type { EventDefinition, PayloadSource } from './event-fields.ts';
import { idempotencyKey, type OutboxRow } from './outbox.ts';

export const eventNamespace = 'form-service';

/** The context that a subscription requires of events if it must not receive all of them (decision 0035). */
export const noticeContext = { notice: 'due' } as const;

/** An event, as the event service takes it. `context.idempotencyKey` is the same at every delivery. */
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
      idempotencyKey: idempotencyKey(row),
      notice: row.facts.noticeSuppressed ? 'suppressed' : noticeContext.notice,
    },
    tenantId: row.tenantId,
    payload: Object.fromEntries(members),
  };
}
