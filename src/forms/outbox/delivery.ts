// Delivers one claimed row to the service that it is meant for. It says nothing to the database: the relay records what
// happened. Every delivery can be repeated: events carry an idempotency key, a subscriber is found by its user id, and
// what is removed already counts as removed.
//
// Nothing of an applicant may stay at the notification service without a form that points to it. The rows of a form are
// delivered strictly in order, `subscribe` first, and form-deleted comes after it; the cases are these:
//
// - The form is deleted before `subscribe` is tried. The form's row is gone, so no address can be sent. Somebody else
//   may have made the subscriber (send-code does, when it comes first; a relay may have died after the request), so the
//   subscriber is asked for by its user id alone, which tells its id or makes one without any information.
// - The form is deleted while `subscribe` is on its way. Acceptance writes the subscriber's id into the `subscribe` row,
//   whether or not there is a form's row to write it to. Acceptance of form-deleted finds it there.
// - The relay dies after the request and before that. The row is claimed again; the user id finds the same subscriber,
//   with the form (case as usual) or without it (first case).
// - A relay that lost its claim (it slept, or the network did) subscribes after all, even after form-deleted. Recording
//   its subscriber finds neither the form nor a form-deleted to come, and writes the row that removes it.
// - A send-code makes the subscriber of a form that was deleted while its request ran. Such a request ends within
//   seconds: either `subscribe` is still to be delivered and finds that subscriber, or it was, and the request found the
//   subscriber that the removal, a quarter of an hour later, takes away.
// - form-deleted is accepted and the relay dies before it is marked: it is sent again under the same key. The removal
//   is inserted by the statement that marks it, so there is never one without the other.
// - The applicant's information is in no outbox row at any time, so a row that outlives its form tells nothing. The
//   names of signed-in actors are taken out of the form's rows when form-deleted is accepted.
import { PlatformError } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Urns } from '../../service/urn.ts';
import { type FormEvent, renderEvent, wantsData } from './event.ts';
import { type EventKind, events, isEventKind, type OutboxKind } from './event-catalogue.ts';
import type { EventDefinition } from './event-fields.ts';
import type { OutboxRow } from './outbox.ts';
import { type Subscribing, subscriptionOf } from './subscription.ts';

export interface DefinitionSource {
  /** Undefined when none is configured. Throws Problem `definition-invalid`, or when it cannot be known. */
  find(tenantId: string, id: string, options: { permission: boolean }): Promise<EventDefinition | undefined>;
}

/** What is needed of the platform's clients. Each call retries by itself and ends within a minute. */
export interface DeliveryPlatform {
  events: { send(event: FormEvent): Promise<void> };
  notifications: Subscribing & {
    /** A subscriber that is gone already is no error. */
    removeSubscriber(tenantId: string, id: string): Promise<void>;
  };
  /** Undefined where the deletion of files is switched off; rows from before that are passed over. */
  files: FileService | undefined;
}

export interface FileService {
  /** Undefined when the file is gone. */
  read(urn: string): Promise<{ recordId?: string | null | undefined } | undefined>;
  /** A file that is gone already is no error. */
  remove(urn: string): Promise<void>;
}

export interface Delivered {
  /** `skipped`: there was nothing to send. */
  outcome: 'accepted' | 'skipped';
  /** Of `subscribe`: the form's subscriber. */
  subscriberId?: string;
}

export type Deliver = (row: OutboxRow<OutboxKind>) => Promise<Delivered>;

export interface DeliveryOptions extends DeliveryPlatform {
  definitions: DefinitionSource;
  /** The answers of a form; null when its row is gone. */
  readData(formId: string): Promise<Record<string, unknown> | null>;
  urns: Urns;
}

/** Resolves when the target has accepted; rejects with the platform client's error. */
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
  const request = subscriptionOf(
    {
      ...{ id, tenantId, definitionId: facts.definitionId, applicant: form?.applicant },
      noticeSuppressed: facts.noticeSuppressed === true,
    },
    options.urns,
  );
  try {
    const { subscriberId } = await options.notifications.subscribe(request);
    return { outcome: 'accepted', subscriberId };
  } catch (error) {
    // A service that makes no subscriber without a channel says so: then there is none to remove.
    const none = !form && error instanceof PlatformError && error.upstreamStatus === 400;
    if (none) return { outcome: 'skipped' };
    throw error;
  }
}

async function removeSubscriber(row: OutboxRow, { notifications }: DeliveryOptions): Promise<Delivered> {
  const { subscriberId } = row.facts;
  if (!subscriberId) return { outcome: 'skipped' };
  await notifications.removeSubscriber(row.tenantId, subscriberId);
  return { outcome: 'accepted' };
}

/** A file that another record owns is left alone, whoever named it in the form (reference behaviour, defect 8). */
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
