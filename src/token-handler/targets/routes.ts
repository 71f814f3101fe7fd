// Target requests: whatever a frontend sends to /targets/<id>/… goes to the upstream of that target with the access token
// of the session, any method, any body, WebSocket handshakes included. TRACE is refused, for its answer would show the
// token (RFC 9110 section 9.3.8).
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { type Guard, type Route, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { upgradeOf } from '../../service/http/upgrades.ts';
import type { ClientCatalog } from '../clients/catalog.ts';
import type { Client } from '../clients/client.ts';
import { sessionOf } from '../sessions/guards.ts';
import type { LiveSession } from '../sessions/live-session.ts';
import { checkRequestLength } from './framing.ts';
import { isHarmless, parseTargetAddress, upstreamPath } from './path.ts';
import type { Relay } from './relay-options.ts';
import { type AddedHeaders, type HeaderList, newTraceparent } from './request-headers.ts';
import type { Upstream, Upstreams } from './upstreams.ts';

export interface TargetRouteParts {
  /** Who may call, and how often. They leave the session in `locals`. */
  guards: Guard[];
  catalog: Pick<ClientCatalog, 'find'>;
  upstreams: Upstreams;
  relay: Relay;
  requestHeaders(request: IncomingMessage, added: AddedHeaders): HeaderList;
}

const targetsPath = '/token-handler/v1/targets/';
const unversionedPath = '/token-handler/targets/';

export function targetRoutes(parts: TargetRouteParts): Route[] {
  return [
    route({
      method: 'all',
      path: `${targetsPath}:targetId/*path`,
      summary: 'Relays a request to a target with the access token of the session',
      description:
        'Any method but TRACE; query and bodies as they are. WebSocket handshakes and event streams are relayed too, and end with the session.',
      guards: parts.guards,
      headers: { 'X-XSRF-TOKEN': 'Repeats the cookie XSRF-TOKEN; needed on every method but GET' },
      answers: {
        200: { description: 'The answer of the upstream, with any status, without cookies and hop-by-hop headers' },
        400: { description: 'The path has dot segments, encoded separators or the like (`invalid-path`)' },
        401: { description: 'No session, or one of another tenant' },
        403: {
          description:
            'CSRF protection refuses, the browser asks for a service worker, or the host is not allowed (`upstream-not-allowed`)',
        },
        404: { description: 'The client that signed the session in has no such target' },
        405: { description: 'TRACE' },
        408: { description: 'The body arrives more slowly than BODY_MIN_RATE (`request-timeout`)' },
        413: { description: 'The Content-Length is beyond 2^53' },
        429: { description: 'Too many requests, or open streams, of the session or the address' },
        502: { description: 'The upstream is in no directory (`upstream-unresolved`) or cannot be reached' },
        503: {
          description:
            'The session store cannot be reached, or the connections of the person, the tenant or the upstream are in use (`busy`)',
        },
        504: { description: 'The upstream did not begin to answer in time' },
      },
      raw: true,
      handle: (_input, request, response) => handle(parts, request, response),
    }),
  ];
}

async function handle(parts: TargetRouteParts, request: Request, response: Response): Promise<void> {
  if (request.method === 'TRACE') {
    const headers = { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' };
    throw new Problem('method-not-allowed', 'Targets do not take TRACE.', { headers });
  }
  // A worker of a target's scripts would see, and could answer, the requests of the whole frontend.
  if (request.headers['service-worker'] !== undefined || request.headers['sec-fetch-dest'] === 'serviceworker')
    throw new Problem('forbidden', 'A service worker cannot come from a target.');
  checkRequestLength(request);
  const session = sessionOf(response);
  const found = findUpstream(parts, request, session);
  const { origin, path } = found instanceof Promise ? await found : found;
  const token = session.accessToken();
  const accessToken = typeof token === 'string' ? token : await token;
  // The client may have gone while there was something to wait for.
  if (response.destroyed) return;
  const headers = parts.requestHeaders(request, { ...describeRequest(request, response), accessToken });
  const isUpgrade = upgradeOf(request) !== undefined;
  const isStream = isUpgrade || request.headers.accept?.includes('text/event-stream') === true;
  await parts.relay(request, response, { origin, path, headers, isUpgrade, isStream, session });
}

interface Found {
  origin: string;
  path: string;
}

/** In the order of the specification's statuses: unknown target 404, path 400, host 403, unresolved 502. */
function findUpstream(parts: TargetRouteParts, request: Request, { session }: LiveSession): Found | Promise<Found> {
  const address = parseTargetAddress(request.url, prefixOf(request.url));
  if (!address) throw invalidPath();
  const lead = ({ origin, basePath }: Upstream) => {
    const path = upstreamPath(basePath, address);
    if (path === undefined) throw invalidPath();
    return { origin, path };
  };
  const choose = (client: Client | undefined) => {
    const target = client?.targets.find(({ id }) => id === address.targetId);
    if (!target) throw new Problem('not-found', 'The client has no such target.');
    if (!isHarmless(address.path)) throw invalidPath();
    const upstream = parts.upstreams.find(target.upstream);
    return upstream instanceof Promise ? upstream.then(lead) : lead(upstream);
  };
  const client = parts.catalog.find({ id: session.tenantId }, session.clientId);
  return client instanceof Promise ? client.then(choose) : choose(client);
}

/** The unversioned path serves frontends whose proxy does not rewrite. */
function prefixOf(url: string): string {
  return url.startsWith(targetsPath) ? targetsPath : unversionedPath;
}

export function isTargetRequest({ url = '' }: IncomingMessage): boolean {
  return url.startsWith(targetsPath) || url.startsWith(unversionedPath);
}

function describeRequest(request: Request, { locals }: Response) {
  const { traceparent, clientAddress = '' } = locals;
  const { headers } = request;
  // Most requests that come directly need no look into lists of proxies.
  const host = headers['x-forwarded-host'] === undefined ? headers.host : request.host;
  const isDirect = headers['x-forwarded-proto'] === undefined && !('encrypted' in request.socket);
  return {
    forwarded: { address: clientAddress, host, protocol: isDirect ? 'http' : request.protocol },
    traceparent: traceparent ?? newTraceparent(locals.requestId),
    isNewTrace: traceparent === undefined,
  };
}

function invalidPath(): Problem {
  return new Problem('invalid-path', 'The path has dot segments, encoded separators or other characters of no path.');
}
