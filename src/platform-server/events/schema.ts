// What the event service takes. Unknown members are ignored, as older senders send some.
import { z } from 'zod';

const name = z.string().min(1).max(50);
const anObject = z.record(z.string(), z.unknown());

export const eventBody = z.object({
  namespace: name,
  name,
  timestamp: z.iso.datetime({ offset: true }).transform((text) => new Date(text)),
  correlationId: z.string().max(1_000).nullish(),
  // A key that could not be kept must not be taken for none.
  context: anObject.and(z.object({ idempotencyKey: z.string().max(500).nullish() })).nullish(),
  /** Of a core sender; the query `tenantId` wins, and other senders send for their own tenant. */
  tenantId: z.unknown().optional(),
  payload: anObject,
});

export const eventQuery = z.object({ tenantId: z.string().optional() });
export const acceptedAnswer = z.literal('OK');
