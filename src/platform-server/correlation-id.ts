// The schema of the correlation ids of events and of criteria of subscriptions.
import { z } from 'zod';

/** Postgres indexes correlation ids, and an entry of an index has at most 2,704 bytes. */
const mostBytes = 2_000;

export const correlationId = z
  .string()
  .max(1_000)
  .refine((id) => Buffer.byteLength(id) <= mostBytes, `must have at most ${mostBytes} bytes`);
