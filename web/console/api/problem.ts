// Parses the responses to failed requests: problem details (RFC 9457).

export interface FieldProblem {
  /** JSON pointer into the body, or into `/params`, `/query` or `/headers`. */
  pointer: string;
  detail: string;
}

/** Instead of an HTTP status: this tab shows an older version of the console than the server has. */
export const updatedStatus = -1;

/** A failed request. `message` is a text for people. */
export class ApiProblem extends Error {
  /** HTTP status of the response; 0 if there was no response; or `updatedStatus`. */
  readonly status: number;
  /** Last part of the problem's type, such as `form-held`. */
  readonly slug: string;
  readonly errors: readonly FieldProblem[];

  constructor(status: number, body: ProblemBody = {}, retryAfter: number | undefined = undefined) {
    super(textOf(status, body, retryAfter));
    this.status = status;
    this.slug = String(body.type ?? '').replace(/^.*:/, '');
    this.errors = Array.isArray(body.errors) ? body.errors : [];
  }
}

interface ProblemBody {
  type?: string;
  title?: string;
  detail?: string;
  errors?: FieldProblem[];
}

const noResponse =
  'The service cannot be reached. Check your connection and try again. Nothing that you typed was lost.';

const updated = 'A new version was installed after this page was opened. Load the page again to go on.';

function textOf(status: number, { title, detail }: ProblemBody, retryAfter: number | undefined): string {
  if (status === 0) return noResponse;
  if (status === updatedStatus) return updated;
  const text = detail ?? title ?? `The service responded with status ${status}.`;
  const wait =
    retryAfter === undefined ? '' : ` Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`;
  return `${text}${wait}`;
}

/** Reads the problem of a response that is not successful. */
export async function problemOf(response: Response): Promise<ApiProblem> {
  const body: unknown = await response.json().catch(() => undefined);
  const wait = Number(response.headers.get('Retry-After') ?? Number.NaN);
  const isObject = typeof body === 'object' && body !== null;
  return new ApiProblem(response.status, isObject ? body : {}, Number.isFinite(wait) ? wait : undefined);
}

/** Turns any thrown value into a problem that can be shown. */
export function asProblem(error: unknown): ApiProblem {
  return error instanceof ApiProblem ? error : new ApiProblem(0);
}
