// Lets scripts of other origins call the routes that take a bearer token (Fetch standard, CORS protocol).
import cors from 'cors';
import type { RequestHandler } from 'express';

/** Response headers that scripts of other origins may read (Fetch standard, section 3.2.3). */
const exposedHeaders = [
  'ETag',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'WWW-Authenticate',
  'X-Request-Id',
];

/**
 * Allows calls from pages of `origins`, but never with cookies: the pages must add a bearer token. `*` allows every
 * origin.
 */
export function allowOrigins(origins: string[]): RequestHandler {
  if (origins.length === 0) return (_request, _response, next) => next();
  const anyOrigin = origins.includes('*');
  const exposed = exposedHeaders.join(', ');
  const preflight = cors({ origin: anyOrigin ? '*' : origins, maxAge: 600 });
  return (request, response, next) => {
    const { origin } = request.headers;
    // OPTIONS without Access-Control-Request-Method is not a preflight (Fetch standard, section 3.2.2).
    if (request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined)
      return preflight(request, response, next);
    if (!anyOrigin) response.setHeader('Vary', 'Origin');
    if (anyOrigin) response.setHeader('Access-Control-Allow-Origin', '*');
    else if (origin !== undefined && origins.includes(origin))
      response.setHeader('Access-Control-Allow-Origin', origin);
    if (origin !== undefined) response.setHeader('Access-Control-Expose-Headers', exposed);
    next();
  };
}
