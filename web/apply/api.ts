// Calls the intake application of the form service. A cookie that this script cannot read authorizes each call.
import type { Content, Outcome } from './saving/saver.ts';

interface ProblemBody {
  type?: string;
  errors?: readonly { pointer: string; detail: string }[];
  opens?: string | null;
  closes?: string | null;
}

export class ApiProblem extends Error {
  readonly status: number;
  /** The last part of the problem type, such as `invalid-code`; empty without a response. */
  readonly type: string;
  readonly retryAfterMs: number | undefined;
  readonly errors: readonly { pointer: string; detail: string }[];
  /** The intake window of the definition, if the request failed because the window is closed. */
  readonly opens: string | undefined;
  readonly closes: string | undefined;

  constructor(status: number, problem: ProblemBody = {}, retryAfterMs?: number) {
    super(`The request failed with status ${status}.`);
    this.status = status;
    this.type = typeof problem.type === 'string' ? (problem.type.split(':').at(-1) ?? '') : '';
    this.retryAfterMs = retryAfterMs;
    this.errors = Array.isArray(problem.errors) ? problem.errors : [];
    this.opens = problem.opens ?? undefined;
    this.closes = problem.closes ?? undefined;
  }

  /** True if the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export interface Definition {
  id: string;
  name: string;
  description?: string | null;
  tenantName?: string;
  dataSchema: unknown;
  uiSchema: unknown;
  files: boolean;
  /** The prefix of the URNs of uploaded files. */
  urnPrefix: string;
  languages: readonly ('en' | 'fr')[];
}

export interface FormStatus {
  id: string;
  status: string;
  submitted?: string | null;
  deleteOn?: string | null;
  readable: boolean;
  language?: 'en' | 'fr';
  /** The receipt number. */
  reference?: string | null;
}

export interface Submission {
  number: string;
  submitted: string;
}

export type Api = ReturnType<typeof createApi>;

export interface Draft extends Content {
  etag: string;
}

interface Request {
  method?: string;
  json?: unknown;
  body?: Blob;
  headers?: Record<string, string>;
}

export function createApi(tenant: string) {
  const base = `/apply/api/tenants/${encodeURIComponent(tenant)}`;
  const send = (path: string, request: Request = {}) => call(`${base}${path}`, request);
  const form = (id: string) => `/forms/${encodeURIComponent(id)}`;
  return {
    definition: async (id: string): Promise<Definition> =>
      (await send(`/definitions/${encodeURIComponent(id)}`)).json(),
    entries: async (register: string): Promise<unknown> =>
      (await (await send(`/registers/${encodeURIComponent(register)}/entries`)).json()).entries,
    /** Creates a draft. `key` is the same for all attempts to create one draft. */
    async create(definition: string, applicant: object, key: string): Promise<{ id: string; etag: string }> {
      const path = `/definitions/${encodeURIComponent(definition)}/forms`;
      return (await send(path, { method: 'POST', json: applicant, headers: { 'Idempotency-Key': key } })).json();
    },
    status: async (id: string): Promise<FormStatus> => (await send(form(id))).json(),
    sendCode: (id: string) => send(`${form(id)}/codes`, { method: 'POST' }),
    checkCode: (id: string, code: string) => send(`${form(id)}/code-checks`, { method: 'POST', json: { code } }),
    async read(id: string): Promise<Draft> {
      const response = await send(`${form(id)}/data`);
      const { data, files } = await response.json();
      return { data: data ?? {}, files: files ?? {}, etag: response.headers.get('ETag') ?? '' };
    },
    put: (id: string, content: Content, etag: string, saveId: string): Promise<Outcome> =>
      outcomeOf(
        send(`${form(id)}/data`, { method: 'PUT', json: content, headers: { 'If-Match': etag, 'Save-Id': saveId } }),
      ),
    submit: async (id: string, key: string): Promise<Submission> =>
      (await send(`${form(id)}/submission`, { method: 'POST', headers: { 'Idempotency-Key': key } })).json(),
    upload: async (id: string, file: File): Promise<{ urn: string; name: string }> =>
      (await send(`${form(id)}/files?name=${encodeURIComponent(file.name)}`, { method: 'POST', body: file })).json(),
    /** Deletes the draft. Succeeds only if a code was entered in this browser within the last half hour. */
    remove: (id: string) => send(form(id), { method: 'DELETE' }),
    forget: (id: string) => send(`${form(id)}/cookie`, { method: 'DELETE' }),
  };
}

async function outcomeOf(request: Promise<Response>): Promise<Outcome> {
  try {
    return { type: 'saved', etag: (await request).headers.get('ETag') ?? '' };
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.isTemporary)
      return { type: 'retry', afterMs: error instanceof ApiProblem ? error.retryAfterMs : undefined };
    const byStatus: Record<number, Outcome['type']> = { 401: 'code', 404: 'gone', 410: 'gone', 412: 'conflict' };
    const type =
      error.status === 409 ? (error.type === 'form-locked' ? 'locked' : 'submitted') : byStatus[error.status];
    return { type: type ?? 'refused' } as Outcome;
  }
}

/** Sends a request. Throws ApiProblem, whose status is 0 if there was no response. */
async function call(url: string, { method = 'GET', json, body, headers = {} }: Request): Promise<Response> {
  const type = body ? 'application/octet-stream' : json === undefined ? undefined : 'application/json';
  const response = await fetch(url, {
    method,
    headers: {
      ...(method !== 'GET' && { 'X-Formgate-Apply': '1' }),
      ...(type && { 'Content-Type': type }),
      ...headers,
    },
    body: body ?? (json === undefined ? null : JSON.stringify(json)),
  }).catch(() => {
    throw new ApiProblem(0);
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN);
  throw new ApiProblem(response.status, problem, Number.isFinite(seconds) ? seconds * 1_000 : undefined);
}
