// Defines the route of proxied requests for the API documentation: address, guards and responses. The module
// `handler.ts` serves the route without Express, and runs these guards in this order.
import { documentedRoute, type Route } from '../../service/http/http-app.ts';
import type { TargetGuards } from './handler.ts';
import { targetPattern } from './path.ts';

export function targetRoute({
  notEmbedded,
  addressLimit,
  liveSession,
  sessionTenant,
  csrf,
  sessionLimit,
}: TargetGuards): Route {
  return documentedRoute({
    method: 'all',
    path: targetPattern,
    audit: { unaudited: 'The upstream knows what the request changes.' },
    operationId: 'proxy',
    guards: [notEmbedded, addressLimit, liveSession, sessionTenant, csrf, sessionLimit],
    summary: 'Proxies a request to a target with the access token of the session',
    description:
      'Any method but TRACE; query and bodies are forwarded unchanged. WebSocket handshakes and event streams are proxied too, and end with the session.',
    responses: {
      200: { description: 'The response of the upstream, with any status, without cookies and hop-by-hop headers' },
      400: { description: 'The path has dot segments, encoded separators or the like (`invalid-path`)' },
      401: { description: 'No session, or one of another tenant' },
      403: {
        description:
          'The CSRF check failed, a page of another site loads the target, the browser asks for a service worker, or the host is not allowed (`upstream-not-allowed`)',
      },
      404: { description: 'The client that signed the session in has no such target' },
      405: { description: 'TRACE' },
      408: { description: 'The body arrives more slowly than BODY_MIN_RATE (`request-timeout`)' },
      413: { description: 'The Content-Length is beyond 2^53' },
      429: { description: 'Too many requests, or open streams, of the session or the address' },
      502: {
        description: 'The directory has no entry for the upstream (`upstream-unresolved`) or it cannot be reached',
      },
      503: {
        description:
          'The session store cannot be reached, or the connections of the person, the tenant or the upstream are in use (`busy`)',
      },
      504: { description: 'The upstream did not begin to respond in time' },
    },
  });
}
