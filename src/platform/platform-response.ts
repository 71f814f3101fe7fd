// Parses the response of a platform service into a value, or throws the matching PlatformError. A response that does
// not match its schema is an error.
import { z } from 'zod';
import { problemUrn } from '../service/http/problem.ts';
import { parseJson } from '../service/json-parser.ts';
import { hasMoreValues } from '../service/json-size.ts';
import { exceedsMemory } from './document-budget.ts';
import type { RawResponse } from './http-exchange.ts';
import { oversized, PlatformError } from './platform-error.ts';

/** The members of `PlatformRequest` (http-client.ts) that determine how its response is read. */
interface Expected<T> {
  response: z.ZodType<T>;
  text?: boolean | undefined;
  mostValues?: number | undefined;
  isFixed?: true | undefined;
  notFound?: (() => T) | undefined;
}

/** Returns the value of a response, or throws a PlatformError. */
export function readResponse<T>(service: string, request: Expected<T>, response: RawResponse): T {
  if (response.status >= 200 && response.status < 300) return parseResponse(service, response, request);
  if (response.status === 404) {
    assertOwn404(service, response);
    if (request.notFound) return request.notFound();
  }
  throw responseError(service, response, request.isFixed);
}

/**
 * Returns the value of a 2xx response. If JSON is expected, an empty body is parsed as undefined. Throws PlatformError
 * `failed` if the body is malformed, if its value would take too much memory, or if it has too many values.
 */
function parseResponse<T>(service: string, { status: upstreamStatus, text }: RawResponse, expected: Expected<T>): T {
  if (exceedsMemory(text) || hasMoreValues(text, expected.mostValues ?? Number.POSITIVE_INFINITY))
    throw new PlatformError(service, 'failed', { upstreamStatus, reason: oversized });
  const value = expected.text ? text : jsonOf(text);
  // The error has no cause, because the JSON parser's message quotes the response.
  if (value === notJson) throw new PlatformError(service, 'failed', { upstreamStatus, reason: 'malformed JSON' });
  const parsed = expected.response.safeParse(value);
  if (parsed.success) return parsed.data;
  const place = parsed.error.issues[0]?.path.join('/') ?? '';
  throw new PlatformError(service, 'failed', { upstreamStatus, reason: `malformed at /${place.slice(0, 80)}` });
}

/** Returns the error for a response that is not 2xx. `isFixed`: see `PlatformRequest`. */
export function responseError(service: string, { status, text }: RawResponse, isFixed = false): PlatformError {
  const upstreamStatus = status;
  if (status === 401 || status === 403) return new PlatformError(service, 'denied', { upstreamStatus });
  if (!isFixed && status >= 400 && status < 500 && status !== 408 && status !== 429)
    return new PlatformError(service, 'rejected', { upstreamStatus, rejection: rejectionOf(text) });
  if (status === 503 && busySchema.safeParse(jsonOf(text)).success)
    return new PlatformError(service, 'busy', { upstreamStatus, retryAfter: 5 });
  return new PlatformError(service, 'failed', { upstreamStatus });
}

/**
 * Throws PlatformError `failed` if a 404 does not come from the service itself. By contract, the service sends JSON
 * with a 404. Any other 404 comes from a proxy, or from another server.
 */
function assertOwn404(service: string, { status: upstreamStatus, text }: RawResponse): void {
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

/** The problem with which Formgate's own platform server refuses a call. It concerns the call's tenant only. */
const busySchema = z.looseObject({ type: z.literal(problemUrn('busy')) });

const rejectionSchema = z.union([
  z.looseObject({ errorMessage: z.string() }).transform(({ errorMessage }) => errorMessage),
  z.looseObject({ error: z.string() }).transform(({ error }) => error),
]);

function rejectionOf(text: string): string | undefined {
  const parsed = rejectionSchema.safeParse(jsonOf(text));
  return parsed.success ? parsed.data.slice(0, 1_000) : undefined;
}
