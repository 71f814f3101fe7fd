// Responds to requests whose path has routes, but none for their method.
import type { RequestHandler } from 'express';
import { Problem } from './problem.ts';

interface RouteMethod {
  path: string;
  method: string;
  /** True if the route does not respond to HEAD. */
  getHasEffects?: true;
}

/** Returns the value of the header `Allow` for each path. */
export function allowedByPath(routes: readonly RouteMethod[]): Map<string, string> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of routes) methods.set(path, [...(methods.get(path) ?? []), method.toUpperCase()]);
  const withHead = new Set(
    routes.filter(({ method, getHasEffects }) => method === 'get' && !getHasEffects).map(({ path }) => path),
  );
  return new Map(
    [...methods].map(([path, own]) => [path, [...own, ...(withHead.has(path) ? ['HEAD'] : []), 'OPTIONS'].join(', ')]),
  );
}

/** Responds to OPTIONS, and with 405 to other methods. A 405 lists the allowed methods (RFC 9110 section 15.5.6). */
export function refuseMethod(path: string, allowed: ReadonlyMap<string, string>): RequestHandler {
  const allow = allowed.get(path) ?? '';
  return (request, response) => {
    if (request.method === 'OPTIONS') {
      response.set('Allow', allow).status(204).end();
      return;
    }
    throw new Problem('method-not-allowed', `This resource supports ${allow}.`, { headers: { Allow: allow } });
  };
}
