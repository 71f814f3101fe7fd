// Subscribers, their subscriptions and what these match. Pure.
import { isDeepStrictEqual } from 'node:util';

export interface Channel {
  channel: string;
  address: string;
  verified: boolean;
}

export interface Subscriber {
  id: string;
  addressAs: string;
  channels: Channel[];
}

/** One way in which an event may match; without a correlation id and context keys it matches every event. */
export interface Criterion {
  description?: string | undefined;
  correlationId?: string | undefined;
  context?: Record<string, unknown> | undefined;
}

export interface Subscription {
  typeId: string;
  subscriberId: string;
  /** Empty: every event of the type. */
  criteria: Criterion[];
}

export function isEmpty(criterion: Criterion | null | undefined): boolean {
  return !criterion || (criterion.correlationId === undefined && Object.keys(criterion.context ?? {}).length === 0);
}

/** Whether two criteria match the same events; a description matches nothing. */
export function isSameMatch(one: Criterion, other: Criterion): boolean {
  return one.correlationId === other.correlationId && isDeepStrictEqual(one.context ?? {}, other.context ?? {});
}

/** Mail addresses are kept in lower case, and compared as they are kept. */
export function normalizeAddress(channel: string, address: string): string {
  return channel === 'email' ? address.toLowerCase() : address;
}

export function showSubscriber(subscriber: Subscriber, tenantId: string, urnOf: (id: string) => string) {
  const { id, addressAs, channels } = subscriber;
  return { id, urn: urnOf(id), tenantId, addressAs, channels };
}
