// Turns failures of an upstream into Problems, and decides whether a request may be sent again.
import { errors } from 'undici';
import { isLookupFailure } from '../../service/http/host-lookups.ts';
import { Problem } from '../../service/http/problem.ts';
import type { ProxyMetrics } from './proxy-options.ts';

type Failures = Pick<ProxyMetrics, 'dependencyFailures' | 'aborted'>;

/** Error codes of a connection that the upstream closed or that broke. */
const closedCodes = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/**
 * True if a failed request without a body may be sent again (RFC 9110 section 9.2.2): its method is GET or HEAD, and
 * the connection was closed. A server may close a reused connection at any moment.
 */
export function isRepeatable(method: string, error: Error): boolean {
  return (method === 'GET' || method === 'HEAD') && 'code' in error && closedCodes.has(String(error.code));
}

/** Returns the problem for a failed request, and counts the failure. `hasBegun`: the response had already begun. */
export function failureProblem(error: Error, hasBegun: boolean, { dependencyFailures, aborted }: Failures): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof errors.InvalidArgumentError)
    return new Problem('invalid-request', 'The request has a header that cannot be forwarded.');
  dependencyFailures.inc({ dependency: 'upstream', kind: isLookupFailure(error) ? 'lookup' : 'failed' });
  aborted.inc({ side: 'upstream' });
  const what = hasBegun ? 'broke off its response' : 'cannot be reached or gave no valid response';
  return new Problem('dependency-failed', `The upstream ${what}.`, { cause: error });
}

export function lateProblem({ dependencyFailures }: Pick<Failures, 'dependencyFailures'>): Problem {
  dependencyFailures.inc({ dependency: 'upstream', kind: 'timeout' });
  return new Problem('dependency-timeout', 'The upstream did not begin to respond in time.');
}

export function slowBodyProblem(): Problem {
  return new Problem('request-timeout', 'The request body arrived too slowly. Send it again over a faster connection.');
}
