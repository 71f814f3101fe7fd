// Sends one HTTP request and reads the whole response. Oversized and truncated responses are errors. The request is
// never retried. A redirect is never followed, because that would send the token to another address.
import { type Dispatcher, errors } from 'undici';
import { codeOfError } from '../service/error-code.ts';
import type { HttpAgent } from './http-agent.ts';
import { oversized, PlatformError } from './platform-error.ts';

export interface Exchange {
  service: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: URL;
  headers: Record<string, string>;
  body: string | null;
  /** Aborts the exchange, even while the response is being read. */
  signal: AbortSignal;
  /** True if the connection must be closed after the response. */
  closesConnection: boolean;
}

export interface RawResponse {
  status: number;
  text: string;
}

/**
 * Throws PlatformError: `timeout` if the signal aborts, `unreachable` if the exchange fails before the response begins,
 * and `failed` if the response is invalid, or if the exchange fails while the response is being read.
 */
export async function exchange(agent: HttpAgent, request: Exchange): Promise<RawResponse> {
  const { service, method, url, headers, body, signal, closesConnection: reset } = request;
  let response: Dispatcher.ResponseData;
  try {
    const { origin } = url;
    response = await agent.request({ origin, path: url.pathname + url.search, method, headers, body, signal, reset });
  } catch (error) {
    if (signal.aborted) throw new PlatformError(service, 'timeout');
    const hasResponded = error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError;
    throw new PlatformError(service, hasResponded ? 'failed' : 'unreachable', {
      reason: codeOfError(error) ?? 'unknown',
    });
  }
  try {
    return { status: response.statusCode, text: await response.body.text() };
  } catch (error) {
    if (signal.aborted) throw new PlatformError(service, 'timeout');
    const reason = error instanceof errors.ResponseExceededMaxSizeError ? oversized : 'truncated';
    throw new PlatformError(service, 'failed', { reason });
  }
}

interface OwnParts {
  body?: unknown;
  form?: Record<string, string> | undefined;
  language?: string | undefined;
  idempotencyKey?: string | undefined;
}

/** Returns the encoded body, and the headers that depend on the body, the language and the idempotency key. */
export function encodeRequest({ body, form, language, idempotencyKey }: OwnParts): {
  body: string | null;
  headers: Record<string, string>;
} {
  const type = form ? 'application/x-www-form-urlencoded' : body === undefined ? undefined : 'application/json';
  const text = form ? new URLSearchParams(form).toString() : body === undefined ? null : JSON.stringify(body);
  return {
    body: text,
    headers: {
      ...(type !== undefined && { 'content-type': type }),
      ...(language !== undefined && { 'accept-language': language }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
  };
}
