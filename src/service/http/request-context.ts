// Starts and finishes every request, of Express and of plain listeners. Sets the request's id, its trace and the
// standard response headers, writes the log line, and counts the request. Logs the route pattern, never the path or
// query, which contain ids and codes.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import type { Caller, Tenant } from '../auth/identity.ts';
import type { Requester } from '../limits/fair-queue.ts';
import { auditLog } from '../operations/audit.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { isRefusal, type Refusals } from '../operations/refusals.ts';
import { auditEventOf, noteObject } from '../operations/request-audit.ts';
import {
  isTraceparent,
  newTraceparent,
  type RequestScope,
  traceIdOf,
  traceparentOf,
} from '../operations/request-scope.ts';
import { requestEnd } from '../tracing/request-span.ts';
import { startRequest } from '../tracing/tracing.ts';
import { createForwarded, createTrust, type Forwarded, networkOf, type TrustedProxies } from './client-address.ts';
import { isOwnCall } from './own-calls.ts';

declare global {
  namespace Express {
    interface Locals {
      requestId: string;
      /** The scope of the request. `runInScope` runs work for the request in this scope. */
      scope: RequestScope;
      /** Headers to add when the head of the response is sent, keyed by lower-case name. See `addHeader`. */
      pendingHeaders?: Record<string, string>;
      /** `performance.now()` when the request arrived. */
      started: number;
      forwarded: Forwarded;
      /** The pattern of the matched route. */
      route?: string;
      /** The client's `traceparent`, if the client sent a valid one. */
      traceparent?: string;
      caller?: Caller;
      tenant?: Tenant;
      /** Tenant URN, subject and client of the caller's session. */
      signedIn?: { tenantId: string; subject: string; clientId: string };
      /**
       * Ids of the objects that the request names, for its log line. If `clientId` is absent, the line has the
       * session's client.
       */
      formId?: string;
      clientId?: string;
      targetId?: string;
      /**
       * Only for a response that may last for hours: `performance.now()` when the response began. The recorded duration
       * of the request ends at this time.
       */
      began?: number;
      /** The body of the response, if other responses use the same memory. */
      sharedBody?: Buffer;
      /** The error that caused a 5xx response. */
      failure?: unknown;
    }
  }
}

/** A response of Express or of a plain listener. */
export type HttpResponse = ServerResponse & { locals: Express.Locals };

const requestIdPattern = /^[\w.-]{1,64}$/;

export interface RequestRecorders {
  log: Logger;
  metrics: Metrics;
  trustedProxies: TrustedProxies;
  /** Counts refused requests by tenant. */
  refusals?: Pick<Refusals, 'note'>;
}

/**
 * Returns a function to call first for each request. It sets `locals`, and prepares the headers that every response
 * gets (`pendingHeaders`).
 */
export function beginRequest(recorders: RequestRecorders) {
  const { trustedProxies } = recorders;
  const trust = createTrust(trustedProxies);
  const forwardedOf = createForwarded(trustedProxies);
  // One function for all responses: a closure for each request costs memory.
  const audited = auditLog(recorders.log);
  function finish(this: ServerResponse): void {
    finishRequest(this as HttpResponse, recorders, audited);
  }
  return (request: IncomingMessage, plainResponse: ServerResponse): HttpResponse => {
    const { traceparent } = request.headers;
    const isTraced = isTraceparent(traceparent);
    const scope = scopeOf(givenId(request, trust), isTraced ? traceparent : undefined);
    const { requestId } = scope;
    const locals: Express.Locals = { requestId, scope, started: performance.now(), forwarded: forwardedOf(request) };
    if (isTraced) locals.traceparent = traceparent;
    const response = Object.assign(plainResponse, { locals });
    locals.pendingHeaders = {
      'x-request-id': requestId,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    };
    response.on('close', finish);
    return response;
  };
}

function scopeOf(givenId: string | undefined, traceparent: string | undefined): RequestScope & { requestId: string } {
  const requestId = givenId ?? randomUUID();
  const span = startRequest(traceparent);
  if (span) return { requestId, traceparent: span.traceparent, span };
  if (traceparent !== undefined) return { requestId, traceparent };
  return { requestId, traceparent: givenId === undefined ? traceparentOf(requestId) : newTraceparent(requestId) };
}

/**
 * Returns the id in the header X-Request-Id. The id must be valid and come from an address that TRUSTED_PROXIES trusts,
 * such as that of an ingress or of another service of Formgate. Otherwise returns undefined.
 */
function givenId({ headers, socket }: IncomingMessage, trust: ReturnType<typeof createTrust>): string | undefined {
  const id = headers['x-request-id'];
  if (typeof id !== 'string' || !requestIdPattern.test(id)) return undefined;
  return trust(socket.remoteAddress ?? '', 0) || isOwnCall({ headers }) ? id : undefined;
}

/**
 * Adds a header to a response of Express or of a plain listener. The header stays pending until the head is sent,
 * because a proxied response passes all its headers to `writeHead`. After a call of `setHeader`, Node would set each of
 * these headers separately, which takes 5 % of the request's time.
 */
export function addHeader(response: HttpResponse, name: Lowercase<string>, value: string): void {
  const { pendingHeaders } = response.locals;
  if (pendingHeaders) pendingHeaders[name] = value;
  else response.setHeader(name, value);
}

/**
 * Sends the head of a response: `headers` (by lower-case name), and the pending headers that have other names. Throws
 * an Error for a header that Node refuses to send.
 */
export function writeHead(response: HttpResponse, status: number, headers: Record<string, string | string[]>): void {
  const { pendingHeaders = {} } = response.locals;
  for (const name of Object.keys(pendingHeaders)) headers[name] ??= pendingHeaders[name] as string;
  response.writeHead(status, headers);
}

/**
 * Maximum number of bytes of informational responses that wait for a slow client, or for the responses to earlier,
 * pipelined requests of the connection. Node has no back-pressure for them.
 */
const mostInformation = 65_536;

/** Sends an informational (1xx) response. Throws an Error if too many bytes wait to be sent. */
export function writeInformation(response: HttpResponse, status: number, headers: Record<string, string | string[]>) {
  if (response.writableLength > mostInformation) throw new Error('the upstream sent too many informational responses');
  response.writeInformation(status, headers);
}

/** Sets the pending headers on the response. Call this function before other code sets headers one by one. */
export function setPendingHeaders(response: HttpResponse): void {
  const { pendingHeaders = {} } = response.locals;
  delete response.locals.pendingHeaders;
  for (const name of Object.keys(pendingHeaders)) response.setHeader(name, pendingHeaders[name] as string);
}

/** Writes the log line of a request in one call. A child logger for each request would cost more than the line. */
function finishRequest(response: HttpResponse, { log, metrics, refusals }: RequestRecorders, audited: Logger): void {
  const { locals } = response;
  const { method = '' } = response.req;
  const { requestId, scope, signedIn, formId, targetId, failure, route = 'unmatched' } = locals;
  const milliseconds = (locals.began ?? performance.now()) - locals.started;
  const status = finalStatus(response);
  const traceId = scope.span?.isSampled ? scope.span.traceId : undefined;
  metrics.http.record({ method, route, status, seconds: milliseconds / 1000, traceId });
  const ms = Math.round(milliseconds * 10) / 10;
  const tenant = signedIn?.tenantId ?? locals.tenant?.id;
  if (refusals && isRefusal(status))
    refusals.note({ method, route, status, tenant: tenant ?? locals.caller?.tenant?.id });
  scope.span?.end(requestEnd(response.req, status, route));
  const caller = signedIn?.subject ?? locals.caller?.subject;
  const ids = { requestId, traceId: traceIdOf(scope.traceparent) };
  const clientId = locals.clientId ?? signedIn?.clientId;
  const audit = auditEventOf(locals, status);
  const line = { ...ids, method, route, status, ms, tenant, caller, formId, clientId, targetId, audit };
  const writer = audit ? audited : log;
  if (failure === undefined) writer.info(line, 'request');
  else writer.error({ ...line, err: failure }, 'request failed');
}

/** Stores the ids that the validated path parameters contain, for the log line and the audit event. */
export function noteIds(locals: Express.Locals, params: unknown): void {
  const { formId, clientId } = params as { formId?: string; clientId?: string };
  if (formId !== undefined) locals.formId = formId;
  if (clientId !== undefined) locals.clientId = clientId;
  noteObject(locals, params);
}

/**
 * Returns the status to log: 499, as in nginx, if the client closed the connection before the response was complete;
 * 500 if the response was cut off because the service failed.
 */
function finalStatus(response: HttpResponse): number {
  // A protocol switch is logged as a success, although the response never finishes.
  if (response.writableFinished || response.statusCode === 101) return response.statusCode;
  if (response.headersSent && response.locals.failure !== undefined) return 500;
  return 499;
}

/** Returns the verified caller. Call this function only in routes with the guard `bearer`. */
export function callerOf({ locals }: Pick<HttpResponse, 'locals'>): Caller {
  if (!locals.caller) throw new Error('the route has no bearer guard');
  return locals.caller;
}

/** Returns the tenant of the call. Call this function only in routes with the guard `tenant`. */
export function tenantOf(response: Response): Tenant {
  if (!response.locals.tenant) throw new Error('the route has no tenant guard');
  return response.locals.tenant;
}

/**
 * Returns whose share of a limited resource a request uses: of the person or account, or of the client network if the
 * request has no credentials.
 */
export function requesterOf({ locals }: HttpResponse): Requester {
  const { tenant, signedIn, caller, forwarded } = locals;
  return {
    tenant: tenant?.id ?? signedIn?.tenantId ?? caller?.tenant?.id ?? '',
    member: signedIn?.subject ?? caller?.subject ?? networkOf(forwarded.address),
  };
}

/** Sends a body that other responses may use too. Clients that do not read it are counted once for all of them. */
export function sendShared(response: Response, type: string, body: Buffer): void {
  response.locals.sharedBody = body;
  response.type(type).send(body);
}

/**
 * Returns the parsed query. For a request without a query, which is the usual case, this function does not call
 * Express' getter, which parses the query at each access.
 */
export function queryOf(request: Request): Request['query'] {
  return request.url.includes('?') ? request.query : noQuery;
}

const noQuery: Request['query'] = Object.freeze({});
