// The notification type by which applicants follow their own form. Only the service makes subscriptions, one subscriber for
// each form; nobody can subscribe themselves.
import { eventNamespace } from '../outbox/event.ts';
import { type EventEntry, events } from '../outbox/event-catalogue.ts';
import type { NoticeTemplates } from './templates.ts';

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

/** As the notification service stores it under the key `form-status-updates`: every event of the catalogue with a notice. */
export function notificationTypeOf(catalogue: Record<string, EventEntry>): NotificationType {
  return {
    id: notificationTypeId,
    name: 'Form status updates',
    description:
      'Tells applicants what happens to their form: saved, about to be locked, locked, unlocked, given back, received, deleted.',
    publicSubscribe: false,
    subscriberRoles: [],
    channels: ['email', 'sms'],
    events: Object.entries(catalogue).flatMap(([name, { notice: templates }]) =>
      templates ? [{ namespace: eventNamespace, name, templates }] : [],
    ),
  };
}

export const notificationType = notificationTypeOf(events);
