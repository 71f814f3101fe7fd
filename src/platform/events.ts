// Sends events to the event service. A 200 means only that the service accepted the event. Calls are not retried,
// because the contract defines no idempotency key. The caller decides whether to repeat a call.
import { z } from 'zod';
import type { CallOptions, PlatformClient } from './http-client.ts';

export interface PlatformEvent {
  /** The namespace of the event, with 1 to 50 characters. */
  namespace: string;
  /** The name of the event, with 1 to 50 characters. */
  name: string;
  /** The time of the event (ISO 8601). */
  timestamp: string;
  correlationId?: string | undefined;
  /** Values that subscriptions can match. Formgate puts its idempotency key here. */
  context?: Record<string, string | number | boolean> | undefined;
  /** The tenant's URN. */
  tenantId: string;
  payload: Record<string, unknown>;
}

export interface Events {
  /**
   * Throws PlatformError. The kind `rejected` means that the event does not match its definition, so a retry cannot
   * succeed.
   */
  send(event: PlatformEvent, options?: CallOptions): Promise<void>;
}

export function createEvents(client: Pick<PlatformClient, 'request'>): Events {
  return {
    async send(event, options) {
      await client.request({
        ...options,
        operation: 'send event',
        method: 'POST',
        path: '/events',
        // The body names the tenant, too. The query lets a service know whose event it is before it reads the body.
        query: { tenantId: event.tenantId },
        body: event,
        text: true,
        response: z.string(),
      });
    },
  };
}
