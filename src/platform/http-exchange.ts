// One HTTP request and its whole answer. It refuses answers that are too large or incomplete, never follows a redirect
// (the token would go with it) and never retries.
import { Agent, type Dispatcher, errors } from 'undici';
import { PlatformError } from './platform-error.ts';

/** Largest answer in bytes: a page of registers of 1 MiB each, and far less than memory. */
const answerLimit = 16 * 1_048_576;

export interface Exchange {
  service: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: URL;
  headers: Record<string, string>;
  body: string | null;
  /** Ends the exchange, its body included. */
  signal: AbortSignal;
  /** Closes the connection after the answer. */
  isLast: boolean;
}

export interface RawAnswer {
  status: number;
  text: string;
}

/** Connections to all platform services of a process. Time limits are the caller's: undici's own cover parts only. */
export function createHttpAgent({ maxAnswer = answerLimit } = {}): Agent {
  return new Agent({
    connections: 64,
    connect: { timeout: 3_000 },
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: maxAnswer,
    allowH2: false,
    // Behind a Service of Kubernetes a connection stays with one pod, however many there are by now.
    clientTtl: 60_000,
  });
}

/** Throws PlatformError `timeout` (the signal), `unreachable` (before an answer began) or `failed` (within it). */
export async function exchange(agent: Dispatcher, request: Exchange): Promise<RawAnswer> {
  const { service, method, url, headers, body, signal, isLast: reset } = request;
  let answer: Dispatcher.ResponseData;
  try {
    const { origin } = url;
    answer = await agent.request({ origin, path: url.pathname + url.search, method, headers, body, signal, reset });
  } catch (error) {
    if (signal.aborted) throw new PlatformError(service, 'timeout');
    const spoken = error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError;
    throw new PlatformError(service, spoken ? 'failed' : 'unreachable', { reason: codeOf(error) });
  }
  try {
    return { status: answer.statusCode, text: await answer.body.text() };
  } catch (error) {
    if (signal.aborted) throw new PlatformError(service, 'timeout');
    const reason = error instanceof errors.ResponseExceededMaxSizeError ? 'oversized' : 'truncated';
    throw new PlatformError(service, 'failed', { reason });
  }
}

/** The code only: messages of network errors hold addresses. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
