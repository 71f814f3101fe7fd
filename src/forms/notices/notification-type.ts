// The notification type by which applicants follow their own form. Subscriptions are made by the service alone, one
// subscriber for each form; nobody can subscribe themselves.
import { eventNamespace } from '../outbox/event.ts';
import { type NoticeKind, type NoticeTemplates, noticeTemplates } from './templates.ts';

export const notificationTypeId = 'form-status-updates';

export interface NotificationType {
  id: string;
  name: string;
  description: string;
  publicSubscribe: boolean;
  subscriberRoles: string[];
  channels: ('email' | 'sms')[];
  events: { namespace: string; name: NoticeKind; templates: NoticeTemplates }[];
}

/** As the notification service keeps it under the key `form-status-updates`. */
export const notificationType: NotificationType = {
  id: notificationTypeId,
  name: 'Form status updates',
  description:
    'Tells applicants what happens to their form: saved, about to be locked, locked, unlocked, given back, received, deleted.',
  publicSubscribe: false,
  subscriberRoles: [],
  channels: ['email', 'sms'],
  events: (Object.keys(noticeTemplates) as NoticeKind[]).map((name) => ({
    namespace: eventNamespace,
    name,
    templates: noticeTemplates[name],
  })),
};
