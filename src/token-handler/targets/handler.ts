// Handles requests for /token-handler/(v1/)targets/<id>/…: forwards them to the upstream of the target, with the
// session's access token. Supports every method except TRACE, every body, and WebSocket handshakes. The steps before
// forwarding run in the order that docs/specification-token-handler.md defines. A step that rejects the request
// throws a Problem.
import type { IncomingMessage } from 'node:http';
import type { PlainGuard, SyncGuard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { upgradeOf } from '../../service/http/upgrades.ts';
import { callSpan, responseEnd } from '../../service/tracing/request-span.ts';
import type { Span } from '../../service/tracing/span.ts';
import { failureOf } from '../../service/tracing/tracing.ts';
import type { ClientCatalog } from '../clients/catalog.ts';
import type { Target } from '../clients/client.ts';
import { Rejection } from '../rejection.ts';
import { sessionOf } from '../sessions/guards.ts';
import type { Session } from '../sessions/session.ts';
import { isHarmless, parseTargetAddress, type TargetAddress, upstreamPath } from './path.ts';
import type { Forward } from './proxy-options.ts';
import { failedOutcome, outcomeOf } from './proxy-outcome.ts';
import type { OutcomeCounters } from './proxy-outcome-metrics.ts';
import type { AddedHeaders, HeaderList } from './request-headers.ts';
import type { TargetMetrics } from './target-metrics.ts';
import type { Upstream, Upstreams } from './upstreams.ts';

export interface TargetGuards {
  notEmbedded: SyncGuard;
  addressLimit: SyncGuard;
  liveSession: PlainGuard;
  sessionTenant: PlainGuard;
  csrf: SyncGuard;
  sessionLimit: SyncGuard;
}

export interface TargetHandlerOptions {
  guards: TargetGuards;
  catalog: Pick<ClientCatalog, 'find'>;
  upstreams: Upstreams;
  requestHeaders(request: IncomingMessage, added: AddedHeaders): HeaderList;
  forward: Forward;
  metrics: Pick<TargetMetrics, 'outcomes' | 'rejected'>;
}

export type TargetHandler = (request: IncomingMessage, response: HttpResponse) => Promise<void>;

export function createTargetHandler(options: TargetHandlerOptions): TargetHandler {
  const { forward, metrics } = options;
  const prepare = createSteps(options);
  return async (request, response) => {
    let isForwarded = false;
    try {
      const prepared = await prepare(request, response);
      // Does not forward the request if the client has closed the connection during one of the steps.
      if (response.destroyed) return countersOf(metrics, response).aborted.inc();
      isForwarded = true;
      const { span, ...outgoing } = prepared;
      await (span ? forwardIn(span, forward, request, response, outgoing) : forward(request, response, outgoing));
      countersOf(metrics, response)[outcomeOf(response)].inc();
    } catch (error) {
      countersOf(metrics, response)[failedOutcome(error, isForwarded)].inc();
      if (!isForwarded && error instanceof Rejection) metrics.rejected.inc({ reason: error.reason });
      throw error;
    }
  };
}

/** Returns a function that runs all steps before forwarding. */
function createSteps({ guards, catalog, upstreams, requestHeaders }: TargetHandlerOptions) {
  return async (request: IncomingMessage, response: HttpResponse) => {
    guards.notEmbedded.check(request, response);
    guards.addressLimit.check(request, response);
    await guards.liveSession.check(request, response);
    await guards.sessionTenant.check(request, response);
    guards.csrf.check(request, response);
    guards.sessionLimit.check(request, response);
    checkMethod(request);
    checkNoServiceWorker(request);
    checkRequestLength(request);
    const live = sessionOf(response);
    const address = targetAddressOf(request);
    const target = await findTarget(catalog, live.session, address);
    response.locals.targetId = target.id;
    checkPath(address);
    const upstream = await upstreams.find(target.upstream, live.session.tenantId);
    const path = pathAt(upstream, address);
    const accessToken = await live.accessToken();
    const { method = 'GET' } = request;
    const span = response.destroyed ? undefined : response.locals.scope.span?.child(callSpan('upstream', method));
    const headers = requestHeaders(request, addedHeaders(response, accessToken, span));
    return { method, origin: upstream.origin, path, headers, ...kindOf(request), session: live, span };
  };
}

function countersOf({ outcomes }: Pick<TargetMetrics, 'outcomes'>, { locals }: HttpResponse): OutcomeCounters {
  return locals.targetId === undefined ? outcomes.ofNoTarget : outcomes.of(locals.targetId);
}

/** Rejects TRACE, because the response to TRACE would contain the access token (RFC 9110 section 9.3.8). */
export function checkMethod({ method }: Pick<IncomingMessage, 'method'>): void {
  if (method !== 'TRACE') return;
  const headers = { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' };
  throw new Rejection('method', 'method-not-allowed', 'Targets do not support TRACE.', { headers });
}

/** Rejects requests for service workers, because a service worker could intercept requests of the frontend. */
export function checkNoServiceWorker(request: Pick<IncomingMessage, 'headers'>): void {
  if (isForServiceWorker(request))
    throw new Rejection('service-worker', 'forbidden', 'A service worker cannot come from a target.');
}

function isForServiceWorker({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['service-worker'] !== undefined || headers['sec-fetch-dest'] === 'serviceworker';
}

/**
 * Throws Problem `body-too-large` for a Content-Length of 2^53 or more, because undici would forward a number that
 * differs from the client's (RFC 9110 section 8.6).
 */
function checkRequestLength({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const length = headers['content-length'];
  if (length !== undefined && length.length > 15 && !Number.isSafeInteger(Number(length)))
    throw new Problem('body-too-large', 'The Content-Length is larger than any body that can be forwarded.');
}

/** Returns the target's address in the request line. Throws Problem `invalid-path` if it does not name a target. */
export function targetAddressOf({ url = '' }: Pick<IncomingMessage, 'url'>): TargetAddress {
  const address = parseTargetAddress(url);
  if (!address) throw invalidPath();
  return address;
}

/** Returns the target. Throws Problem `not-found` if the session's client has no target with this id. */
export async function findTarget(
  catalog: Pick<ClientCatalog, 'find'>,
  session: Pick<Session, 'tenantId' | 'clientId'>,
  { targetId }: Pick<TargetAddress, 'targetId'>,
): Promise<Target> {
  const client = await catalog.find({ id: session.tenantId }, session.clientId);
  const target = client?.targets.find(({ id }) => id === targetId);
  if (!target) throw new Rejection('target', 'not-found', 'The client has no such target.');
  return target;
}

/** Throws Problem `invalid-path` if the path must not be forwarded. Runs before the directory service is called. */
export function checkPath({ path }: Pick<TargetAddress, 'path'>): void {
  if (!isHarmless(path)) throw invalidPath();
}

/** Returns the path and query at the upstream. Throws Problem `invalid-path` if the path could leave the base path. */
export function pathAt({ basePath }: Pick<Upstream, 'basePath'>, address: TargetAddress): string {
  const path = upstreamPath(basePath, address);
  if (path === undefined) throw invalidPath();
  return path;
}

function addedHeaders({ locals }: HttpResponse, accessToken: string, span: Span | undefined): AddedHeaders {
  const { forwarded, requestId, scope, traceparent } = locals;
  return {
    accessToken,
    forwarded,
    requestId,
    traceparent: (span ?? scope).traceparent,
    isNewTrace: traceparent === undefined,
  };
}

/** Forwards the request in a span. Ends the span when forwarding has ended or failed. */
async function forwardIn(span: Span, forward: Forward, ...[request, response, outgoing]: Parameters<Forward>) {
  try {
    await forward(request, response, outgoing);
    span.end(responseEnd(response.statusCode));
  } catch (error) {
    span.end({ error: failureOf(error) });
    throw error;
  }
}

function kindOf(request: IncomingMessage): { isUpgrade: boolean; isStream: boolean } {
  const isUpgrade = upgradeOf(request) !== undefined;
  return { isUpgrade, isStream: isUpgrade || request.headers.accept?.includes('text/event-stream') === true };
}

function invalidPath(): Rejection {
  return new Rejection(
    'path',
    'invalid-path',
    'The path has dot segments, encoded separators, or characters that a path must not contain.',
  );
}
