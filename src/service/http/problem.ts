// The error that carries a problem type to the client, and the response body for it (RFC 9457). The cause of an error
// is only logged.
import type { z } from 'zod';
import { type ProblemSlug, problemTypes } from './problem-types.ts';

/** An invalid field: a JSON pointer (RFC 6901) into the body, or below `/params`, `/query` or `/headers`. */
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

/**
 * A failure that is reported to the client. `detail` is sent to the client: it must contain no secret and no address.
 */
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

/**
 * Returns the body of a problem: the members of RFC 9457, and `errorMessage`, which clients of the older platform read.
 */
export function problemBody(problem: Problem, instance: string): Record<string, unknown> {
  return {
    type: problemUrn(problem.slug),
    title: problemTypes[problem.slug].title,
    status: problem.status,
    detail: problem.detail,
    instance,
    ...(problem.errors && { errors: problem.errors }),
    ...problem.members,
    errorMessage: problem.detail,
  };
}

/** Returns a JSON pointer. In its reference tokens, `~` and `/` are escaped (RFC 6901 section 3). */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Returns one field error per issue. An issue about unknown fields becomes one field error per unknown field. */
export function fieldErrors(error: z.ZodError, prefix: readonly PropertyKey[] = []): FieldError[] {
  return error.issues.flatMap((issue) => {
    const path = [...prefix, ...issue.path];
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ pointer: jsonPointer([...path, key]), detail: 'is not a known field' }));
    return [{ pointer: jsonPointer(path), detail: issue.message }];
  });
}

/**
 * Maximum number of field errors in a response. Further errors are only counted, so that a response stays smaller than
 * its request.
 */
export const listedErrors = 100;

/**
 * Returns a 400 that lists the first hundred field errors. Its detail describes the first one. `count` is the number of
 * all errors, for a caller that does not pass all of them.
 */
export function invalidRequest(errors: FieldError[], count = errors.length): Problem {
  const [first] = errors;
  if (!first) return new Problem('invalid-request');
  const place = first.pointer ? `${first.pointer}: ` : '';
  const more = count > 1 ? ` (and ${count - 1} more)` : '';
  return new Problem('invalid-request', `${place}${first.detail}${more}`, { errors: errors.slice(0, listedErrors) });
}

/** Returns the `type` of a problem (RFC 9457 section 3.1.1): a URN, the same in every installation (decision 0015). */
export function problemUrn(slug: string): string {
  return `urn:formgate:problem:${slug}`;
}
