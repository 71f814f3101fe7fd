// Subscribes applicants at the notification service, and sends and checks codes. This client never asks the service to
// check an empty code, because the service would send a new code instead. A code counts as wrong only if the service
// explicitly rejects it.
import { z } from 'zod';
import { Problem } from '../service/http/problem.ts';
import type { CallOptions, PlatformClient, PlatformRequest } from './http-client.ts';
import type { FoundType, KnownType } from './known-type.ts';
import { PlatformError } from './platform-error.ts';
import { pathOf } from './url-path.ts';

export interface Channel {
  channel: string;
  /** The address as the service stores it (email addresses in lower case). Later calls must use this form. */
  address: string;
  verified: boolean;
}

export interface Subscriber {
  id: string;
  urn: string | undefined;
  addressAs: string | undefined;
  channels: Channel[];
}

export interface Subscription {
  subscriberId: string;
  typeId: string;
  subscriber: Subscriber;
}

export interface SubscribeRequest extends CallOptions {
  /** The tenant's URN. */
  tenantId: string;
  typeId: string;
  /** If a subscriber with this user id exists, it is reused, and its addresses do not change. */
  userId?: string | undefined;
  addressAs?: string | undefined;
  channels: { channel: string; address: string }[];
  /**
   * Restricts the events that the subscription matches. If the criteria are empty, the subscription matches every event
   * of the type.
   */
  criteria: { description?: string; correlationId?: string; context?: Record<string, string | number | boolean> };
}

export interface CodeRequest extends CallOptions {
  /** The tenant's URN. */
  tenantId: string;
  subscriberId: string;
  channel: string;
  /** The address exactly as the service returned it with the subscription or subscriber. */
  address: string;
}

export interface Notifications {
  /** Returns the notification type as the service knows it now. Undefined if the service does not know the type. */
  readType(tenantId: string, typeId: string): Promise<FoundType | undefined>;
  /** Returns the channels to which the service sends codes. Undefined until the service has named them. */
  codeChannels(): readonly string[] | undefined;
  /**
   * Subscribes an address. A failed call is not retried. A repeated call with the same `userId` returns the same
   * subscriber, unless the two calls overlap. Throws PlatformError `unregistered` while the service does not know the
   * notification type.
   */
  subscribe(request: SubscribeRequest): Promise<Subscription>;
  /**
   * Makes the service send a code. The message contains `reason`, and the service is asked to write it in `language`.
   * Throws PlatformError `rejected` with upstreamStatus 404 for an unknown subscriber.
   */
  sendCode(request: CodeRequest & { reason: string; language?: string }): Promise<void>;
  /**
   * True if the code is the one that was sent. Throws Problem `code-required` for an empty code. Throws PlatformError
   * `rejected` with upstreamStatus 400 if no code was sent yet, or 404 for an unknown subscriber. Throws PlatformError
   * `failed` if the response does not contain a result, or is the 404 of a proxy. A failed check is retried, because
   * repeated checks with the same code and `idempotencyKey` count as one. The public platform ignores the key, but
   * accepts a correct code repeatedly until the code expires.
   */
  checkCode(request: CodeRequest & { code: string; idempotencyKey?: string | undefined }): Promise<boolean>;
  /**
   * Returns the ids of at most 100 subscribers whose subscription to the type names this correlation id. Requires the
   * role subscription-admin for the service's own account.
   */
  subscribersOf(tenantId: string, typeId: string, correlationId: string): Promise<string[]>;
  /**
   * Returns the number of notices that the service still has to send to a subscriber; 0 if the subscriber does not
   * exist. Undefined if the service cannot tell.
   */
  pendingNotices(tenantId: string, id: string): Promise<number | undefined>;
  /** Removes a subscriber with its addresses and subscriptions. Also succeeds if the subscriber does not exist. */
  removeSubscriber(tenantId: string, id: string, options?: CallOptions): Promise<void>;
}

/** 504: the mail server of the service did not reply in time, so a code may have been sent (decision 0085). */
const ownFailures = [504];

function rejectUnknown(): never {
  throw new PlatformError('notifications', 'rejected', { upstreamStatus: 404 });
}

const optionalText = z
  .string()
  .nullish()
  .transform((text) => text ?? undefined);
const isTrue = z
  .boolean()
  .nullish()
  .transform((value) => value === true);
const subscriberSchema = z.object({
  id: z.string().min(1),
  urn: optionalText,
  addressAs: optionalText,
  channels: z.array(z.object({ channel: z.string(), address: z.string(), verified: isTrue })),
});
const subscriptionSchema = z.object({
  subscriberId: z.string().min(1),
  typeId: z.string(),
  subscriber: subscriberSchema,
});

const criterion = z.looseObject({ correlationId: z.string().nullish() });
const subscriptionsSchema = z.looseObject({
  results: z.array(
    z.looseObject({
      subscriberId: z.string().min(1),
      // An older service returns a single criterion instead of a list.
      criteria: z
        .union([z.array(criterion), criterion.transform((one) => [one])])
        .nullish()
        .transform((all) => all ?? []),
    }),
  ),
});
const typeSchema = z.looseObject({
  events: z.array(z.looseObject({ namespace: z.string(), name: z.string() })),
  codeChannels: z.array(z.string()).optional(),
});

export function createNotifications(client: Pick<PlatformClient, 'request'>, known: KnownType): Notifications {
  const subscriberPath = (id: string) => pathOf('notifications', 'subscribers', id);

  function operate<T>(
    request: CodeRequest & { idempotencyKey?: string | undefined; language?: string },
    operation: string,
    body: Record<string, string>,
    response: z.ZodType<T>,
    more: Partial<Pick<PlatformRequest<T>, 'notFound' | 'ownFailures'>> = {},
  ) {
    const { tenantId, subscriberId, channel, address, idempotencyKey, language, timeoutMs } = request;
    return client.request({
      operation,
      ...{ idempotencyKey, language },
      method: 'POST',
      path: subscriberPath(subscriberId),
      query: { tenantId },
      body: { ...body, channel, address },
      response,
      ...more,
      timeoutMs,
    });
  }

  return {
    ...createTypeCalls(client, known),
    codeChannels: () => known.codeChannels(),
    async sendCode(request) {
      const body = { operation: 'send-code', reason: request.reason };
      await operate(request, 'send code', body, z.looseObject({ sent: z.literal(true) }), { ownFailures });
    },
    async checkCode(request) {
      if (request.code.trim() === '') throw new Problem('code-required');
      const body = { operation: 'check-code', code: request.code };
      const response = z.looseObject({ verified: z.boolean() });
      const { verified } = await operate(request, 'check code', body, response, { notFound: rejectUnknown });
      return verified;
    },
    async pendingNotices(tenantId, id) {
      const { pendingNotices } = await client.request({
        operation: 'read subscriber',
        method: 'GET',
        path: subscriberPath(id),
        query: { tenantId },
        response: z.looseObject({ pendingNotices: z.int().nonnegative().optional() }),
        notFound: () => ({ pendingNotices: 0 }),
      });
      return pendingNotices;
    },
    async removeSubscriber(tenantId, id, options) {
      await client.request({
        ...options,
        operation: 'remove subscriber',
        method: 'DELETE',
        path: subscriberPath(id),
        query: { tenantId },
        response: z.unknown(),
        notFound: () => undefined,
      });
    },
  };
}

/** The calls that need the notification type. */
function createTypeCalls(
  client: Pick<PlatformClient, 'request'>,
  known: KnownType,
): Pick<Notifications, 'readType' | 'subscribe' | 'subscribersOf'> {
  return {
    async subscribersOf(tenantId, typeId, correlationId) {
      const { results } = await client.request({
        operation: 'list subscriptions',
        method: 'GET',
        path: `${pathOf('notifications', 'types', typeId)}/subscriptions`,
        query: { tenantId, top: 100, subscriptionMatch: JSON.stringify({ correlationId }) },
        response: subscriptionsSchema,
      });
      // If the service does not know this filter, it also returns subscriptions with other correlation ids.
      const own = results.filter(({ criteria }) => criteria.some((one) => one.correlationId === correlationId));
      return own.map(({ subscriberId }) => subscriberId);
    },
    readType: (tenantId, typeId) =>
      client.request<FoundType | undefined>({
        operation: 'read notification type',
        method: 'GET',
        path: pathOf('notifications', 'types', typeId),
        query: { tenantId },
        response: typeSchema,
        notFound: () => undefined,
      }),
    async subscribe({ tenantId, typeId, timeoutMs, ...body }) {
      const subscription = await client.request<Subscription | undefined>({
        operation: 'subscribe',
        method: 'POST',
        path: `${pathOf('notifications', 'types', typeId)}/subscriptions`,
        query: { tenantId },
        body,
        response: subscriptionSchema,
        // A 404 can only mean that the type is missing, because the request does not name a subscriber by its id.
        notFound: () => undefined,
        timeoutMs,
      });
      if (!subscription) throw known.missing();
      known.found();
      return subscription;
    },
  };
}
