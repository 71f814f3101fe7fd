// The start and the end of every request: its id, its trace, a few headers that every answer carries, its log line and
// its place in the duration histogram. It logs the route pattern, never the path or query: they hold ids and codes.
import { randomUUID } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Caller, Tenant } from '../auth/identity.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { STATUS_CODES } from './node-http.ts';
import { createRequestLog, type RequestLine } from './request-line.ts';

declare global {
  namespace Express {
    interface Locals {
      requestId: string;
      /** `performance.now()` when the request came. */
      started: number;
      /** Of ours, by name, for an answer of a raw route whose head is written at once. See `ownHeaders`. */
      ownHeaders?: Record<string, string>;
      /** The pattern of the matched route. */
      route?: string;
      traceparent?: string;
      caller?: Caller;
      tenant?: Tenant;
      /** Who calls, where a session says it: tenant URN and subject. */
      signedIn?: { tenantId: string; subject: string };
      /** `performance.now()` when an answer began that may last for hours: the duration that counts ends there. */
      began?: number;
      /** What a 5xx answer failed with. */
      failure?: unknown;
    }
  }
}

// W3C Trace Context section 3.2.2: version 00; ids of zeros only are invalid.
const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const requestIdPattern = /^[\w.-]{1,64}$/;

interface Recorders {
  log: Logger;
  metrics: Metrics;
}

export function beginRequest({ log, metrics }: Recorders) {
  const write = createRequestLog(log);
  // One for all responses: on the path of every request, a closure for each costs.
  function finish(this: Response): void {
    finishRequest(this, write, { log, metrics });
  }
  return (request: Request, response: Response, isRaw: boolean): void => {
    const { locals } = response;
    locals.started = performance.now();
    const givenId = request.headers['x-request-id'];
    const requestId = typeof givenId === 'string' && requestIdPattern.test(givenId) ? givenId : randomUUID();
    const traceparent = request.headers.traceparent;
    locals.requestId = requestId;
    if (typeof traceparent === 'string' && traceparentPattern.test(traceparent)) locals.traceparent = traceparent;
    locals.ownHeaders = {
      'X-Request-Id': requestId,
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': 'no-store',
    };
    if (!isRaw) setOwnHeaders(response);
    response.on('close', finish);
  };
}

/**
 * What of ours has to go into the head of a raw route's answer, which sets no headers one by one: merging those with an
 * upstream's costs more than all else in a head. Empty where they are set already.
 */
export function ownHeaders({ locals }: Response): Readonly<Record<string, string>> {
  return locals.ownHeaders ?? none;
}

const none = {};

/** Adds one to those, or sets it where they are set already. */
export function addOwnHeader(response: Response, name: string, value: string): void {
  const { ownHeaders: own } = response.locals;
  if (own) own[name] = value;
  else response.setHeader(name, value);
}

/** For an answer that is made in Express' way. */
export function setOwnHeaders(response: Response): void {
  const { locals } = response;
  const own = locals.ownHeaders;
  if (!own || response.headersSent) return;
  delete locals.ownHeaders;
  for (const name of Object.keys(own)) response.setHeader(name, own[name] as string);
}

/** A logger of its own for each request, which would write these members into other lines, costs more than the line. */
function finishRequest(response: Response, write: (line: RequestLine) => void, { log, metrics }: Recorders): void {
  const { locals } = response;
  const { method } = response.req;
  const { requestId, traceparent, signedIn, failure, route = 'unmatched' } = locals;
  const milliseconds = (locals.began ?? performance.now()) - locals.started;
  const status = finalStatus(response);
  metrics.requestDuration.observe({ method, route, status: statusLabel(status) }, milliseconds / 1000);
  const ms = Math.round(milliseconds * 10) / 10;
  const tenant = signedIn?.tenantId ?? locals.tenant?.id;
  const caller = signedIn?.subject ?? locals.caller?.subject;
  const line = { requestId, method, route, status, ms, traceparent, tenant, caller };
  if (failure === undefined) write(line);
  else log.error({ ...line, err: failure }, 'request failed');
}

/**
 * 499, as nginx writes it, for a client that went away before its answer was complete; 500 for an answer that broke off
 * because the service failed in the middle of it.
 */
function finalStatus(response: Response): number {
  // A switch of protocols is an answer without an end.
  if (response.writableFinished || response.statusCode === 101) return response.statusCode;
  if (response.headersSent && response.locals.failure !== undefined) return 500;
  return 499;
}

/**
 * A status that HTTP has no name for counts under its class, `5xx`: an upstream could make up hundreds, and each would be a
 * histogram of its own, for as long as the process lives.
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
