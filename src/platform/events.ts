// Hands events to the event service. Its 200 means that it took the event, nothing more; an event that it does not take
// is the caller's to send again, so this never retries by itself (the contract knows no idempotency key).
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
  /** What subscriptions match by; an idempotency key goes here too. */
  context?: Record<string, string | number | boolean> | undefined;
  /** URN */
  tenantId: string;
  payload: Record<string, unknown>;
}

export interface Events {
  /** Throws PlatformError; `rejected` for an event that does not fit its definition: sending it again is no use. */
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
