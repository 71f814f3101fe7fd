// The subscription of an applicant to their own form. Pure.
import type { Urns } from '../../service/urn.ts';
import { notificationTypeId } from '../notices/notification-type.ts';
import { noticeContext } from './event.ts';
import type { OutboxForm } from './outbox.ts';

export interface SubscribeRequest {
  tenantId: string;
  typeId: string;
  userId: string;
  addressAs?: string;
  channels: { channel: string; address: string }[];
  criteria: { description: string; correlationId: string; context?: Record<string, string> };
}

export interface Subscribing {
  /** Finds the subscriber of the user id, or makes it. */
  subscribe(request: SubscribeRequest): Promise<{ subscriberId: string }>;
}

export interface SubscribedForm {
  id: string;
  tenantId: string;
  definitionId: string;
  /** Absent when the form is gone: then its subscriber is asked for without any information to give to a new one. */
  applicant: OutboxForm['applicant'] | undefined;
  /** Its form-created must not send a mail. */
  noticeSuppressed: boolean;
}

/** The user id is the form's URN: each form has a subscriber of its own, and a repeat finds it. */
export function subscriptionOf(
  { id, tenantId, definitionId, applicant, noticeSuppressed }: SubscribedForm,
  urns: Urns,
): SubscribeRequest {
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
