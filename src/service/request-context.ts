// The start and the end of every request: its id, its trace, a few headers that every answer carries, its log line and
// its place in the duration histogram. It logs the route pattern, never the path or query: they hold ids and codes.
import { randomUUID } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import type { Caller, Tenant } from './identity.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

declare global {
  namespace Express {
    interface Locals {
      requestId: string;
      log: Logger;
      /** The pattern of the matched route. */
      route?: string;
      traceparent?: string;
      caller?: Caller;
      tenant?: Tenant;
      /** What a 5xx answer failed with. */
      failure?: unknown;
    }
  }
}

// W3C Trace Context section 3.2.
const traceparentPattern = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
const requestIdPattern = /^[\w.-]{1,64}$/;

export function beginRequest({ log, metrics }: { log: Logger; metrics: Metrics }): RequestHandler {
  return (request, response, next) => {
    const started = performance.now();
    const { locals } = response;
    const givenId = request.headers['x-request-id'];
    locals.requestId = typeof givenId === 'string' && requestIdPattern.test(givenId) ? givenId : randomUUID();
    const trace = request.headers.traceparent;
    if (typeof trace === 'string' && traceparentPattern.test(trace)) locals.traceparent = trace;
    locals.log = log;
    response.setHeader('X-Request-Id', locals.requestId);
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('Cache-Control', 'no-store');
    response.once('close', () => finishRequest(request.method, response, started, metrics));
    next();
  };
}

function finishRequest(method: string, response: Response, started: number, metrics: Metrics): void {
  const { locals } = response;
  const milliseconds = performance.now() - started;
  // A client that goes away before the answer is complete: 499, as nginx writes it.
  const status = response.writableFinished ? response.statusCode : 499;
  const route = locals.route ?? 'unmatched';
  metrics.requestDuration.observe({ method, route, status }, milliseconds / 1000);
  const line = {
    requestId: locals.requestId,
    method,
    route,
    status,
    ms: Math.round(milliseconds * 10) / 10,
    ...(locals.tenant && { tenant: locals.tenant.id }),
    ...(locals.caller && { caller: locals.caller.subject }),
    ...(locals.traceparent && { traceparent: locals.traceparent }),
    ...(locals.failure !== undefined && { err: locals.failure }),
  };
  if (locals.failure === undefined) locals.log.info(line, 'request');
  else locals.log.error(line, 'request failed');
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
