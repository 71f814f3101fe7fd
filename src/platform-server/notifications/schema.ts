// The schemas of the notification service's requests and responses. Unknown members are ignored, because older clients
// send some.
import { z } from 'zod';
import { correlationId } from '../correlation-id.ts';
import { cursor, jsonParameter, top } from '../page.ts';
import { type Criterion, largestCriterion, mostCriteria } from './subscription.ts';

const typeId = z.string().min(1).max(50);
const subscriberId = z.string().regex(/^[0-9a-f]{24}$/, 'must be 24 hexadecimal digits');

export const typeParams = z.object({ typeId });
export const subscriptionParams = z.object({ typeId, subscriberId });
export const subscriberParams = z.object({ subscriberId });

const criterion = z
  .object({
    description: z.string().max(500).nullish(),
    correlationId: correlationId.nullish(),
    context: z.record(z.string(), z.unknown()).nullish(),
  })
  .transform(
    ({ description, correlationId, context }): Criterion => ({
      ...(description && { description }),
      ...(correlationId && { correlationId }),
      ...(context && { context }),
    }),
  )
  .refine(
    (given) => Buffer.byteLength(JSON.stringify(given)) <= largestCriterion,
    `must have at most ${largestCriterion / 1_024} KiB of JSON`,
  );

/** Maximum size of a request that subscribes or changes criteria, in bytes. */
export const subscriptionBodyLimit = 65_536;

const channel = z.discriminatedUnion('channel', [
  z.object({ channel: z.literal('email'), address: z.email().max(254), verified: z.boolean().default(false) }),
  z.object({ channel: z.literal('sms'), address: z.string().min(1).max(50), verified: z.boolean().default(false) }),
]);

export const subscribeBody = z.object({
  id: subscriberId.nullish(),
  userId: z.string().min(1).max(500).nullish(),
  addressAs: z.string().max(500).nullish(),
  channels: z.array(channel).max(10).default([]),
  criteria: criterion.nullish(),
});

export type NewSubscriber = z.output<typeof subscribeBody>;

export const criteriaBody = z.object({
  criteria: z.union([z.array(criterion).min(1).max(mostCriteria), criterion]).nullish(),
});
export const criteriaQuery = z.object({ criteria: jsonParameter(criterion) });

export const subscriptionsQuery = z.object({
  top: top(10, 1_000),
  after: cursor(z.string().max(50)),
  subscriptionMatch: jsonParameter(criterion),
});

const channelAddress = { channel: z.string().min(1).max(50), address: z.string().min(1).max(254) };

export const operationBody = z.discriminatedUnion('operation', [
  z.object({ operation: z.literal('send-code'), ...channelAddress, reason: z.string().max(200).nullish() }),
  z.object({
    operation: z.literal('check-code'),
    ...channelAddress,
    code: z.string().min(1, 'must not be empty').max(50),
  }),
]);

export const typeResponse = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string().nullish(),
  publicSubscribe: z.boolean(),
  subscriberRoles: z.array(z.string()),
  channels: z.array(z.string()),
  events: z.array(z.object({ namespace: z.string(), name: z.string() })),
});

export const readTypeResponse = typeResponse.extend({ codeChannels: z.array(z.string()).optional() });

const subscriberResponse = z.object({
  id: z.string(),
  urn: z.string(),
  tenantId: z.string(),
  addressAs: z.string(),
  channels: z.array(z.object({ channel: z.string(), address: z.string(), verified: z.boolean() })),
});

export const readSubscriberResponse = subscriberResponse.extend({ pendingNotices: z.int().nonnegative().optional() });

export const subscriptionResponse = z.object({
  subscriberId: z.string(),
  typeId: z.string(),
  criteria: z.array(z.object({ description: z.string(), correlationId: z.string(), context: z.json() }).partial()),
  subscriber: subscriberResponse,
});

export const deletedResponse = z.object({ deleted: z.boolean() });
export const operationResponse = z.union([z.object({ sent: z.literal(true) }), z.object({ verified: z.boolean() })]);
