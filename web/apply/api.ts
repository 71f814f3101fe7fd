// Calls the intake application of the form service. A cookie that this script cannot read authorises each call.
import { storedName } from './model/files.ts';
import type { Content, EndReason, Outcome } from './saving/saver.ts';

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
  /** Time of the response by the clock of the service; undefined if the response has no Date header. */
  readonly date: Date | undefined;

  constructor(status: number, problem: ProblemBody = {}, retryAfterMs?: number, date?: Date) {
    super(`The request failed with status ${status}.`);
    this.status = status;
    this.type = typeof problem.type === 'string' ? (problem.type.split(':').at(-1) ?? '') : '';
    this.retryAfterMs = retryAfterMs;
    this.errors = Array.isArray(problem.errors) ? problem.errors : [];
    this.opens = problem.opens ?? undefined;
    this.closes = problem.closes ?? undefined;
    this.date = date;
  }

  /**
   * True if the same request may succeed later: there was no response, the request arrived too slowly (408), the server
   * wants it on another connection (421) or later (425, 429), or the service failed.
   */
  get isTemporary(): boolean {
    return [0, 408, 421, 425, 429].includes(this.status) || this.status >= 500 || this.isUnrouted;
  }

  /** True if a proxy did not find the service. The 404 of the service itself has a problem type. */
  get isUnrouted(): boolean {
    return this.status === 404 && this.type === '';
  }
}

/** Turns any thrown value into a problem: a value of another kind means that there was no response. */
export function asProblem(cause: unknown): ApiProblem {
  return cause instanceof ApiProblem ? cause : new ApiProblem(0);
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
  /** The language of the definition's texts, as its author has declared it. */
  language?: string;
  /** Maximum size of a file in bytes. Services of an earlier version do not report it. */
  fileLimit?: number;
}

export interface FormStatus {
  id: string;
  definitionId: string;
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
  signal?: AbortSignal;
  /** True if the browser should complete the request after the page has ended. */
  keepalive?: boolean;
}

export function createApi(tenant: string) {
  const base = `/apply/api/tenants/${encodeURIComponent(tenant)}`;
  const send = (path: string, request: Request = {}) => {
    const isRepeatable = request.method === undefined || request.headers?.['Idempotency-Key'] !== undefined;
    return (isRepeatable ? callRepeatedly : call)(`${base}${path}`, request);
  };
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
    put(id: string, content: Content, etag: string, saveId: string): Promise<Outcome> {
      const headers = { 'If-Match': etag, 'Save-Id': saveId };
      return outcomeOf(send(`${form(id)}/data`, { method: 'PUT', json: content, headers, keepalive: true }));
    },
    /** Submits the version with this ETag. Throws ApiProblem 412 if the form has another one. */
    async submit(id: string, etag: string, key: string): Promise<Submission> {
      const headers = { 'If-Match': etag, 'Idempotency-Key': key };
      return (await send(`${form(id)}/submission`, { method: 'POST', headers })).json();
    },
    async upload(id: string, file: File, signal: AbortSignal): Promise<{ urn: string; name: string }> {
      const path = `${form(id)}/files?name=${encodeURIComponent(storedName(file.name))}`;
      return (await send(path, { method: 'POST', body: file, signal })).json();
    },
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
    if (error.status === 401) return { type: 'code' };
    if (error.status === 412) return { type: 'conflict' };
    return { type: endOf(error) ?? 'refused' };
  }
}

/** Returns why the form can no longer be filled in; undefined if the request failed for another reason. */
export function endOf({ status, type, isUnrouted }: ApiProblem): EndReason | undefined {
  if (status === 410 || (status === 404 && !isUnrouted)) return 'gone';
  if (status !== 409) return undefined;
  return type === 'form-locked' ? 'locked' : type === 'form-not-draft' ? 'submitted' : undefined;
}

/** Milliseconds before each repetition of a request. */
const pauses = [1_000, 3_000];
/** In milliseconds. If the service asks for a longer pause, the person reads the problem at once. */
const longestPause = 5_000;
/** Milliseconds after which a failed request is not repeated, so that a slow service keeps nobody waiting. */
const longestTrial = 10_000;

/**
 * Sends a request that has the same effect however often it is sent. Repeats it if the service is busy or restarts, so
 * that the person does not notice. Throws ApiProblem.
 */
async function callRepeatedly(url: string, request: Request): Promise<Response> {
  const began = performance.now();
  for (const pause of pauses) {
    try {
      return await call(url, request);
    } catch (error) {
      if (!(error instanceof ApiProblem) || ![502, 503, 504].includes(error.status)) throw error;
      const { retryAfterMs = 0 } = error;
      if (retryAfterMs > longestPause || performance.now() - began > longestTrial) throw error;
      await new Promise((done) => setTimeout(done, Math.max(pause, retryAfterMs)));
    }
  }
  return call(url, request);
}

/** Milliseconds after which a request without a file is given up, because a lost connection may never end it. */
const longestRequest = 60_000;

/** Returns a signal that also ends a response whose body does not arrive. */
function timeLimit(): AbortSignal {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), longestRequest);
  return abort.signal;
}

/** In bytes. Browsers refuse requests with `keepalive` whose bodies have more than 64 KiB together. */
const longestKeptAlive = 60_000;

/** Sends a request. Throws ApiProblem, whose status is 0 if there was no response. */
async function call(url: string, request: Request): Promise<Response> {
  const { method = 'GET', json, body, headers = {}, signal, keepalive = false } = request;
  const text = json === undefined ? null : JSON.stringify(json);
  const type = body ? 'application/octet-stream' : json === undefined ? undefined : 'application/json';
  const response = await fetch(url, {
    method,
    headers: {
      ...(method !== 'GET' && { 'X-Formgate-Apply': '1' }),
      ...(type && { 'Content-Type': type }),
      ...headers,
    },
    body: body ?? text,
    keepalive: keepalive && new Blob([text ?? '']).size <= longestKeptAlive,
    signal: signal ?? timeLimit(),
  }).catch(() => {
    throw new ApiProblem(0);
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN);
  const date = response.headers.get('Date');
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
  throw new ApiProblem(response.status, problem, retryAfterMs, date === null ? undefined : new Date(date));
}
