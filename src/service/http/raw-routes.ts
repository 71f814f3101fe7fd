// Hands requests to raw routes before the app's router is entered, which costs a tenth of a relayed request. What they fail
// with is answered as anything else is.
import type { ErrorRequestHandler, Express, Request, Response } from 'express';
import { setOwnHeaders } from './request-context.ts';
import { checkFraming } from './request-framing.ts';

export interface RawRoute {
  /** What its addresses begin with, as they are written. */
  prefix: string;
  /** Through its guards. Throws what a request is refused with. */
  serve(request: Request, response: Response): void | Promise<void>;
}

type Handle = (request: Request, response: Response, done?: (error?: unknown) => void) => void;

/** `begin` is called for each request of theirs, `fail` with what `serve` has thrown. */
export function serveRawRoutes(
  app: Express,
  routes: RawRoute[],
  { begin, fail }: { begin(request: Request, response: Response): void; fail: ErrorRequestHandler },
): void {
  if (routes.length === 0) return;
  // The way that Express itself takes into an app, mounted ones included.
  const entered = app as unknown as { handle: Handle };
  const handle = entered.handle.bind(app);
  entered.handle = (request, response, done) => {
    const route = routeOf(routes, request.url);
    if (!route) return handle(request, response, done);
    adopt(app, request, response);
    begin(request, response);
    const failed = (error: unknown) => {
      setOwnHeaders(response);
      fail(error, request, response, () => undefined);
    };
    try {
      checkFraming(request);
      route.serve(request, response)?.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

function routeOf(routes: RawRoute[], url: string): RawRoute | undefined {
  // The absolute form of a request line (RFC 9112 section 3.2.2) is the route's to refuse.
  const path = url.startsWith('/') ? url : url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '');
  return routes.find(({ prefix }) => path.startsWith(prefix));
}

/** Express' own have no prototype, and therefore, to V8, no fast properties. */
class RawLocals {
  requestId = '';
  started = 0;
}

/** As Express does at an app's beginning. */
function adopt(app: Express, request: Request, response: Response): void {
  request.res = response;
  Object.setPrototypeOf(request, app.request);
  Object.setPrototypeOf(response, app.response);
  response.locals = new RawLocals();
}
