// Defines subscribers, their subscriptions, and the criteria by which a subscription matches events. All functions are
// pure.

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

/**
 * A criterion matches events by their correlation id and the members of their context. A criterion without a
 * correlation id and without context members matches every event.
 */
export interface Criterion {
  description?: string | undefined;
  correlationId?: string | undefined;
  context?: Record<string, unknown> | undefined;
}

/** Maximum size of a criterion, in bytes of JSON. */
export const largestCriterion = 16_384;
/** Maximum number of criteria of a subscription. */
export const mostCriteria = 200;
/**
 * Maximum number of criteria of a tenant with the same correlation id, or without one, and their maximum size in bytes
 * of JSON. An event is compared with all of them, in one statement for each notification type.
 */
export const mostCompared = { criteria: 5_000, bytes: 1_048_576 };

export interface Subscription {
  typeId: string;
  subscriberId: string;
  /** If the list is empty, the subscription matches every event of the type. */
  criteria: Criterion[];
}

export function isEmpty(criterion: Criterion | null | undefined): boolean {
  return !criterion || (criterion.correlationId === undefined && Object.keys(criterion.context ?? {}).length === 0);
}

/** Returns an address in the form in which it is stored and compared: email addresses are in lower case. */
export function normalizeAddress(channel: string, address: string): string {
  return channel === 'email' ? address.toLowerCase() : address;
}

export function showSubscriber(subscriber: Subscriber, tenantId: string, urnOf: (id: string) => string) {
  const { id, addressAs, channels } = subscriber;
  return { id, urn: urnOf(id), tenantId, addressAs, channels };
}
