// The subscription of an applicant to their own form, asked for in one way by everybody who needs it: the relay for the
// row `subscribe`, and send-code when it comes first.
import type { Clock } from '../../service/clock.ts';
import type { Urns } from '../../service/urn.ts';
import { notificationTypeId } from '../notices/notification-type.ts';
import type { OutboxForm } from './outbox.ts';
import type { OutboxStore } from './store.ts';

export interface SubscribeRequest {
  tenantId: string;
  typeId: string;
  userId: string;
  addressAs?: string;
  channels: { channel: string; address: string }[];
  criteria: { description: string; correlationId: string };
  traceparent?: string | undefined;
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
}

/** The user id is the form's URN: each form has a subscriber of its own, and a repeat finds it. */
export function subscriptionOf(
  { id, tenantId, definitionId, applicant }: SubscribedForm,
  urns: Urns,
): SubscribeRequest {
  const urn = urns.form(id);
  return {
    tenantId,
    typeId: notificationTypeId,
    userId: urn,
    ...(applicant?.addressAs && { addressAs: applicant.addressAs }),
    channels: (applicant?.channels ?? []).map(({ channel, address }) => ({ channel, address })),
    criteria: { description: definitionId, correlationId: urn },
  };
}

export type EnsureSubscriber = (form: SubscribedForm, traceparent?: string) => Promise<string>;

/**
 * Answers with the id of a form's subscriber, who is made if there is none yet. If the form is deleted meanwhile, the
 * subscriber is removed after it. Throws PlatformError.
 */
export function createEnsureSubscriber(options: {
  notifications: Subscribing;
  store: Pick<OutboxStore, 'recordSubscriber'>;
  urns: Urns;
  clock: Clock;
}): EnsureSubscriber {
  const { notifications, store, urns, clock } = options;
  return async (form, traceparent) => {
    const { subscriberId } = await notifications.subscribe({ ...subscriptionOf(form, urns), traceparent });
    await store.recordSubscriber({ ...form, subscriberId, now: clock() });
    return subscriberId;
  };
}
