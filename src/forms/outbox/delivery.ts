// Delivers one claimed outbox row to the event, notification or file service. It does not write to the database; the
// queue records the result. Every delivery can be repeated: events carry an idempotency key, a subscriber is found by
// its user id, and a removal also succeeds if the subscriber or file no longer exists.
//
// The notification service must not keep information about an applicant whose form is deleted. The rows of a form are
// therefore delivered strictly in order: `subscribe` first, `form-deleted` last. These cases are covered:
//
// - The form is deleted before `subscribe` is delivered, so the form's row and the applicant's address no longer exist.
//   The subscriber may exist, because send-code created it, or because a process died after its request to the service.
//   The delivery therefore requests a subscriber by the user id only. The service returns the existing one, or creates
//   one without any information.
// - The form is deleted during the delivery of `subscribe`. The statement that accepts the `subscribe` row writes the
//   subscriber's id into it, even if the form's row no longer exists. The statement that accepts `form-deleted` finds
//   the id there.
// - The process dies after its request to the service, before it records the acceptance. Another process claims the row
//   again, and the user id leads to the same subscriber, whether or not the form still exists.
// - A process that lost its claim (it was suspended, or the network failed) creates a subscriber after `form-deleted`
//   was accepted. The statement that accepts the `subscribe` row finds neither a form nor a pending `form-deleted`, so
//   the statement also writes the row that removes the subscriber.
// - The operation send-code creates the subscriber while the form is being deleted. The operation has claimed the
//   `subscribe` row, as a delivery does, so all of the above applies.
// - Two requests overlap at the service: the first one timed out in Formgate, but the service is still processing it.
//   The form then has two subscribers, and the outbox knows only one of them. The removal finds the second one by the
//   user id.
// - The process dies after the service accepted `form-deleted` and before the acceptance is recorded. The event is sent
//   again with the same idempotency key. One statement records the acceptance and writes the removal.
// - No outbox row contains information about the applicant, and a row loses the name of a signed-in actor when it is
//   accepted. A row that outlives its form therefore discloses nothing.
import type { Events } from '../../platform/events.ts';
import type { Notifications } from '../../platform/notifications.ts';
import { isRejection, PlatformError } from '../../platform/platform-error.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Urns } from '../../service/urn.ts';
import type { NoticeLinks } from '../notices/links.ts';
import { subscriptionOf } from '../notices/notification-type.ts';
import { type EventKind, events, isEventKind, type OutboxKind, renderEvent, wantsData } from './event-catalogue.ts';
import type { EventDefinition } from './event-fields.ts';
import { type FileService, removeOwned } from './files.ts';
import type { OutboxRow } from './outbox.ts';

export interface EventDefinitions {
  /**
   * Returns the form's definition. Undefined if the definition is not configured. Throws Problem `definition-invalid`,
   * or an error of the platform client.
   */
  find(tenantId: string, id: string, options: { permission: boolean }): Promise<EventDefinition | undefined>;
}

export interface Delivered {
  /** `skipped`: there was nothing to deliver. `postponed`: the row must not be delivered before the time `until`. */
  outcome: 'accepted' | 'skipped' | 'postponed';
  until?: Date;
  /** The URNs of the files that a postponed `remove-files` row must still remove. */
  files?: string[];
  /** The id of the form's subscriber; only for a `subscribe` row. */
  subscriberId?: string;
}

export type Deliver = (row: OutboxRow<OutboxKind>) => Promise<Delivered>;

/** The services and settings of a delivery. The platform clients retry their calls, and give up within a minute. */
export interface DeliveryOptions {
  events: Pick<Events, 'send'>;
  notifications: Pick<Notifications, 'subscribe' | 'removeSubscriber' | 'pendingNotices'>;
  clock: Clock;
  /** Milliseconds between two requests that ask the notification service whether it has sent all notices of a form. */
  recheck: number;
  /**
   * The client of the file service. Undefined if the deletion of files is disabled. Existing `remove-files` rows are
   * then skipped.
   */
  files: FileService | undefined;
  /**
   * Milliseconds after which a delivery removes no further file, but stores the remaining ones. It must be shorter than
   * the deadline of a delivery by the time of two calls.
   */
  fileTime: number;
  definitions: EventDefinitions;
  /** Reads the form data. Returns null if the form was deleted. */
  readData(formId: string): Promise<Record<string, unknown> | null>;
  urns: Urns;
  /** Creates the links of warning mails. Undefined if mails must not contain links of the applicant's pages. */
  links?: NoticeLinks | undefined;
}

/**
 * Returns a function that delivers one row. It resolves when the service has accepted the row, or the row was skipped
 * or postponed. It rejects with the platform client's error, or with FilesRemain, whose cause is such an error.
 */
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
  await options.events.send(renderEvent({ row, definition, data, urns: options.urns, links: options.links }));
  return { outcome: 'accepted' };
}

/**
 * Reads the definition if the event needs it (see the catalogue). Returns undefined if the definition is not
 * configured, or if the event can be rendered without it. If the form was deleted, the definition may also be invalid,
 * because the event then contains no form data.
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
  const subscribing = options.notifications.subscribe(request);
  // If the notification service rejects a request without a channel, the deleted form has no subscriber, so there is
  // nothing to remove.
  const found = await (form ? subscribing : subscribing.catch(withoutChannel));
  return found ? { outcome: 'accepted', subscriberId: found.subscriberId } : { outcome: 'skipped' };
}

/**
 * Maximum number of subscribers that one removal removes. If there are more, the notification service must be creating
 * new ones during the removal.
 */
const mostSubscribers = 10;

/**
 * Removes the form's subscriber, then any other subscriber with the same user id (the form's URN). To find another
 * subscriber, the function requests a subscription without a channel. If a subscriber exists, the notification service
 * returns it with its addresses. Otherwise, the service rejects the request, or creates a subscriber without addresses,
 * which is then removed too. Callers without the role subscription-admin cannot look up a subscriber by user id in
 * another way.
 */
async function removeSubscriber(row: OutboxRow, options: DeliveryOptions): Promise<Delivered> {
  const { notifications, urns } = options;
  const { formId: id, tenantId, facts } = row;
  const { subscriberId, definitionId } = facts;
  if (!subscriberId) return { outcome: 'skipped' };
  const until = await noticesUntil({ tenantId, subscriberId, estimate: facts.noticesUntil }, options);
  if (until) return { outcome: 'postponed', until };
  await notifications.removeSubscriber(tenantId, subscriberId);
  const request = subscriptionOf(
    { id, tenantId, definitionId, applicant: undefined, noticeSuppressed: undefined },
    urns,
  );
  for (let count = 1; count < mostSubscribers; count += 1) {
    const found = await notifications.subscribe(request).catch(withoutChannel);
    if (!found) return { outcome: 'accepted' };
    await notifications.removeSubscriber(tenantId, found.subscriberId);
    if (found.subscriber.channels.length === 0) return { outcome: 'accepted' };
  }
  throw new PlatformError('notifications', 'failed', { reason: 'subscribers remain' });
}

/**
 * Milliseconds for which a subscriber is still kept after the estimated time of its last notice, if the notification
 * service reports a pending notice.
 */
const patience = 3 * 86_400_000;

/**
 * Returns the time at which to try the removal again, because the notification service may still have to send a notice
 * to the subscriber. Asks the service for the number of pending notices, and uses `estimate` if the service refuses to
 * report it. Returns undefined if the subscriber can be removed now.
 */
async function noticesUntil(
  { tenantId, subscriberId, estimate }: { tenantId: string; subscriberId: string; estimate: string | undefined },
  { notifications, clock, recheck }: DeliveryOptions,
): Promise<Date | undefined> {
  if (estimate === undefined) return undefined;
  const now = clock().getTime();
  const estimated = Date.parse(estimate);
  const pending = await notifications.pendingNotices(tenantId, subscriberId).catch(cannotTell);
  if (pending === undefined) return estimated > now ? new Date(estimated) : undefined;
  return pending > 0 && now < estimated + patience ? new Date(now + recheck) : undefined;
}

/** Returns undefined if the notification service refuses to report the pending notices. Throws other errors. */
function cannotTell(error: unknown): undefined {
  if (!(error instanceof PlatformError) || error.service !== 'notifications') throw error;
  if (!['denied', 'rejected'].includes(error.kind)) throw error;
}

/**
 * Returns undefined if the service rejected a subscription without a channel, which means that no subscriber exists.
 * Throws other errors.
 */
function withoutChannel(error: unknown): undefined {
  if (!isRejection(error, 'notifications', [400])) throw error;
}

/** Removes the files that belong to this form. A row with remaining files is postponed. */
async function removeFiles(row: OutboxRow, { files, urns, clock, fileTime }: DeliveryOptions): Promise<Delivered> {
  if (!files) return { outcome: 'skipped' };
  const owner = urns.form(row.formId);
  const { removed, left } = await removeOwned(files, { owner, urns: row.facts.files ?? [], longest: fileTime });
  if (left.length > 0) return { outcome: 'postponed', until: clock(), files: left };
  return { outcome: removed > 0 ? 'accepted' : 'skipped' };
}
