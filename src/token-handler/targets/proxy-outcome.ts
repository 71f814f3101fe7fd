// Classifies how a proxied request ended, for metrics. Pure functions only.
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { Rejection } from '../rejection.ts';

/**
 * How a proxied request ended:
 * - `succeeded`, `client-error`, `server-error`: the upstream responded with a status below 400, 4xx or 5xx
 * - `unreachable`: the upstream could not be reached, or broke off its response
 * - `timeout`: the upstream did not begin to respond in time
 * - `refused`: a check or a limit of the token handler refused the request
 * - `failed`: the token handler, or a service that it needs, failed before the upstream was called
 * - `aborted`: the client closed the connection, or the proxy aborted a response that had begun, because the session
 *   had ended or a body was too slow
 */
export const proxyOutcomes = [
  ...(['succeeded', 'client-error', 'server-error', 'unreachable', 'timeout'] as const),
  ...(['refused', 'failed', 'aborted'] as const),
] as const;
export type ProxyOutcome = (typeof proxyOutcomes)[number];

/** Returns the outcome of a request that was forwarded without an error. */
export function outcomeOf({ statusCode, writableEnded }: Pick<HttpResponse, 'statusCode' | 'writableEnded'>) {
  // The response that opens a WebSocket never ends.
  if (statusCode === 101) return 'succeeded';
  if (!writableEnded) return 'aborted';
  if (statusCode < 400) return 'succeeded';
  return statusCode < 500 ? 'client-error' : 'server-error';
}

/**
 * Returns the outcome of a request that ended with an error. `isForwarded` is true if the request had passed all
 * checks.
 */
export function failedOutcome(error: unknown, isForwarded: boolean): ProxyOutcome {
  if (!(error instanceof Problem)) return isForwarded ? 'unreachable' : 'failed';
  if (isForwarded && error.slug === 'dependency-failed') return 'unreachable';
  if (isForwarded && error.slug === 'dependency-timeout') return 'timeout';
  const isRefusal = error.status < 500 || error.slug === 'busy' || error instanceof Rejection;
  return isRefusal ? 'refused' : 'failed';
}
