// The one error table and the error that carries a row of it. Everything that a client may learn of a failure is here;
// causes go to the log only.
import type { z } from 'zod';

/** Every problem that the services answer with: slug to status and title (RFC 9457 section 3.1). */
export const problemTypes = {
  'invalid-request': { status: 400, title: 'The request is not valid' },
  'malformed-json': { status: 400, title: 'The body is not JSON' },
  'invalid-path': { status: 400, title: 'The path of the target request is not allowed' },
  'code-required': { status: 400, title: 'A code is required' },
  unauthenticated: { status: 401, title: 'Authentication is required' },
  forbidden: { status: 403, title: 'The caller may not do this' },
  'upstream-not-allowed': { status: 403, title: 'The host of the upstream is not allowed' },
  'invalid-code': { status: 403, title: 'The code is wrong, expired or used' },
  'not-found': { status: 404, title: 'There is no such resource' },
  'method-not-allowed': { status: 405, title: 'The resource does not support this method' },
  'request-timeout': { status: 408, title: 'The body arrived too slowly' },
  conflict: { status: 409, title: 'The request conflicts with the state of the resource' },
  'form-exists': { status: 409, title: 'The applicant already has a form of this definition' },
  'form-held': { status: 409, title: 'The form is on hold' },
  'form-locked': { status: 409, title: 'The form is locked' },
  'form-not-draft': { status: 409, title: 'The form is not a draft' },
  'no-channel': { status: 409, title: 'The applicant has no channel to send to' },
  'registration-required': { status: 409, title: 'The client has to be registered' },
  gone: { status: 410, title: 'The resource was deleted' },
  stale: { status: 412, title: 'The resource has changed since it was read' },
  'body-too-large': { status: 413, title: 'The body is too large' },
  'unsupported-media-type': { status: 415, title: 'The body has an unsupported type' },
  'idempotency-mismatch': { status: 422, title: 'The idempotency key was used for another request' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  internal: { status: 500, title: 'The service failed' },
  'definition-invalid': { status: 502, title: 'The form definition cannot be used' },
  'dependency-failed': { status: 502, title: 'A service that this one depends on failed' },
  'upstream-unresolved': { status: 502, title: 'The directory has no entry for the upstream' },
  busy: { status: 503, title: 'The service is busy' },
  unavailable: { status: 503, title: 'The service is unavailable for the moment' },
  'dependency-timeout': { status: 504, title: 'A service that this one depends on did not answer in time' },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemSlug = keyof typeof problemTypes;

/** One failing place: a JSON pointer (RFC 6901) into the body, or below `/params`, `/query` or `/headers`. */
export interface FieldError {
  pointer: string;
  detail: string;
}

export interface ProblemOptions {
  errors?: FieldError[];
  headers?: Record<string, string>;
  /** Extension members (RFC 9457 section 3.2). */
  members?: Record<string, unknown>;
  cause?: unknown;
}

/** A failure that the client is told of. `detail` is shown to the client: it must hold no secret and no address. */
export class Problem extends Error {
  readonly slug: ProblemSlug;
  readonly status: number;
  readonly detail: string;
  readonly errors: FieldError[] | undefined;
  readonly headers: Record<string, string>;
  readonly members: Record<string, unknown>;

  constructor(slug: ProblemSlug, detail?: string, options: ProblemOptions = {}) {
    const { status, title } = problemTypes[slug];
    super(detail ?? title, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'Problem';
    this.slug = slug;
    this.status = status;
    this.detail = detail ?? `${title}.`;
    this.errors = options.errors;
    this.headers = options.headers ?? {};
    this.members = options.members ?? {};
  }
}

/** The body of a problem: RFC 9457 plus `errorMessage` for clients of the older platform. */
export function problemBody(problem: Problem, instance: string): Record<string, unknown> {
  return {
    type: `urn:formgate:problem:${problem.slug}`,
    title: problemTypes[problem.slug].title,
    status: problem.status,
    detail: problem.detail,
    instance,
    ...(problem.errors && { errors: problem.errors }),
    ...problem.members,
    errorMessage: problem.detail,
  };
}

/** RFC 6901 section 3: `~` and `/` inside a reference token are escaped. */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** One field error for each issue; an unknown field is named by its own pointer. */
export function fieldErrors(error: z.ZodError, prefix: readonly PropertyKey[] = []): FieldError[] {
  return error.issues.flatMap((issue) => {
    const path = [...prefix, ...issue.path];
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ pointer: jsonPointer([...path, key]), detail: 'is not a known field' }));
    return [{ pointer: jsonPointer(path), detail: issue.message }];
  });
}

/** More failing places than this are counted, not listed, so that an answer stays smaller than its request. */
const listedErrors = 100;

/** A 400 that names every failing place (the first hundred), and the first of them in its detail. */
export function invalidRequest(errors: FieldError[]): Problem {
  const [first] = errors;
  if (!first) return new Problem('invalid-request');
  const place = first.pointer ? `${first.pointer}: ` : '';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new Problem('invalid-request', `${place}${first.detail}${more}`, { errors: errors.slice(0, listedErrors) });
}
