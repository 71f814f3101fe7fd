// Sends events to the event service. A 200 means only that the service accepted the event. Calls are not retried,
// because the contract has no idempotency key; the caller decides whether to repeat a call.
import { z } from 'zod';
import type { CallOptions, PlatformClient } from './http-client.ts';

export interface PlatformEvent {
  /** 1–50 characters. */
  namespace: string;
  /** 1–50 characters. */
  name: string;
  /** ISO 8601 */
  timestamp: string;
  correlationId?: string | undefined;
  /** Values that subscriptions match on. They include Formgate's idempotency key. */
  context?: Record<string, string | number | boolean> | undefined;
  /** The tenant's URN. */
  tenantId: string;
  payload: Record<string, unknown>;
}

export interface Events {
  /**
   * Throws PlatformError. The kind `rejected` means that the event does not match its definition, so that a retry
   * cannot help.
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
        body: event,
        text: true,
        answer: z.string(),
      });
    },
  };
}
