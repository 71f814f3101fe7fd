// Defines the error that every platform client throws. It states which service failed and how. Its message is safe to
// show to callers: it contains no URL, token, body or address.
import { Problem } from '../service/http/problem.ts';
import type { ProblemSlug } from '../service/http/problem-types.ts';
import type { QuarantineCause } from '../service/quarantine/quarantine.ts';

/**
 * - `unreachable`: no connection, or it broke before a response began
 * - `timeout`: no complete response within the time limit
 * - `failed`: 5xx, 408, 429, a redirect, or a response that is truncated, too large or does not match its schema
 * - `denied`: 401 or 403: the service's own account lacks a role, or its token was refused
 * - `rejected`: another 4xx: the service understood the request and rejects it
 * - `unregistered`: the service does not know yet what this process registered at the configuration service
 * - `open`: not called at all, because the service has been failing
 */
export type PlatformErrorKind = 'unreachable' | 'timeout' | 'failed' | 'denied' | 'rejected' | 'unregistered' | 'open';

const kinds: Record<PlatformErrorKind, { slug: ProblemSlug; says: string }> = {
  unreachable: { slug: 'dependency-failed', says: 'cannot be reached' },
  timeout: { slug: 'dependency-timeout', says: 'did not respond in time' },
  failed: { slug: 'dependency-failed', says: 'failed' },
  denied: { slug: 'dependency-failed', says: 'denied access to the account of this service' },
  rejected: { slug: 'dependency-failed', says: 'rejected the request' },
  unregistered: {
    slug: 'unavailable',
    says: 'has not read the registration of this service yet; it may have to be restarted',
  },
  // Has the same status as `failed` and `unreachable`, so that callers see one status during an outage. Retry-After
  // tells when to retry.
  open: { slug: 'dependency-failed', says: 'has been failing; retry in a few seconds' },
};

export interface PlatformErrorOptions {
  /** HTTP status of the service's response. */
  upstreamStatus?: number | undefined;
  /** Short and safe to log: an error code such as ECONNREFUSED, or `truncated`, `absent`, `malformed at /results/0`. */
  reason?: string | undefined;
  /** Seconds after which a retry may succeed. */
  retryAfter?: number | undefined;
  /** The service's message about a rejected request. It may quote the request, so never log it. */
  rejection?: string | undefined;
}

export class PlatformError extends Problem {
  /** `identity-provider`, `directory`, `tenants`, `configuration`, `notifications`, `events` … */
  readonly service: string;
  readonly kind: PlatformErrorKind;
  readonly upstreamStatus: number | undefined;
  readonly reason: string | undefined;
  readonly rejection: string | undefined;
  /** True if the service may have processed the request, in this attempt or in an earlier one. */
  mayHaveProcessed: boolean;

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
    this.mayHaveProcessed = mayHaveProcessed(kind, options);
  }
}

/**
 * True if an older response may be served instead, because the service fails or does not accept this service's account.
 */
export function isOutage(error: unknown): error is PlatformError {
  return error instanceof PlatformError && error.kind !== 'rejected';
}

/** Codes of errors that occur before a connection exists. */
const unconnected = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
]);

function mayHaveProcessed(kind: PlatformErrorKind, { reason, upstreamStatus }: PlatformErrorOptions): boolean {
  if (kind === 'unreachable') return !unconnected.has(reason ?? '');
  return kind === 'timeout' || (kind === 'failed' && upstreamStatus !== 429);
}

/**
 * True if the outcome of a call to this service is unknown. False if the service rejected the call or was not called,
 * for example because the directory or the identity provider failed first.
 */
export function isUndecided(error: unknown, service: string): boolean {
  return error instanceof PlatformError && error.service === service && error.mayHaveProcessed;
}

/** Returns log fields for a failure that may come from a platform service. */
export function failureFields(error: unknown): object {
  return error instanceof PlatformError ? { kind: error.kind, dependency: error.service } : { err: error };
}

// A 404 or 405 usually means that the URL of the service is wrong, not that the item is invalid.
const wrongAddress = new Set([404, 405]);

/** Returns the cause for quarantine if a service rejected this request, so that a retry would not help. */
export function serviceRefusal(error: unknown): QuarantineCause | undefined {
  if (!(error instanceof PlatformError) || error.kind !== 'rejected') return undefined;
  const status = error.upstreamStatus ?? 0;
  return wrongAddress.has(status)
    ? undefined
    : { reason: 'service-refused', detail: `${error.service} ${status || ''}`.trim() };
}
