// Defines the error that every platform client throws. It states which service failed and how. Its message may be shown
// to callers, because it contains no URL, token, body or address.
import { Problem } from '../service/http/problem.ts';
import type { ProblemSlug } from '../service/http/problem-types.ts';
import type { QuarantineCause } from '../service/quarantine/quarantine.ts';

/**
 * - `unreachable`: no connection was possible, or it broke before a response began
 * - `timeout`: no complete response arrived within the time limit
 * - `failed`: 5xx, 408, 429, a redirect, or a response that is truncated, too large or does not match its schema
 * - `denied`: 401 or 403; the service's own account lacks a role, or its token was refused
 * - `rejected`: another 4xx; the service understood the request and rejected it
 * - `unregistered`: the service does not know yet what this process registered at the configuration service
 * - `open`: the service was not called, because it has been failing
 * - `busy`: the service refused the call, because it has too many calls or too much data of the tenant
 * - `over-budget`: the service was not called, because the tenant's documents are too large to be read this often
 */
const kinds = {
  unreachable: { slug: 'dependency-failed', says: 'cannot be reached' },
  timeout: { slug: 'dependency-timeout', says: 'did not respond in time' },
  failed: { slug: 'dependency-failed', says: 'failed' },
  denied: { slug: 'dependency-failed', says: 'denied access to the account of this service' },
  rejected: { slug: 'dependency-failed', says: 'rejected the request' },
  unregistered: {
    slug: 'unavailable',
    says: 'has not read the registration of this service yet; it may have to be restarted',
  },
  // This kind has the same status as `failed` and `unreachable`, so that callers get one status during an outage.
  // Retry-After says when to retry.
  open: { slug: 'dependency-failed', says: 'has been failing; retry in a few seconds' },
  busy: { slug: 'busy', says: 'has too much to do for this tenant' },
  'over-budget': {
    slug: 'busy',
    says: 'was not called, because the tenant’s documents are too large to be read this often',
  },
} satisfies Record<string, { slug: ProblemSlug; says: string }>;

export type PlatformErrorKind = keyof typeof kinds;

/** The reason of an error about a response with too many bytes or JSON values. */
export const oversized = 'oversized';
const tooLarge = 'sent a response that is too large: it has more bytes or JSON values than this service accepts';

export interface PlatformErrorOptions {
  /** HTTP status of the service's response. */
  upstreamStatus?: number | undefined;
  /** A short text that may be logged, such as ECONNREFUSED, `truncated`, `absent` or `malformed at /results/0`. */
  reason?: string | undefined;
  /** Seconds after which a retry may succeed. */
  retryAfter?: number | undefined;
  /** The service's message about a rejected request. Never log it, because it may quote the request. */
  rejection?: string | undefined;
}

export class PlatformError extends Problem {
  /**
   * Name of the failed service, such as `identity-provider`, `directory`, `tenants`, `configuration`, `notifications`
   * or `events`.
   */
  readonly service: string;
  readonly kind: PlatformErrorKind;
  readonly upstreamStatus: number | undefined;
  readonly reason: string | undefined;
  readonly rejection: string | undefined;
  /** True if the service may have processed the request in this attempt or an earlier one. */
  mayHaveProcessed: boolean;

  constructor(service: string, kind: PlatformErrorKind, options: PlatformErrorOptions = {}) {
    const { slug, says } = kinds[kind];
    super(slug, `The ${service} service ${options.reason === oversized ? tooLarge : says}.`, {
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
 * True if an older response may be served: the platform service fails, does not accept this service's account, or was
 * not called.
 */
export function isPlatformOutage(error: unknown): error is PlatformError {
  return error instanceof PlatformError && error.kind !== 'rejected';
}

/** Codes of errors that occur before a connection exists. */
const unconnected = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
]);

/** True if the error with this code occurred before a connection existed, so that nothing was sent. */
export function isUnconnected(code: string | undefined): boolean {
  return unconnected.has(code ?? '');
}

function mayHaveProcessed(kind: PlatformErrorKind, { reason, upstreamStatus }: PlatformErrorOptions): boolean {
  if (kind === 'unreachable') return !isUnconnected(reason);
  return kind === 'timeout' || (kind === 'failed' && upstreamStatus !== 429);
}

/**
 * True if the outcome of a call to `service` is unknown. False if the service rejected the call or was not called, for
 * example because the directory or the identity provider failed first.
 */
export function isUndecided(error: unknown, service: string): boolean {
  return error instanceof PlatformError && error.service === service && error.mayHaveProcessed;
}

/**
 * True if `service` itself rejected the call with one of the statuses. False for a rejection by another service on the
 * way, such as the directory, or with a status that only a proxy sends.
 */
export function isRejection(error: unknown, service: string, statuses: number[]): boolean {
  if (!(error instanceof PlatformError) || error.service !== service) return false;
  return error.kind === 'rejected' && statuses.includes(error.upstreamStatus ?? 0);
}

/**
 * True if the content of this call may have caused the failure, so that other calls may succeed. This is the case if
 * the response has status 500, is too large, or does not match its schema, if the service has too much to do for the
 * tenant, or if the tenant's documents are too large.
 */
export function mayConcernOneCall(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
  if (error.kind !== 'failed') return error.kind === 'busy' || error.kind === 'over-budget';
  const status = error.upstreamStatus;
  return error.reason === oversized || status === 500 || (status !== undefined && status < 300);
}

/** Returns log fields for an error that may come from a platform service. */
export function failureFields(error: unknown): object {
  return error instanceof PlatformError ? { kind: error.kind, dependency: error.service } : { err: error };
}

// A 404 or 405 usually means that the URL of the service is wrong. It does not mean that the item in the request is
// invalid.
const wrongAddress = new Set([404, 405]);

/**
 * Returns the reason to quarantine an item if the error shows that the service rejected it. A retry would fail again.
 */
export function serviceRefusal(error: unknown): QuarantineCause | undefined {
  if (!(error instanceof PlatformError) || error.kind !== 'rejected') return undefined;
  const status = error.upstreamStatus ?? 0;
  return wrongAddress.has(status)
    ? undefined
    : { reason: 'service-refused', detail: `${error.service} ${status || ''}`.trim() };
}
