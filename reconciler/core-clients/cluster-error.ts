// The one error that calls to the API server throw. Its message says what was asked for and what became of it, and is fit
// for a log: it holds no token, address or object.

/**
 * - `absent`: 404; `forbidden`: 403; `unauthorized`: 401; `conflict`: 409; `expired`: 410
 * - `busy`: 429, also after waiting
 * - `timeout`: no whole answer within the time limit; `unreachable`: no connection, or it broke
 * - `refused`: another 4xx; `failed`: 5xx, or an answer that is none
 */
export type ClusterErrorKind =
  | 'absent'
  | 'forbidden'
  | 'unauthorized'
  | 'conflict'
  | 'expired'
  | 'busy'
  | 'timeout'
  | 'unreachable'
  | 'refused'
  | 'failed';

const byStatus: Record<number, ClusterErrorKind> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'absent',
  408: 'failed',
  409: 'conflict',
  410: 'expired',
  429: 'busy',
};

const says: Record<ClusterErrorKind, string> = {
  absent: 'the API server does not know it',
  forbidden: 'the Role of this account does not allow it',
  unauthorized: 'the API server does not accept the token of this account',
  conflict: 'the object was changed or made anew meanwhile',
  expired: 'the list kept expiring while it was read',
  busy: 'the API server is busy',
  timeout: 'the API server did not answer in time',
  unreachable: 'the API server cannot be reached',
  refused: 'the API server refused the request',
  failed: 'the API server failed',
};

export class ClusterError extends Error {
  readonly kind: ClusterErrorKind;
  /** Seconds until another call makes sense, as the API server says. */
  readonly retryAfter: number | undefined;

  /** `what` in a few words: `list coreclients.formgate.dev`. */
  constructor(
    kind: ClusterErrorKind,
    what: string,
    options: { status?: number; retryAfter?: number; why?: string } = {},
  ) {
    const status = options.status === undefined ? '' : ` (${options.status})`;
    super(`cannot ${what}: ${options.why ?? says[kind]}${status}`);
    this.name = 'ClusterError';
    this.kind = kind;
    this.retryAfter = options.retryAfter;
  }
}

/** Of an answer's status code. */
export function statusError(status: number, what: string, retryAfter: string | undefined): ClusterError {
  const kind = byStatus[status] ?? (status >= 400 && status < 500 ? 'refused' : 'failed');
  const seconds = Number(retryAfter);
  return new ClusterError(kind, what, { status, ...(Number.isFinite(seconds) && { retryAfter: seconds }) });
}
