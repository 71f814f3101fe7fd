// Calls one platform service: within a time limit, with retries where a repeat is harmless, behind a circuit breaker,
// with the token of the service's own account. Each call is counted, each failure is one log line, and neither holds a
// URL, token, body or address.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { z } from 'zod';
import type { Logger } from '../service/operations/log.ts';
import { retryDelay } from '../service/retry.ts';
import { createCircuit } from './circuit.ts';
import { exchange, type RawAnswer } from './http-exchange.ts';
import { answerError, assertTold, parseAnswer } from './platform-answer.ts';
import { PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';
import { type Query, queryOf } from './url-path.ts';

/** Of every method of every platform client. */
export interface CallOptions {
  /** W3C trace context of the request that this call belongs to (`response.locals.traceparent`). */
  traceparent?: string | undefined;
  /** Milliseconds for the whole call: token, retries and the last byte of the answer. Default 10,000. */
  timeoutMs?: number | undefined;
}

export interface PlatformRequest<T> extends CallOptions {
  /** What is done, for the log: `read configuration`. */
  operation: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below the service's base URL, each segment encoded (`pathOf`). */
  path: string;
  query?: Query | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as application/x-www-form-urlencoded. */
  form?: Record<string, string> | undefined;
  /** A repeat does no harm. Default true for GET, PUT and DELETE, false for POST and PATCH. */
  idempotent?: boolean | undefined;
  /** The answer by contract; unknown fields should pass (`z.looseObject`). An empty body is undefined. */
  answer: z.ZodType<T>;
  /** The answer is plain text, not JSON. */
  text?: boolean | undefined;
  /** Where a 404 is a regular answer: its value. Without this it is PlatformError `rejected`. */
  notFound?: (() => T) | undefined;
}

/** Where tokens come from: see service-account.ts. */
export interface TokenSource {
  token(): Promise<string>;
  /** Another token than the refused one, or the same if there is no better one now. */
  renew(refused: string): Promise<string>;
}

/** What every platform client of a process shares. */
export interface CallSettings {
  agent: Dispatcher;
  metrics: PlatformMetrics;
  log: Logger;
  timeoutMs?: number | undefined;
  /** Most milliseconds before the first retry; the second waits twice as long. */
  retryDelayMs?: number | undefined;
  /** Milliseconds from the circuit's opening to a probe. */
  circuitResetMs?: number | undefined;
}

export interface PlatformClientOptions extends CallSettings {
  service: string;
  /** Without trailing slash. Resolved before each call, so that a moved service is found. */
  baseUrl: () => Promise<string>;
  /** Absent for calls without a token. */
  account?: TokenSource | undefined;
}

export interface PlatformClient {
  /** Every failure is a PlatformError; of another service where a call before this one (token, directory) failed. */
  request<T>(request: PlatformRequest<T>): Promise<T>;
}

interface Call {
  url: URL;
  signal: AbortSignal;
  attempts: number;
}

const retries = 2;

export function createPlatformClient(options: PlatformClientOptions): PlatformClient {
  const { service, account, agent, metrics } = options;
  const circuit = createCircuit({ service, metrics, log: options.log, resetMs: options.circuitResetMs });
  // After a failure: the connection may lead to a pod that is going, or to no server of this service at all.
  let isSuspect = false;

  async function attempt<T>(request: PlatformRequest<T>, call: Call, token: string | undefined): Promise<RawAnswer> {
    const { body, ...rest } = encodeBody(request);
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'formgate', ...rest };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    if (request.traceparent !== undefined) headers.traceparent = request.traceparent;
    const mayRepeat = request.idempotent ?? ['GET', 'PUT', 'DELETE'].includes(request.method);
    for (let retry = 0; ; retry += 1) {
      call.attempts += 1;
      try {
        const { url, signal } = call;
        const { method } = request;
        const answer = await exchange(agent, { service, method, url, headers, body, signal, isLast: isSuspect });
        if (answer.status < 500) return answer;
        throw answerError(service, answer);
      } catch (error) {
        if (!mayRepeat || retry === retries || !isTransient(error)) throw error;
      }
      await pause(retryDelay(retry + 1, { first: options.retryDelayMs ?? 200, cap: 10_000 }), call.signal, service);
    }
  }

  async function perform<T>(request: PlatformRequest<T>, call: Call): Promise<RawAnswer> {
    const { signal } = call;
    const token = account && (await before(signal, account.token(), service));
    const answer = await circuit.run(() => attempt(request, call, token));
    if (answer.status !== 401 || !account || token === undefined) return answer;
    const other = await before(signal, account.renew(token), service);
    return other === token ? answer : circuit.run(() => attempt(request, call, other));
  }

  async function request<T>(request: PlatformRequest<T>): Promise<T> {
    const started = performance.now();
    const signal = AbortSignal.timeout(request.timeoutMs ?? options.timeoutMs ?? 10_000);
    const call: Call = { url: blankUrl, signal, attempts: 0 };
    try {
      circuit.refuseIfOpen();
      const base = await before(signal, options.baseUrl(), service);
      call.url = new URL(`${base}${request.path}${queryOf(request.query)}`);
      const answer = await perform(request, call);
      const value = readAnswer(service, request, answer);
      isSuspect = false;
      metrics.duration.observe({ service, outcome: 'ok' }, (performance.now() - started) / 1000);
      return value;
    } catch (error) {
      const failure = error instanceof PlatformError ? error : unexpected(service, error);
      if (failure.service === service && failure.kind === 'failed') isSuspect = true;
      report(options, request, call, failure, performance.now() - started);
      throw failure;
    }
  }

  return { request };
}

const blankUrl = new URL('about:blank');

function readAnswer<T>(service: string, request: PlatformRequest<T>, answer: RawAnswer): T {
  if (answer.status >= 200 && answer.status < 300) return parseAnswer(service, answer, request);
  if (answer.status === 404 && request.notFound) {
    assertTold(service, answer);
    return request.notFound();
  }
  throw answerError(service, answer);
}

function encodeBody({ body, form }: PlatformRequest<unknown>): { body: string | null; 'content-type'?: string } {
  if (form) {
    const encoded = new URLSearchParams(form).toString();
    return { body: encoded, 'content-type': 'application/x-www-form-urlencoded' };
  }
  if (body === undefined) return { body: null };
  return { body: JSON.stringify(body), 'content-type': 'application/json' };
}

/** Connection errors, answers broken off, and 502, 503, 504: what another try may find gone. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
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

/** What others share (a token, a directory entry) is not cancelled, but this call waits for it no longer than its limit. */
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
  // A failure of a call before this one was reported by the client that made it.
  const own = failure.service === service;
  metrics.duration.observe({ service, outcome: own ? failure.kind : 'dependency' }, milliseconds / 1000);
  if (!own) return;
  metrics.failures.inc({ dependency: service, kind: failure.kind });
  // The circuit's opening is one line; the calls that it refuses would be thousands.
  if (failure.kind === 'open') return;
  log.warn(
    {
      dependency: service,
      operation: request.operation,
      kind: failure.kind,
      status: failure.upstreamStatus,
      reason: failure.reason,
      attempts: call.attempts,
      ms: Math.round(milliseconds),
      traceparent: request.traceparent,
    },
    'platform call failed',
  );
}
