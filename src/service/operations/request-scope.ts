// Carries the ids of a request to all code that works for the request, so that each log line and each call to another
// service names the request. Node keeps the scope across callbacks and promises (AsyncLocalStorage). Connections and
// timers that outlive a request keep the scope of the request that created them, so their callbacks must log with
// `outsideRequests`.
import { AsyncLocalStorage } from 'node:async_hooks';
import { hash } from 'node:crypto';
import type { Span } from '../tracing/span.ts';

/** Holds only ids and a span, because connections that outlive the request keep its scope in memory. */
export interface RequestScope {
  /** Id of the request; absent for background work. */
  readonly requestId?: string;
  /** W3C Trace Context (version 00) for the calls of this request: the client's trace, or a trace that begins here. */
  readonly traceparent: string;
  /** The span of the running work. Absent if no collector is configured. */
  readonly span?: Span;
}

const storage = new AsyncLocalStorage<RequestScope>();

/** Calls `work` with the scope. Everything that `work` starts has the scope too, even if it runs later. */
export function runInScope<A extends unknown[], T>(scope: RequestScope, work: (...args: A) => T, ...args: A): T {
  return storage.run(scope, work, ...args);
}

/** Calls `work` without a scope. Use this function for work that one request starts and other requests share. */
export function outsideRequests<T>(work: () => T): T {
  return storage.exit(work);
}

/** Returns the scope of the running code; undefined outside of requests. */
export function currentScope(): RequestScope | undefined {
  return storage.getStore();
}

/** Returns the headers that name the current request in a call to another service. */
export function scopeHeaders(scope = currentScope()): Record<string, string> {
  if (!scope) return {};
  const { requestId, traceparent } = scope;
  return requestId === undefined ? { traceparent } : { 'x-request-id': requestId, traceparent };
}

/** Returns the trace id of a header `traceparent`: 32 hexadecimal digits. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

// W3C Trace Context section 3.2.2: version 00. Ids that consist of zeros are invalid.
const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export function isTraceparent(text: unknown): text is string {
  return typeof text === 'string' && traceparentPattern.test(text);
}

/**
 * Returns a `traceparent` for a trace that begins here because the client sent none (W3C Trace Context section 3.2).
 * The trace id is derived from the request id, so that the trace leads to the log line of the request. The trace is not
 * marked as sampled.
 */
export function newTraceparent(requestId: string): string {
  return traceparentOf(uuidPattern.test(requestId) ? requestId : hash('sha256', requestId));
}

/**
 * Like `newTraceparent`, but only for a UUID that this process generated. Most requests need a traceparent, so this
 * function slices the UUID, which is faster than matching a pattern.
 */
export function traceparentOf(uuid: string): string {
  const high = uuid.slice(0, 8) + uuid.slice(9, 13) + uuid.slice(14, 18);
  // The second half of a UUID is never zero (RFC 9562 section 4.1).
  const low = uuid.slice(19, 23) + uuid.slice(24, 36);
  return `00-${high}${low}-${low}-00`;
}

const uuidPattern = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
