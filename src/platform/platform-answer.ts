// Turns what a platform service answered into a value of the contract, or into the PlatformError that it amounts to.
// It refuses answers that are not what the contract says; unknown fields pass.
import { z } from 'zod';
import { parseJson } from '../service/http/json-parser.ts';
import type { RawAnswer } from './http-exchange.ts';
import { PlatformError } from './platform-error.ts';

/** The value of a 2xx answer. An empty body is `undefined` to the schema. Throws PlatformError `failed`. */
export function parseAnswer<T>(
  service: string,
  { status: upstreamStatus, text }: RawAnswer,
  expected: { answer: z.ZodType<T>; text?: boolean | undefined },
): T {
  const value = expected.text ? text : jsonOf(text);
  // The JSON error is not kept: its message quotes the answer.
  if (value === notJson) throw new PlatformError(service, 'failed', { upstreamStatus, reason: 'malformed JSON' });
  const parsed = expected.answer.safeParse(value);
  if (parsed.success) return parsed.data;
  const place = parsed.error.issues[0]?.path.join('/') ?? '';
  throw new PlatformError(service, 'failed', { upstreamStatus, reason: `malformed at /${place.slice(0, 80)}` });
}

/** The error of an answer that is not 2xx; never 502, 503 or 504 alone: those are retried before. */
export function answerError(service: string, { status, text }: RawAnswer): PlatformError {
  const upstreamStatus = status;
  if (status === 401 || status === 403) return new PlatformError(service, 'denied', { upstreamStatus });
  if (status >= 400 && status < 500 && status !== 408 && status !== 429)
    return new PlatformError(service, 'rejected', { upstreamStatus, rejection: rejectionOf(text) });
  return new PlatformError(service, 'failed', { upstreamStatus });
}

/**
 * Throws PlatformError `failed` unless the service itself says that there is none: by contract in JSON. Any other 404 is a
 * proxy's, or that of a server which has nothing to do with the service.
 */
export function assertTold(service: string, { status: upstreamStatus, text }: RawAnswer): void {
  if (z.looseObject({}).safeParse(jsonOf(text)).success) return;
  throw new PlatformError(service, 'failed', { upstreamStatus, reason: 'a 404 that is not the service’s' });
}

const notJson = Symbol('not JSON');

function jsonOf(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return parseJson(text);
  } catch {
    return notJson;
  }
}

const rejectionSchema = z.union([
  z.looseObject({ errorMessage: z.string() }).transform(({ errorMessage }) => errorMessage),
  z.looseObject({ error: z.string() }).transform(({ error }) => error),
]);

function rejectionOf(text: string): string | undefined {
  const parsed = rejectionSchema.safeParse(jsonOf(text));
  return parsed.success ? parsed.data.slice(0, 1_000) : undefined;
}
