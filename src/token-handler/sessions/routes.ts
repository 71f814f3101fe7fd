// Routes that list and end sessions. People have access to their own sessions, and administrators to all sessions of
// their tenant. Responses contain neither tokens nor cookie values.
import { hash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import { ifBearer, role } from '../../service/auth/bearer-guards.ts';
import type { Tenants } from '../../service/auth/identity.ts';
import { type Guard, type PlainGuard, type Route, route } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf, type HttpResponse, tenantOf } from '../../service/http/request-context.ts';
import { type LocalRateLimiter, rateLimit } from '../../service/limits/rate-limit.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { noteAudit } from '../../service/operations/request-audit.ts';
import { within } from '../../service/time-limit.ts';
import { logoutUrl } from '../clients/client-path.ts';
import { clearCsrfCookie, clearSessionCookie, issueCsrfCookie } from './cookies.ts';
import { csrf, sessionOf } from './guards.ts';
import { createListQueue } from './list-queue.ts';
import { deletion, sessionList, sessionListQuery, sessionParams, sessionQuery } from './schema.ts';
import type { FoundSession, Session } from './session.ts';
import type { Sessions } from './sessions.ts';

const unknownPosition =
  'must be the id of a session of the tenant that is open, or ended within the last hour. Read the list from its beginning';

export interface SessionRouteOptions {
  /** Rejects requests for content that pages of other sites embed. */
  notEmbedded: PlainGuard;
  /** Limits the requests of one address to list and end sessions. */
  addressLimit: Guard;
  /** Limits the requests of one person, regardless of the session or token. */
  personLimit: LocalRateLimiter;
  seenSession: PlainGuard;
  sessionTenant: PlainGuard;
  /** Guard that requires a bearer token whose audience is the token handler. */
  bearer: Guard;
  tenant: Guard;
  tenants: Pick<Tenants, 'byId'>;
  sessions: Sessions;
  metrics: Pick<Metrics, 'queueRefusals'>;
  logouts: { count(kind: 'person' | 'administrator'): void };
}

const refusals = {
  401: { description: 'Neither a session of this tenant nor a valid bearer token' },
  403: { description: 'The bearer token lacks the role token-handler-admin, or CSRF protection rejects the request' },
  429: { description: 'Too many requests of the person or the address', headers: { 'Retry-After': 'Seconds' } },
  503: { description: 'The session store cannot be reached, or too many lists of the person or tenant are running' },
};

/**
 * Requires an administrator's bearer token, or the session cookie. With the cookie, methods other than GET also require
 * the CSRF header. Limits the requests of one address and of one person, because listing sessions reads up to 100
 * sessions from the store.
 */
function callerGuards(
  { notEmbedded, addressLimit, personLimit, bearer, tenant, seenSession, ...options }: SessionRouteOptions,
  ...afterBearer: Guard[]
) {
  const administrator = [bearer, ...afterBearer, role('token-handler-admin'), tenant];
  const person = [seenSession, options.sessionTenant, csrf];
  const caller = ifBearer(administrator, person, { ignoresOtherSchemes: true });
  return [notEmbedded, addressLimit, caller, rateLimit(personLimit, personOf)];
}

/** The list of an administrator has an audit event, also if it is refused. People may read their own list unaudited. */
const listAudit: Guard = {
  name: 'listAudit',
  check: (_request, response) => noteAudit(response, { action: 'session.list' }),
};

/** Returns the key of the rate limit: the person of the session, or the account of the bearer token. */
function personOf(response: HttpResponse): string {
  const { session } = response.locals;
  if (session) return `${session.session.tenantId}\n${session.session.user.id}`;
  const { issuer, subject } = callerOf(response);
  return `${issuer}\n${subject}`;
}

/** Returns the tenant and the person whose shares of the queue a list uses. */
function requesterOfCaller(response: Response) {
  const tenant = response.locals.session?.session.tenantId ?? tenantOf(response).id;
  return { tenant, member: personOf(response) };
}

export function listSessionsRoute(options: SessionRouteOptions): Route {
  const queue = createListQueue(options);
  return route({
    method: 'get',
    path: '/token-handler/v1/sessions',
    audit: { actions: ['session.list'] },
    // This GET route has an effect: it sets the CSRF cookie again.
    getHasEffects: true,
    summary: "Lists the person's sessions, the one of the cookie first; or the tenant's, for an administrator",
    description:
      'Reading the list does not extend a session, so a frontend may poll it. Only requests to targets extend the session of the cookie.',
    guards: callerGuards(options, listAudit),
    query: sessionListQuery,
    responses: {
      200: {
        description:
          "The cookie's session, then the person's others, latest first. For an administrator: the tenant's, latest first",
        schema: sessionList,
      },
      ...refusals,
    },
    async handle({ query }, request, response) {
      const isPerson = response.locals.session !== undefined;
      const list = () => (isPerson ? listOfPerson(options, request, response) : listOfTenant(options, query, response));
      response.json(await queue.run(requesterOfCaller(response), list));
    },
  });
}

async function listOfTenant(
  { sessions }: SessionRouteOptions,
  query: z.output<typeof sessionListQuery>,
  response: Response,
) {
  const found = await sessions.ofTenant(tenantOf(response).id, query.top, query.after);
  if (!found) throw invalidRequest([{ pointer: '/query/after', detail: unknownPosition }]);
  noteAudit(response, { objectIds: found.map(({ session }) => session.handle) });
  return found.map((one) => present(one, sessions));
}

async function listOfPerson({ tenants, sessions }: SessionRouteOptions, request: Request, response: Response) {
  const { session } = sessionOf(response);
  const all = await sessions.ofUser(session.tenantId, session.user.id);
  const own = all.find((one) => one.session.handle === session.handle) ?? (await sessions.read(session.handle));
  if (!own) throw new Problem('unauthenticated', 'The session has ended.');
  // Sets the CSRF cookie again, because scripts need it and the browser may have lost it.
  issueCsrfCookie(response, session, request.secure);
  const others = all.filter((one) => one.session.handle !== session.handle);
  const first = {
    ...{ ...present(own, sessions), tenant: await shownTenant(tenants, session.tenantId) },
    person: personId(session),
    logoutUrl: logoutUrl(session),
  };
  return [first, ...others.map((one) => present(one, sessions))];
}

/** Returns the id with which frontends tell people apart. A subject is unique only within its tenant. */
const personId = ({ tenantId, user }: Session) => hash('sha256', `${tenantId}\0${user.id}`, 'base64url');

export function deleteSessionRoute(options: SessionRouteOptions): Route {
  const { sessions, logouts } = options;
  return route({
    method: 'delete',
    path: '/token-handler/v1/sessions/:sessionId',
    audit: 'session.revoke',
    summary: 'Ends a session of the person; or of the tenant, for an administrator',
    guards: callerGuards(options),
    params: sessionParams,
    query: sessionQuery,
    headers: { 'X-XSRF-TOKEN': 'Repeats the cookie XSRF-TOKEN; needed with the session cookie' },
    responses: {
      200: { description: 'Ended', schema: deletion },
      ...refusals,
      404: { description: 'There is no such session, or it belongs to somebody else' },
    },
    async handle({ params }, request, response) {
      const found = await sessions.read(params.sessionId);
      if (!found || !mayEnd(found, response)) throw new Problem('not-found', 'There is no such session.');
      const wasLive = await sessions.end(found.session);
      if (wasLive) logouts.count(response.locals.session ? 'person' : 'administrator');
      if (response.locals.session?.session.handle === params.sessionId) {
        clearSessionCookie(response, sessions.cookie.name, request.secure);
        clearCsrfCookie(response, request.secure);
      }
      response.json({ deleted: true });
    },
  });
}

/** Maximum wait for the tenant service in milliseconds. The list of sessions must not depend on that service. */
const longestLookup = 1_000;

async function shownTenant(tenants: Pick<Tenants, 'byId'>, id: string) {
  const lookup = tenants.byId(id).catch(() => undefined);
  const found = await within(lookup, longestLookup, undefined);
  return found ? { name: found.name, realm: found.realm } : null;
}

function mayEnd({ session }: FoundSession, response: Response): boolean {
  const own = response.locals.session?.session;
  if (!own) return session.tenantId === tenantOf(response).id;
  return session.tenantId === own.tenantId && session.user.id === own.user.id;
}

function present(found: FoundSession, sessions: Sessions) {
  const { tenantId, clientId, handle, user, created, absoluteExpiry, core } = found.session;
  return {
    tenantId,
    clientId,
    id: handle,
    name: user.name,
    email: user.email ?? null,
    roles: user.roles,
    expiry: instant(sessions.expiryOf(found)),
    idleExpiry: instant(found.state.touched + sessions.limits.idle),
    absoluteExpiry: instant(absoluteExpiry),
    authenticatedBy: user.authenticatedBy ?? null,
    created: instant(created),
    core,
    logoutUrl: null,
  };
}

const instant = (milliseconds: number) => new Date(milliseconds).toISOString();
