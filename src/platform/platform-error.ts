// The one error that every platform client throws. It says which service failed and how, so that a caller can map it;
// what it shows to a client of ours holds no URL, token, body or address.
import { Problem } from '../service/http/problem.ts';
import type { ProblemSlug } from '../service/http/problem-types.ts';
import type { QuarantineCause } from '../service/quarantine/quarantine.ts';

/**
 * - `unreachable`: no connection, or it broke before an answer began
 * - `timeout`: no whole answer within the time limit
 * - `failed`: 5xx, 408, 429, a redirect, or an answer that is truncated, too large or not what the contract says
 * - `denied`: 401 or 403, that is, our own account lacks something
 * - `rejected`: another 4xx: the service understood the request and refuses it
 * - `open`: not called at all, because the service has been failing
 */
export type PlatformErrorKind = 'unreachable' | 'timeout' | 'failed' | 'denied' | 'rejected' | 'open';

const kinds: Record<PlatformErrorKind, { slug: ProblemSlug; says: string }> = {
  unreachable: { slug: 'dependency-failed', says: 'cannot be reached' },
  timeout: { slug: 'dependency-timeout', says: 'did not answer in time' },
  failed: { slug: 'dependency-failed', says: 'failed' },
  denied: { slug: 'dependency-failed', says: 'denied access to this service' },
  rejected: { slug: 'dependency-failed', says: 'rejected the request' },
  open: { slug: 'unavailable', says: 'has been failing and is left alone for the moment' },
};

export interface PlatformErrorOptions {
  /** HTTP status that the service answered with. */
  upstreamStatus?: number | undefined;
  /** Short and safe to log: an error code such as ECONNREFUSED, or `truncated`, `absent`, `malformed at /results/0`. */
  reason?: string | undefined;
  /** Seconds until another call makes sense. */
  retryAfter?: number | undefined;
  /** What the service said about a rejected request. It may quote the request: never log it. */
  rejection?: string | undefined;
}

export class PlatformError extends Problem {
  /** `access`, `directory`, `tenants`, `configuration`, `notifications`, `events` … */
  readonly service: string;
  readonly kind: PlatformErrorKind;
  readonly upstreamStatus: number | undefined;
  readonly reason: string | undefined;
  readonly rejection: string | undefined;

  constructor(service: string, kind: PlatformErrorKind, options: PlatformErrorOptions = {}) {
    const { slug, says } = kinds[kind];
    super(slug, `The ${service} service ${says}.`, {
      ...(options.retryAfter !== undefined && { headers: { 'Retry-After': String(options.retryAfter) } }),
    });
    this.name = 'PlatformError';
    this.service = service;
    this.kind = kind;
    this.upstreamStatus = options.upstreamStatus;
    this.reason = options.reason;
    this.rejection = options.rejection;
  }
}

/** True where an older answer may stand in: the service (or our access to it) is broken, it has not said no. */
export function isOutage(error: unknown): error is PlatformError {
  return error instanceof PlatformError && error.kind !== 'rejected';
}

// An address that does not exist (404, 405) is a wrong configuration of the service and no fault of one item.
const wrongAddress = new Set([404, 405]);

/** The cause, if a service refused this very request: repeating it will not help. */
export function serviceRefusal(error: unknown): QuarantineCause | undefined {
  if (!(error instanceof PlatformError) || error.kind !== 'rejected') return undefined;
  const status = error.upstreamStatus ?? 0;
  return wrongAddress.has(status)
    ? undefined
    : { reason: 'service-refused', detail: `${error.service} ${status || ''}`.trim() };
}
