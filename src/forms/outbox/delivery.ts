// Delivers one claimed row to its service. It does not write to the database: the queue settles the row. Every delivery can
// be repeated: events carry an idempotency key, a subscriber is found by its user id, and something that is already removed
// counts as removed.
//
// The notification service must not keep information about an applicant whose form is gone. The rows of a form are delivered
// strictly in order: `subscribe` first, form-deleted last. The cases:
//
// - The form is deleted before `subscribe` is delivered. The form's row, and so the address, is gone. The subscriber may
//   exist (send-code made it, or a process died after the request), so the service is asked for it by its user id alone,
//   which returns its id, or creates a subscriber without any information.
// - The form is deleted during the delivery of `subscribe`. Acceptance writes the subscriber's id into the `subscribe` row,
//   even if the form's row is gone. Acceptance of form-deleted finds it there.
// - The process dies after the request and before the acceptance. The row is claimed again; the user id finds the same
//   subscriber, with the form or without it (first case).
// - A process that lost its claim (it was suspended, or the network failed) subscribes even after form-deleted. Recording
//   its subscriber finds neither the form nor a pending form-deleted, and writes the row that removes the subscriber.
// - A send-code creates the subscriber of a form that is deleted during the request. The request ends within seconds: either
//   `subscribe` is still pending and finds that subscriber, or it was delivered before, and the request found the subscriber
//   that the removal takes away a quarter of an hour later.
// - The process dies after form-deleted is accepted and before that is recorded: the event is sent again under the same key.
//   The statement that records it also writes the removal, so there is never one without the other.
// - No outbox row contains the applicant's information at any time, so a row that outlives its form discloses nothing. The
//   names of signed-in actors are removed from the form's rows when form-deleted is accepted.
import type { Events } from '../../platform/events.ts';
import type { Notifications } from '../../platform/notifications.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Urns } from '../../service/urn.ts';
import { subscriptionOf } from '../notices/notification-type.ts';
import { type EventKind, events, isEventKind, type OutboxKind, renderEvent, wantsData } from './event-catalogue.ts';
import type { EventDefinition } from './event-fields.ts';
import type { FileService } from './files.ts';
import type { OutboxRow } from './outbox.ts';

export interface DefinitionSource {
  /** Undefined if it is not configured. Throws Problem `definition-invalid`, or the platform client's error. */
  find(tenantId: string, id: string, options: { permission: boolean }): Promise<EventDefinition | undefined>;
}

export interface Delivered {
  /** `skipped`: there was nothing to deliver. */
  outcome: 'accepted' | 'skipped';
  /** Of `subscribe`: the form's subscriber. */
  subscriberId?: string;
}

export type Deliver = (row: OutboxRow<OutboxKind>) => Promise<Delivered>;

/** Every call to a platform service retries by itself and ends within a minute. */
export interface DeliveryOptions {
  events: Pick<Events, 'send'>;
  notifications: Pick<Notifications, 'subscribe' | 'removeSubscriber'>;
  /** Undefined if the deletion of files is disabled; earlier rows are skipped. */
  files: FileService | undefined;
  definitions: DefinitionSource;
  /** The form data; null if the form was deleted. */
  readData(formId: string): Promise<Record<string, unknown> | null>;
  urns: Urns;
}

/** Resolves when the service has accepted the row; rejects with the platform client's error. */
export function createDelivery(options: DeliveryOptions): Deliver {
  return async (row) => {
    const { kind } = row;
    if (isEventKind(kind)) return sendEvent({ ...row, kind }, options);
    if (kind === 'subscribe') return subscribe(row, options);
    if (kind === 'remove-subscriber') return removeSubscriber(row, options);
    return removeFiles(row, options);
  };
}

async function sendEvent(row: OutboxRow<EventKind>, options: DeliveryOptions): Promise<Delivered> {
  const definition = await readDefinition(row, options);
  const data = wantsData(row, definition) ? await options.readData(row.formId) : null;
  await options.events.send(renderEvent({ row, definition, data, urns: options.urns }));
  return { outcome: 'accepted' };
}

/**
 * The definition, as far as the event needs it (see the catalogue). Undefined if it is not configured, or if the event does
 * not wait for it. A form that was deleted has no form data to send, so its definition need not be valid.
 */
async function readDefinition(
  row: OutboxRow<EventKind>,
  { definitions }: DeliveryOptions,
): Promise<EventDefinition | undefined> {
  const need = events[row.kind].definition;
  if (need === 'unused') return undefined;
  try {
    return await definitions.find(row.tenantId, row.facts.definitionId, { permission: false });
  } catch (error) {
    const isInvalid = error instanceof Problem && error.slug === 'definition-invalid';
    const mustBeUsable = need === 'usable' && row.form !== undefined;
    if (need === 'optional' || (isInvalid && !mustBeUsable)) return undefined;
    throw error;
  }
}

async function subscribe(row: OutboxRow, options: DeliveryOptions): Promise<Delivered> {
  const { form } = row;
  if (form?.subscriberId) return { outcome: 'skipped', subscriberId: form.subscriberId };
  if (form?.applicant.channels.length === 0) return { outcome: 'skipped' };
  const { formId: id, tenantId, facts } = row;
  const { definitionId, noticeSuppressed } = facts;
  const request = subscriptionOf(
    { id, tenantId, definitionId, noticeSuppressed, applicant: form?.applicant },
    options.urns,
  );
  try {
    const { subscriberId } = await options.notifications.subscribe(request);
    return { outcome: 'accepted', subscriberId };
  } catch (error) {
    // The service creates no subscriber without a channel, so there is none to remove.
    if (!form && error instanceof PlatformError && error.upstreamStatus === 400) return { outcome: 'skipped' };
    throw error;
  }
}

async function removeSubscriber(row: OutboxRow, { notifications }: DeliveryOptions): Promise<Delivered> {
  const { subscriberId } = row.facts;
  if (!subscriberId) return { outcome: 'skipped' };
  await notifications.removeSubscriber(row.tenantId, subscriberId);
  return { outcome: 'accepted' };
}

/** Removes only files that belong to this form, whatever files the form named (reference behaviour, defect 8). */
async function removeFiles(row: OutboxRow, { files, urns }: DeliveryOptions): Promise<Delivered> {
  if (!files) return { outcome: 'skipped' };
  const owner = urns.form(row.formId);
  let outcome: Delivered['outcome'] = 'skipped';
  for (const urn of row.facts.files ?? []) {
    const file = await files.read(urn);
    if (file?.recordId !== owner) continue;
    await files.remove(urn);
    outcome = 'accepted';
  }
  return { outcome };
}
