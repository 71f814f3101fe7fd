// The notification type that informs applicants about their own forms, and the subscription to it. Only the form
// service creates subscriptions. Each form has one subscriber.
import type { SubscribeRequest } from '../../platform/notifications.ts';
import type { Urns } from '../../service/urn.ts';
import { type EventEntry, eventNamespace, events, noticeContext } from '../outbox/event-catalogue.ts';
import type { OutboxForm } from '../outbox/outbox.ts';
import { frenchTemplates, type NoticeTemplates, noticeTemplates } from './templates.ts';
import { noticeNames } from './text-parts.ts';

export const notificationTypeId = 'form-status-updates';

export interface NotificationType {
  id: string;
  name: string;
  description: string;
  publicSubscribe: boolean;
  subscriberRoles: string[];
  channels: ('email' | 'sms')[];
  events: { namespace: string; name: string; templates: NoticeTemplates }[];
}

/**
 * Returns the value that the notification service stores under the key `form-status-updates`. It contains every event
 * of the catalogue that has a notice.
 */
export function notificationTypeOf(catalogue: Record<string, EventEntry>): NotificationType {
  const noticed = Object.entries(catalogue).flatMap(([name, { notice: templates }]) =>
    templates ? [{ namespace: eventNamespace, name, templates }] : [],
  );
  return {
    id: notificationTypeId,
    name: 'Form status updates',
    description: `Tells applicants what happens to their form: ${noticed.map(({ name }) => name).join(', ')}.`,
    publicSubscribe: false,
    subscriberRoles: [],
    channels: ['email', 'sms'],
    events: noticed,
  };
}

export const notificationType = notificationTypeOf(events);

/**
 * Returns the configuration of a tenant that writes to all applicants in French (docs/notices/fr.json). Throws if an
 * event has a notice without a French text.
 */
export function frenchOverride(catalogue: Record<string, EventEntry>): Record<string, NotificationType> {
  const inFrench = Object.entries(catalogue).map(([name, entry]): [string, EventEntry] => {
    if (!entry.notice) return [name, entry];
    const notice = noticeNames.find((one) => noticeTemplates[one] === entry.notice);
    if (!notice) throw new Error(`The notice of ${name} is not in noticeTemplates, so it has no French text.`);
    return [name, { ...entry, notice: frenchTemplates[notice] }];
  });
  const type = {
    ...notificationTypeOf(Object.fromEntries(inFrench)),
    name: 'État du formulaire',
    description: 'Informe les demandeurs de ce qui arrive à leur formulaire.',
  };
  return { [notificationTypeId]: type };
}

export interface SubscribedForm {
  id: string;
  tenantId: string;
  definitionId: string;
  /**
   * The applicant of the form. Undefined if the form was deleted. The form's subscriber is then looked up without
   * information about the applicant.
   */
  applicant: OutboxForm['applicant'] | undefined;
  /** True if mails about the form are or may be suppressed. */
  noticeSuppressed: boolean | undefined;
}

/**
 * Builds the subscription of a form. The user id is the form's URN, so each form has a separate subscriber, and a
 * repeated request finds the same subscriber.
 */
export function subscriptionOf(form: SubscribedForm, urns: Urns): SubscribeRequest {
  const { id, tenantId, definitionId, applicant, noticeSuppressed } = form;
  const urn = urns.form(id);
  return {
    tenantId,
    typeId: notificationTypeId,
    userId: urn,
    ...(applicant?.addressAs && { addressAs: applicant.addressAs }),
    channels: (applicant?.channels ?? []).map(({ channel, address }) => ({ channel, address })),
    criteria: { description: definitionId, correlationId: urn, ...(noticeSuppressed && { context: noticeContext }) },
  };
}
