// Calls one platform service with a timeout, a circuit breaker, the token of the service's own account, and retries of
// idempotent calls. Counts each call. Logs each failure with the service's host, but without path, query, token or
// body.
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import type { Logger } from '../service/operations/log.ts';
import { scopeHeaders } from '../service/operations/request-scope.ts';
import { retryDelay } from '../service/retry.ts';
import { callSpan } from '../service/tracing/request-span.ts';
import { currentSpan, traced } from '../service/tracing/tracing.ts';
import { createCircuit } from './circuit.ts';
import type { HttpAgent } from './http-agent.ts';
import { encodeRequest, exchange, type RawResponse } from './http-exchange.ts';
import { PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';
import { readResponse, responseError } from './platform-response.ts';
import { type Query, queryOf } from './url-path.ts';

/** Options for all methods of all platform clients. */
export interface CallOptions {
  /**
   * Time limit in milliseconds for the whole call: the token, the retries, and the response up to its last byte.
   * Default: 10,000.
   */
  timeoutMs?: number | undefined;
}

export interface PlatformRequest<T> extends CallOptions {
  /** Name of the operation in the log, such as `read configuration`. */
  operation: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the service's base URL. Each segment must be percent-encoded (`pathOf`). */
  path: string;
  query?: Query | undefined;
  /** The body of the request, sent as JSON. */
  body?: unknown;
  /** Fields that are sent as application/x-www-form-urlencoded instead of `body`. */
  form?: Record<string, string> | undefined;
  /**
   * True if repeating the call does no harm. The default is true for GET, PUT, DELETE and calls with an idempotency
   * key, and false for other POST and PATCH calls.
   */
  idempotent?: boolean | undefined;
  /** The header Accept-Language: the language for messages that the service sends to people. */
  language?: string | undefined;
  /** The header Idempotency-Key. It must not contain a secret. */
  idempotencyKey?: string | undefined;
  /**
   * Schema of the response. It should accept unknown fields (`z.looseObject`). An empty body is parsed as undefined.
   */
  response: z.ZodType<T>;
  /** Maximum number of JSON values in the response. By default, only its memory is limited. */
  mostValues?: number | undefined;
  /** True if the response is plain text instead of JSON. */
  text?: boolean | undefined;
  /**
   * True if the call contains nothing that a client chose. A 4xx response other than 401 and 403 then counts as a
   * failure of the service, so that an older response may be served.
   */
  isFixed?: true;
  /** Statuses of 5xx responses that are about this call and say nothing about the service. They are not retried. */
  ownFailures?: readonly number[] | undefined;
  /** Returns the value that a 404 stands for. Without it, a 404 of the service throws PlatformError `rejected`. */
  notFound?: (() => T) | undefined;
}

/** Supplies access tokens: see service-account.ts. */
export interface TokenSource {
  token(): Promise<string>;
  /** Returns a new token to replace a refused one. Returns the refused token if a renewal would be too early. */
  renew(refused: string): Promise<string>;
}

/** Settings that all platform clients of a process share. */
export interface CallSettings {
  agent: HttpAgent;
  metrics: PlatformMetrics;
  log: Logger;
  timeoutMs?: number | undefined;
  /** Maximum wait before the first retry, in milliseconds. The second wait is at most twice as long. */
  retryDelayMs?: number | undefined;
  /** Milliseconds from the opening of the circuit to a probe. */
  circuitResetMs?: number | undefined;
}

export interface PlatformClientOptions extends CallSettings {
  service: string;
  /** Returns the base URL without trailing slash. Called before each request, because the URL may change. */
  baseUrl: () => Promise<string>;
  /** The account whose token the calls carry. Absent for calls without a token. */
  account?: TokenSource | undefined;
  /** False if the calls must not carry `X-Request-Id` and `traceparent`. Default: true. */
  sendsScope?: boolean;
  /** False to open a new connection for each call. Default: true. */
  keepsConnections?: boolean;
}

export interface PlatformClient {
  /**
   * Throws only PlatformError, which names the failed service. The failed service may also be the directory or the
   * identity provider.
   */
  request<T>(request: PlatformRequest<T>): Promise<T>;
}

interface Call {
  url: URL;
  signal: AbortSignal;
  attempts: number;
  /** True if the service may have processed an attempt that failed. */
  wasLost: boolean;
}

const retries = 2;

const isIdempotent = (method: string) => ['GET', 'PUT', 'DELETE'].includes(method);

export function createPlatformClient(options: PlatformClientOptions): PlatformClient {
  const { service, account, agent, metrics, keepsConnections = true } = options;
  const circuit = createCircuit({ service, metrics, log: options.log, resetMs: options.circuitResetMs });
  // True from a failure of kind `failed` until the next success. During this time, each connection is closed after its
  // response, because the connection may lead to a terminating pod or to the wrong server.
  let isSuspect = false;

  async function attempt<T>(request: PlatformRequest<T>, call: Call, token: string | undefined): Promise<RawResponse> {
    const { body, headers: own } = encodeRequest(request);
    const headers: Record<string, string> = {
      accept: 'application/json',
      'user-agent': 'formgate',
      ...(options.sendsScope === false ? {} : scopeHeaders()),
      ...own,
    };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const mayRepeat = request.idempotent ?? (isIdempotent(request.method) || request.idempotencyKey !== undefined);
    for (let retry = 0; ; retry += 1) {
      call.attempts += 1;
      try {
        const { url, signal } = call;
        const { method } = request;
        const closesConnection = isSuspect || !keepsConnections;
        const response = await exchange(agent, { service, method, url, headers, body, signal, closesConnection });
        currentSpan()?.set({ 'http.response.status_code': response.status });
        if (response.status < 500 || request.ownFailures?.includes(response.status)) return response;
        throw responseError(service, response, request.isFixed);
      } catch (error) {
        if (error instanceof PlatformError) call.wasLost ||= error.mayHaveProcessed;
        if (!mayRepeat || retry === retries || !isTransient(error)) throw error;
      }
      await pause(retryDelay(retry + 1, { first: options.retryDelayMs ?? 200, cap: 10_000 }), call.signal, service);
    }
  }

  async function perform<T>(request: PlatformRequest<T>, call: Call): Promise<RawResponse> {
    const { signal } = call;
    const token = account && (await before(signal, account.token(), service));
    const response = await circuit.run(() => attempt(request, call, token));
    if (response.status !== 401 || !account || token === undefined) return response;
    const other = await before(signal, account.renew(token), service);
    return other === token ? response : circuit.run(() => attempt(request, call, other));
  }

  async function request<T>(request: PlatformRequest<T>): Promise<T> {
    const started = performance.now();
    const signal = AbortSignal.timeout(request.timeoutMs ?? options.timeoutMs ?? 10_000);
    const call: Call = { url: blankUrl, signal, attempts: 0, wasLost: false };
    try {
      circuit.refuseIfOpen();
      const base = await before(signal, options.baseUrl(), service);
      call.url = new URL(`${base}${request.path}${queryOf(request.query)}`);
      const value = readResponse(service, request, await perform(request, call));
      isSuspect = false;
      metrics.called(service, 'ok', (performance.now() - started) / 1000);
      return value;
    } catch (error) {
      const failure = error instanceof PlatformError ? error : unexpected(service, error);
      failure.mayHaveProcessed ||= call.wasLost && failure.service === service;
      if (failure.service === service && failure.kind === 'failed') isSuspect = true;
      report(options, request, call, failure, performance.now() - started);
      throw failure;
    }
  }

  return { request: (call) => traced(callSpan(service, call.method, call.operation), () => request(call)) };
}

const blankUrl = new URL('about:blank');

/** True if a retry may succeed: after connection errors, truncated responses, and 502, 503 (except busy) and 504. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof PlatformError) || error.kind === 'busy') return false;
  if (error.kind === 'unreachable' || error.reason === 'truncated') return true;
  return error.upstreamStatus !== undefined && [502, 503, 504].includes(error.upstreamStatus);
}

async function pause(milliseconds: number, signal: AbortSignal, service: string): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal });
  } catch {
    throw new PlatformError(service, 'timeout');
  }
}

/**
 * Waits for shared work, such as fetching a token or a directory entry, but only until this call times out. The work
 * then continues for other calls.
 */
function before<T>(signal: AbortSignal, shared: Promise<T>, service: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const expire = () => reject(new PlatformError(service, 'timeout'));
    if (signal.aborted) expire();
    signal.addEventListener('abort', expire, { once: true });
    shared.then(resolve, reject).finally(() => signal.removeEventListener('abort', expire));
  });
}

function unexpected(service: string, error: unknown): PlatformError {
  return new PlatformError(service, 'failed', { reason: error instanceof Error ? error.name : 'unknown' });
}

function report(
  { service, metrics, log }: PlatformClientOptions,
  request: PlatformRequest<unknown>,
  call: Call,
  failure: PlatformError,
  milliseconds: number,
): void {
  // If another service failed, the client of that service has already reported the failure.
  const own = failure.service === service;
  metrics.called(service, own ? failure.kind : 'dependency', milliseconds / 1000);
  if (!own) return;
  metrics.failures.inc({ dependency: service, kind: failure.kind });
  // The circuit logs once when it opens. A line for every refused call would flood the log.
  if (failure.kind === 'open') return;
  log.warn(
    {
      dependency: service,
      // Undefined, and so not logged, if the call failed before the address of the service was known.
      host: call.url.host || undefined,
      operation: request.operation,
      kind: failure.kind,
      status: failure.upstreamStatus,
      reason: failure.reason,
      attempts: call.attempts,
      ms: Math.round(milliseconds),
    },
    'platform call failed',
  );
}
