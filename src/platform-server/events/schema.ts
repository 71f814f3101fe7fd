// The schemas of the event service's requests and response. Unknown members are ignored, because older senders send
// some.
import { z } from 'zod';
import { anyObject } from '../../service/http/any-object.ts';
import { correlationId } from '../correlation-id.ts';

const name = z.string().min(1).max(50);

export const eventBody = z.object({
  namespace: name,
  name,
  timestamp: z.iso.datetime({ offset: true }).transform((text) => new Date(text)),
  correlationId: correlationId.nullish(),
  // An invalid idempotency key is rejected. If it were ignored, a repeated event would be stored twice.
  context: anyObject.and(z.object({ idempotencyKey: z.string().max(500).nullish() })).nullish(),
  /**
   * The tenant of the event, for core senders only. The query parameter `tenantId` takes precedence. Other senders send
   * for their own tenant.
   */
  tenantId: z.unknown().optional(),
  payload: anyObject,
});

export const eventQuery = z.object({ tenantId: z.string().optional() });
