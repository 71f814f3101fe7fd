// Calls the public API of the form service with the token of the intake application's own account. It passes on the
// API's problems. It reports a failed connection as 502, a rejected account as 503, and a timeout as 504. It logs no
// URL, token, code or body.
import type { Dispatcher } from 'undici';
import { HttpAgent } from '../../platform/http-agent.ts';
import type { TokenSource } from '../../platform/http-client.ts';
import { isUnconnected } from '../../platform/platform-error.ts';
import { codeOfError } from '../../service/error-code.ts';
import { networkOf } from '../../service/http/client-address.ts';
import { ownCallHeaders } from '../../service/http/own-calls.ts';
import { Problem } from '../../service/http/problem.ts';
import { findProblemType, type ProblemSlug } from '../../service/http/problem-types.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { definedMembers, isObject, jsonOrUndefined } from '../../service/json-value.ts';
import { createRequestQueue } from '../../service/limits/request-queue.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { scopeHeaders } from '../../service/operations/request-scope.ts';

export interface ApiCall {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below `/form/v1`, already percent-encoded by the caller. */
  path: string;
  tenantId: string;
  /** The body of the request as JSON text. */
  body?: string;
  headers?: Record<string, string | undefined>;
  /** True for a read that the API allows without a token. */
  isAnonymous?: boolean;
  /** The response to the browser's request. The call carries the trace and the client address of that request. */
  context: HttpResponse;
}

export interface ApiResponse {
  status: number;
  etag: string | undefined;
  /** The body of the response as JSON text; empty if the response has no body. */
  text: string;
}

/**
 * Thrown if the API did not say how the call ended: the API did not respond, the API responded with status 500, or a
 * proxy in between responded instead. The call may have taken effect.
 */
export class CallOutcomeUnknown extends Problem {}

/** Thrown if there was no connection to the API. The call has not taken effect. */
export class UnsentCall extends Problem {}

export interface FormApi {
  /**
   * Calls the API. Throws Problem `busy` if too many calls are running, CallOutcomeUnknown, UnsentCall, or
   * PlatformError if the account gets no token. Throws another Problem if the status of the response is 400 or higher.
   * A redirect, or a success without JSON, comes from a proxy, so it counts as no response of the API.
   */
  call(call: ApiCall): Promise<ApiResponse>;
  close(): Promise<void>;
}

export interface FormApiOptions {
  /** Base URL of another form service to call, without a trailing slash. By default, calls go to this process. */
  apiUrl?: string | undefined;
  /** Returns the URL at which this process serves its own calls. */
  ownUrl(): string;
  account: TokenSource;
  log: Logger;
  metrics: Pick<Metrics, 'dependencyFailures' | 'queueRefusals'>;
  /**
   * Time limit of a call in milliseconds. It must be long enough to send a code, because the form service then makes
   * several calls to the platform.
   */
  timeoutMs: number;
}

/**
 * The calls of one tenant, or from one client network, may all be slow, such as submits that wait for a validation.
 * They must not use all connections to the form service.
 */
const shares = {
  slots: { total: 64, perTenant: 32, perMember: 8 },
  waiting: { total: 640, perTenant: 320, perMember: 80 },
  detail: 'Too many applicants are using these pages at the moment. Try again.',
};

export function createFormApi({ apiUrl, ownUrl, account, log, metrics, timeoutMs }: FormApiOptions): FormApi {
  const agent = new HttpAgent();
  // Another process must not get the secret by which this process recognises its own calls.
  const added = apiUrl === undefined ? ownCallHeaders : {};

  function fail(kind: string, slug: ProblemSlug, detail: string, cause?: unknown): Problem {
    metrics.dependencyFailures.inc({ dependency: 'form-api', kind });
    const reason = codeOfError(cause);
    log.warn({ kind, reason }, 'intake application call failed');
    const options = { headers: slug === 'unavailable' ? { 'Retry-After': '5' } : {}, cause };
    if (isUnconnected(reason)) return new UnsentCall(slug, detail, options);
    return kind === 'denied' ? new Problem(slug, detail, options) : new CallOutcomeUnknown(slug, detail, options);
  }

  async function send(call: ApiCall, token: string | undefined): Promise<ApiResponse & { problem: unknown }> {
    const { method, path, tenantId, body } = call;
    const url = `${apiUrl ?? ownUrl()}/form/v1${path}?tenantId=${encodeURIComponent(tenantId)}`;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const options: Dispatcher.RequestOptions = {
        method,
        path: '',
        headers: { ...headersOf(call, token), ...added },
        body: body ?? null,
        signal,
      };
      const { statusCode, headers, body: stream } = await agent.request({ ...options, ...placeOf(url) });
      const text = await stream.text();
      const isSuccess = statusCode === 204 || (statusCode < 300 && isJson(headers['content-type']));
      const etag = typeof headers.etag === 'string' ? headers.etag : undefined;
      const retryAfter = headers['retry-after'];
      return {
        status: statusCode,
        etag,
        text,
        problem: isSuccess ? undefined : { ...parseObject(text), retryAfter },
      };
    } catch (error) {
      if (signal.aborted)
        throw fail('timeout', 'dependency-timeout', 'The form service did not respond in time.', error);
      throw fail('unreachable', 'dependency-failed', 'The form service cannot be reached.', error);
    }
  }

  async function exchange(call: ApiCall): Promise<ApiResponse> {
    const token = call.isAnonymous ? undefined : await account.token();
    let response = await send(call, token);
    if (response.status === 401 && token !== undefined) {
      const renewed = await account.renew(token);
      if (renewed !== token) response = await send(call, renewed);
    }
    if (!response.problem) return response;
    if (response.status === 401 && token !== undefined)
      throw fail('denied', 'unavailable', 'The account of the intake application was refused.');
    throw problemOf(response.problem) ?? fail('failed', 'dependency-failed', 'The form service failed.');
  }

  const queue = createRequestQueue('form-api', metrics, shares);
  return {
    call(call) {
      const member = networkOf(call.context.locals.forwarded.address);
      return queue.run({ tenant: call.tenantId, member }, () => exchange(call));
    },
    close: () => agent.destroy(),
  };
}

function headersOf({ headers = {}, body, context }: ApiCall, token: string | undefined): Record<string, string> {
  const { forwarded, scope } = context.locals;
  return definedMembers({
    ...headers,
    authorization: token && `Bearer ${token}`,
    'content-type': body === undefined ? undefined : 'application/json',
    // The form service limits the rate of reads without a token for each client address. This header passes on the
    // address of the applicant's browser.
    'x-forwarded-for': forwarded.address === 'unknown' ? undefined : forwarded.address,
    ...scopeHeaders(scope),
  });
}

function placeOf(url: string): { origin: string; path: string } {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}

function isJson(contentType: string | string[] | undefined): boolean {
  return typeof contentType === 'string' && /^application\/json\b/i.test(contentType);
}

function parseObject(text: string): Record<string, unknown> {
  const value = jsonOrUndefined(text);
  return isObject(value) ? value : {};
}

const prefix = 'urn:formgate:problem:';
/** Extension members of the API's problems that are passed on, because applicants' pages use them. */
const passedMembers = ['formStatus', 'truncated', 'opens', 'closes'] as const;

/**
 * Converts the body of a failed API response to a Problem. Returns undefined if the body is not a problem of a known
 * type.
 */
function problemOf(problem: unknown): Problem | undefined {
  if (!isObject(problem) || typeof problem.type !== 'string' || !problem.type.startsWith(prefix)) return undefined;
  const slug = problem.type.slice(prefix.length);
  if (!findProblemType(slug)) return undefined;
  const { detail, errors, retryAfter } = problem;
  const members = passedMembers.filter((name) => problem[name] !== undefined).map((name) => [name, problem[name]]);
  const Failure = slug === 'internal' ? CallOutcomeUnknown : Problem;
  return new Failure(slug as ProblemSlug, typeof detail === 'string' ? detail : undefined, {
    ...(Array.isArray(errors) && { errors }),
    ...(typeof retryAfter === 'string' && { headers: { 'Retry-After': retryAfter } }),
    members: Object.fromEntries(members),
  });
}
