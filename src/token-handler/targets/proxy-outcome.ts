// Classifies how a proxied request ended, for metrics. Pure functions only.
import { PlatformError } from '../../platform/platform-error.ts';
import { Problem } from '../../service/http/problem.ts';
import type { ProblemSlug } from '../../service/http/problem-types.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';

/**
 * - `succeeded`, `client-error`, `server-error`: the upstream responded below 400, with 4xx, with 5xx
 * - `unreachable`: the upstream could not be reached, or broke off its response
 * - `timeout`: the upstream did not begin to respond in time
 * - `refused`: a check or a limit of the token handler refused the request
 * - `failed`: the token handler, or a service that it needs, failed before the upstream was called
 * - `aborted`: the client closed the connection, or the session ended during the response
 */
export type ProxyOutcome =
  | 'succeeded'
  | 'client-error'
  | 'server-error'
  | 'unreachable'
  | 'timeout'
  | 'refused'
  | 'failed'
  | 'aborted';

export type Rejection = 'session' | 'csrf' | 'path' | 'host' | 'target' | 'method';

/** Returns the outcome of a request that was forwarded without an error. */
export function outcomeOf({ statusCode, writableEnded }: Pick<HttpResponse, 'statusCode' | 'writableEnded'>) {
  // The response of a WebSocket never ends.
  if (statusCode === 101) return 'succeeded';
  if (!writableEnded) return 'aborted';
  if (statusCode < 400) return 'succeeded';
  return statusCode < 500 ? 'client-error' : 'server-error';
}

/** Returns the outcome of a request that ended with an error. `isForwarded` is true from the call of the upstream. */
export function failedOutcome(error: unknown, isForwarded: boolean): ProxyOutcome {
  if (!(error instanceof Problem)) return isForwarded ? 'unreachable' : 'failed';
  if (isForwarded && error.slug === 'dependency-failed') return 'unreachable';
  if (isForwarded && error.slug === 'dependency-timeout') return 'timeout';
  const isRefusal = error.status < 500 || error.slug === 'busy' || rejectionOf(error) !== undefined;
  return isRefusal ? 'refused' : 'failed';
}

const rejections: Partial<Record<ProblemSlug, Rejection>> = {
  unauthenticated: 'session',
  forbidden: 'csrf',
  'invalid-path': 'path',
  'upstream-not-allowed': 'host',
  'upstream-unresolved': 'target',
  'not-found': 'target',
  'method-not-allowed': 'method',
};

/** Returns which check rejected a request that was not forwarded; undefined if none did. */
export function rejectionOf(error: unknown): Rejection | undefined {
  return error instanceof Problem && !(error instanceof PlatformError) ? rejections[error.slug] : undefined;
}
