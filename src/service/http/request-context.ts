// Begins and ends every request, of Express and of plain listeners: its id, its trace, the headers that every response
// carries, its log line and its duration in the histogram. It logs the route pattern, never the path or query, which hold
// ids and codes.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import type { Caller, Tenant } from '../auth/identity.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { createForwarded, type Forwarded } from './forwarded.ts';
import { STATUS_CODES } from './node-http.ts';
import type { TrustedProxies } from './trusted-proxies.ts';

declare global {
  namespace Express {
    interface Locals {
      requestId: string;
      /** Headers to add to the head, by lower-case name. See `addHeader`. */
      pendingHeaders?: Record<string, string>;
      /** `performance.now()` when the request came. */
      started: number;
      forwarded: Forwarded;
      /** The pattern of the matched route. */
      route?: string;
      traceparent?: string;
      caller?: Caller;
      tenant?: Tenant;
      /** Tenant URN and subject of the caller's session. */
      signedIn?: { tenantId: string; subject: string };
      /** `performance.now()` when a response began that may last for hours: the measured duration ends there. */
      began?: number;
      /** The error behind a 5xx response. */
      failure?: unknown;
    }
  }
}

/** A response of Express or of a plain listener. */
export type HttpResponse = ServerResponse & { locals: Express.Locals };

// W3C Trace Context section 3.2.2: version 00; ids of zeros only are invalid.
const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const requestIdPattern = /^[\w.-]{1,64}$/;

export interface RequestRecorders {
  log: Logger;
  metrics: Metrics;
  trustedProxies: TrustedProxies;
}

/** Call the result first for each request. It sets `locals`; the headers of every response are pending. */
export function beginRequest({ log, metrics, trustedProxies }: RequestRecorders) {
  const forwardedOf = createForwarded(trustedProxies);
  // One function for all responses: a closure for each request costs memory.
  function finish(this: ServerResponse): void {
    finishRequest(this as HttpResponse, log, metrics);
  }
  return (request: IncomingMessage, plainResponse: ServerResponse): HttpResponse => {
    const givenId = request.headers['x-request-id'];
    const requestId = typeof givenId === 'string' && requestIdPattern.test(givenId) ? givenId : randomUUID();
    const locals: Express.Locals = { requestId, started: performance.now(), forwarded: forwardedOf(request) };
    const { traceparent } = request.headers;
    if (typeof traceparent === 'string' && traceparentPattern.test(traceparent)) locals.traceparent = traceparent;
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

/**
 * Adds a header to a response of Express or of a plain listener. A proxied response passes all its headers to `writeHead`:
 * after one `setHeader`, Node would set each of them separately, which takes a twentieth of the request.
 */
export function addHeader(response: HttpResponse, name: Lowercase<string>, value: string): void {
  const { pendingHeaders } = response.locals;
  if (pendingHeaders) pendingHeaders[name] = value;
  else response.setHeader(name, value);
}

/**
 * Sends the head of a response with `headers` (by lower-case name) and the pending headers that they do not replace. Throws
 * an Error for a header that Node does not send.
 */
export function writeHead(response: HttpResponse, status: number, headers: Record<string, string | string[]>): void {
  const { pendingHeaders = {} } = response.locals;
  for (const name of Object.keys(pendingHeaders)) headers[name] ??= pendingHeaders[name] as string;
  response.writeHead(status, headers);
}

/** Sets the pending headers. Call it before other code sets headers one by one. */
export function setPendingHeaders(response: HttpResponse): void {
  const { pendingHeaders = {} } = response.locals;
  delete response.locals.pendingHeaders;
  for (const name of Object.keys(pendingHeaders)) response.setHeader(name, pendingHeaders[name] as string);
}

/** A child logger for each request, which would write these members into other lines, costs more than the line. */
function finishRequest(response: HttpResponse, log: Logger, metrics: Metrics): void {
  const { locals } = response;
  const { method = '' } = response.req;
  const { requestId, traceparent, signedIn, failure, route = 'unmatched' } = locals;
  const milliseconds = (locals.began ?? performance.now()) - locals.started;
  const status = finalStatus(response);
  metrics.requestDuration.observe({ method, route, status: statusLabel(status) }, milliseconds / 1000);
  const ms = Math.round(milliseconds * 10) / 10;
  const tenant = signedIn?.tenantId ?? locals.tenant?.id;
  const caller = signedIn?.subject ?? locals.caller?.subject;
  const line = { requestId, method, route, status, ms, traceparent, tenant, caller };
  if (failure === undefined) log.info(line, 'request');
  else log.error({ ...line, err: failure }, 'request failed');
}

/**
 * 499, as nginx writes it, for a client that closed the connection before its response was complete; 500 for a response
 * that broke off because the service failed.
 */
function finalStatus(response: HttpResponse): number {
  // A protocol switch is a response without an end.
  if (response.writableFinished || response.statusCode === 101) return response.statusCode;
  if (response.headersSent && response.locals.failure !== undefined) return 500;
  return 499;
}

/**
 * A status without a name in HTTP is counted under its class, `5xx`: an upstream could invent hundreds, and each would
 * become a histogram that lives as long as the process.
 */
function statusLabel(status: number): number | string {
  return STATUS_CODES[status] !== undefined || status === 499 ? status : `${Math.trunc(status / 100)}xx`;
}

/** The verified caller. Only for routes behind `bearer`. */
export function callerOf(response: Response): Caller {
  if (!response.locals.caller) throw new Error('the route has no bearer guard');
  return response.locals.caller;
}

/** The tenant of the call. Only for routes behind `callTenant`. */
export function tenantOf(response: Response): Tenant {
  if (!response.locals.tenant) throw new Error('the route has no tenant guard');
  return response.locals.tenant;
}

/** Express parses the query each time that it is asked for, and nearly no request has one. */
export function queryOf(request: Request): Request['query'] {
  return request.url.includes('?') ? request.query : noQuery;
}

const noQuery: Request['query'] = Object.freeze({});
