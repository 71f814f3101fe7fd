// Builds an Express app from a route table. A route declares its guards, inputs and responses. Only routes of the table
// are reachable, and no route runs before its guards have passed.
import type { IncomingMessage } from 'node:http';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { z } from 'zod';
import { beginAudit, type RouteAudit, reachAudit, requireKnownActions } from '../operations/request-audit.ts';
import { runInScope } from '../operations/request-scope.ts';
import { allowedByPath, refuseMethod } from './allowed-methods.ts';
import { bodyProblem, mayBeLarge } from './body-bytes.ts';
import { createTrust } from './client-address.ts';
import { allowOrigins } from './cross-origin.ts';
import { issueMessage } from './issue-message.ts';
import { type JsonBody, type JsonBodyReader, noBody } from './json-body.ts';
import { createLargeBodies, type LargeBodies } from './large-bodies.ts';
import { fieldErrors, invalidRequest, Problem } from './problem.ts';
import { type PresentProblem, problemHandler } from './problem-handler.ts';
import {
  beginRequest,
  type HttpResponse,
  noteIds,
  queryOf,
  type RequestRecorders,
  setPendingHeaders,
} from './request-context.ts';
import { checkFraming } from './request-framing.ts';
import type { RequestHeaders } from './request-header.ts';
import { createBodyReaders } from './text-body.ts';

export type Credential = 'bearer' | 'session' | 'form' | 'none';

/**
 * A check that each request to a route must pass. It throws a Problem to reject a request, and may store its findings
 * in `response.locals`.
 */
export interface Guard {
  name: string;
  /** Credentials that this guard accepts; `none` admits calls without credentials. See `isGuarded`. */
  admits?: readonly Credential[];
  /** Request headers that this guard reads if the method is not GET. */
  headers?: RequestHeaders;
  check(request: Request, response: Response): void | Promise<void>;
}

/** A guard that does not use Express, so that a plain listener (`plain-listener.ts`) can run it too. */
export interface PlainGuard extends Guard {
  check(request: IncomingMessage, response: HttpResponse): void | Promise<void>;
}

/** A guard that decides synchronously. Its type excludes promises, because callers do not await the result. */
export interface SyncGuard extends PlainGuard {
  check(request: IncomingMessage, response: HttpResponse): undefined;
}

/** Declares that anyone may call a route. */
export const anonymous: Guard = { name: 'anonymous', admits: ['none'], check: () => undefined };

/** True if the route has a guard that admits callers. */
export function isGuarded(item: { guards: readonly Guard[] }): boolean {
  return item.guards.some(({ admits = [] }) => admits.length > 0);
}

export interface ResponseDescription {
  description: string;
  schema?: z.ZodType;
  /**
   * Media type of a response that is text. If there is a `schema` too, a client can ask for this type instead of JSON,
   * for example for `text/csv`. A failure with this type has no problem details.
   */
  textType?: string;
  /** Descriptions of the response headers, keyed by name. */
  headers?: Record<string, string>;
}

type Schema = z.ZodType | undefined;
type Output<S extends Schema> = S extends z.ZodType ? z.output<S> : undefined;

export interface RouteInput<P extends Schema, Q extends Schema, B extends Schema> {
  params: Output<P>;
  query: Output<Q>;
  body: Output<B>;
  /** Returns the JSON text of a member of the body, as it was sent. */
  bodyText: JsonBody['textOf'];
}

export interface RouteDefinition<P extends Schema, Q extends Schema, B extends Schema> {
  /** Use `all` only for routes that a plain listener serves. */
  method: 'get' | 'post' | 'put' | 'patch' | 'delete' | 'all';
  /** Pattern of the path in the syntax of Express: `/form/v1/forms/:formId`. */
  path: string;
  summary: string;
  /** Name of the call in generated clients. By default, it is derived from method and path (`operation-id.ts`). */
  operationId?: string;
  description?: string;
  tag?: string;
  guards: Guard[];
  params?: P;
  query?: Q;
  body?: B;
  /** Media type of the body if it is text and not JSON, such as `text/csv`. `body` then validates a string. */
  bodyType?: string;
  /** Documents a body of the type `bodyType` that a guard or the handler reads itself. Use it instead of `body`. */
  streamedBody?: z.ZodType;
  /** Maximum size of the request body in bytes, if it is smaller than the app's limit. */
  bodyLimit?: number;
  /** True for a GET route that changes something. The route responds to HEAD with 405 (RFC 9110 section 9.2.1). */
  getHasEffects?: true;
  headers?: RequestHeaders;
  responses: Record<number, ResponseDescription>;
  /**
   * The audit event of a request. A route that changes something must either have an event or state why it needs none.
   */
  audit?: RouteAudit<RouteInput<P, Q, B>>;
  handle(input: RouteInput<P, Q, B>, request: Request, response: Response): void | Promise<void>;
}

type ErasedDefinition = RouteDefinition<Schema, Schema, Schema>;

/** A route with its input types erased, made by `route` or `documentedRoute`. */
export type Route = Omit<ErasedDefinition, 'handle'> & {
  /** Handler of the route; absent if a plain listener serves the route. */
  handle?: ErasedDefinition['handle'];
};

/**
 * Declares a route. Parses the params first. Then the guards check the request in order, and the body is read. One 400
 * then lists every invalid field of params, query and body. `handle` runs last.
 */
export function route<P extends Schema = undefined, Q extends Schema = undefined, B extends Schema = undefined>(
  definition: RouteDefinition<P, Q, B>,
): Route {
  return definition as unknown as Route;
}

/** Declares a route that a plain listener serves (`plain-listener.ts`). The listener runs the guards. */
export function documentedRoute(definition: Omit<Route, 'handle'>): Route {
  return definition;
}

export interface HttpAppOptions extends RequestRecorders {
  routes: Route[];
  /** Origins whose scripts may call the app, without cookies. `*` allows every origin. */
  corsOrigins: string[];
  /** Maximum size of a request body in bytes. */
  bodyLimit: number;
  presentProblem?: PresentProblem;
}

/** Creates the app. Throws if a route has no guard that admits callers, or names an unknown audit action. */
export function createHttpApp(options: HttpAppOptions): Express {
  const open = options.routes.find((item) => !isGuarded(item));
  if (open) throw new Error(`no guard admits callers to ${open.method.toUpperCase()} ${open.path}`);
  for (const { audit, path } of options.routes) requireKnownActions(audit, path);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.set('trust proxy', createTrust(options.trustedProxies));
  const begin = beginRequest(options);
  const allow = allowOrigins(options.corsOrigins);
  // One layer of the router calls all these functions, because the overhead of a layer is as large as their cost.
  app.use((request, response, next) => {
    const { scope } = begin(request, response).locals;
    setPendingHeaders(response as unknown as HttpResponse);
    checkFraming(request);
    runInScope(scope, allow, request, response, next);
  });
  const readerOf = createBodyReaders(options.bodyLimit);
  const bodies = createLargeBodies(options.bodyLimit, options.metrics);
  const routes = options.routes.filter(({ handle }) => handle !== undefined);
  const allowed = allowedByPath(routes);
  for (const item of routes) {
    // Without this route, Express would call the GET handler, which has effects, for HEAD.
    if (item.getHasEffects) app.head(item.path, refuseMethod(item.path, allowed));
    app[item.method](item.path, serveRoute(item, readerOf(item), bodies));
  }
  // `route.all` adds one layer; `app.all` would add one for each of the 35 methods that Node knows.
  for (const path of allowed.keys()) app.route(path).all(refuseMethod(path, allowed));
  app.use(() => {
    throw new Problem('not-found', 'No resource has this path.');
  });
  app.use(problemHandler(options.metrics, options.presentProblem));
  return app;
}

function serveRoute(item: Route, readBody: JsonBodyReader, bodies: LargeBodies): RequestHandler {
  return async (request, expressResponse) => {
    const response = expressResponse as Response & HttpResponse;
    const { locals } = response;
    locals.route = item.path;
    beginAudit(item.audit, locals);
    const params = readParams(item, request, locals);
    for (const guard of item.guards) await guard.check(request, response);
    bodies.unread.refuse(request, response);
    const isLarge = item.body !== undefined && mayBeLarge(request, item.bodyLimit);
    const slot = isLarge ? await bodies.admit(request, response) : undefined;
    try {
      await respond(item, params, request, response, () => readBody(request, slot?.rate));
    } finally {
      slot?.release();
      bodies.unread.note(request, response);
    }
  };
}

/** Returns the handler's promise without awaiting it, so that the parsed body can be freed while the handler waits. */
async function respond(
  item: Route,
  params: ReadParams,
  request: Request,
  response: Response,
  read: () => Promise<JsonBody>,
): Promise<void> {
  const body = item.body ? await read() : noBody;
  const input = validate(item, params, request, body);
  reachAudit(item.audit, response.locals, input);
  return item.handle?.(input, request, response);
}

type Input = RouteInput<Schema, Schema, Schema>;
type ReadParams = ReturnType<typeof readParams>;

const messages = { error: issueMessage };

/** Validates the path parameters, before the guards run, so that log lines of refused requests name the object. */
function readParams({ params: schema }: Route, { params }: Request, locals: Express.Locals) {
  const parsed = schema?.safeParse(params, messages);
  if (parsed?.success) noteIds(locals, parsed.data);
  return parsed;
}

function validate(item: Route, params: ReadParams, request: Request, body: JsonBody): Input {
  // Postgres cannot store NUL. The body reader already rejects a body that contains it.
  if (request.url.includes('%00')) throw invalidRequest([{ pointer: '', detail: 'the URL contains a NUL character' }]);
  const query = item.query?.safeParse(queryOf(request), messages);
  const parsedBody = item.body?.safeParse(body.value, messages);
  if (params?.success === false || query?.success === false || parsedBody?.success === false) {
    const errors = [
      ...(params?.error ? fieldErrors(params.error, ['params']) : []),
      ...(query?.error ? fieldErrors(query.error, ['query']) : []),
      ...(parsedBody?.error ? fieldErrors(parsedBody.error) : []),
    ];
    const [first] = errors;
    throw first?.pointer === '' && errors.length === 1
      ? bodyProblem('invalid-request', first.detail)
      : invalidRequest(errors);
  }
  const input = { params: params?.data, query: query?.data, body: parsedBody?.data, bodyText: body.textOf };
  return input as Input;
}
