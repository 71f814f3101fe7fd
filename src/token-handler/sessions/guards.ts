// Guards for routes that a browser calls with its session. They check the session, its tenant and the CSRF token, which
// protects against cross-site request forgery.
import type { IncomingMessage } from 'node:http';
import type { Tenant, Tenants } from '../../service/auth/identity.ts';
import type { PlainGuard, SyncGuard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { isSameText } from '../../service/same-text.ts';
import { Rejection } from '../rejection.ts';
import { csrfCookie, csrfToken } from './cookies.ts';
import type { LiveSession, Session } from './session.ts';
import type { Sessions } from './sessions.ts';

declare global {
  namespace Express {
    interface Locals {
      session?: LiveSession;
    }
  }
}

export type TenantLookup = Pick<Tenants, 'byId' | 'byName'>;

/**
 * Requires a live session and stores it in `locals.session`. Throws Problem `unauthenticated` if there is no session,
 * and `unavailable` if the session store cannot be reached.
 */
export function liveSession(sessions: Pick<Sessions, 'ofRequest'>): PlainGuard {
  return sessionGuard('liveSession', (request) => sessions.ofRequest(request));
}

/** Like `liveSession`, but does not extend the session. */
export function seenSession(sessions: Pick<Sessions, 'see'>): PlainGuard {
  return sessionGuard('seenSession', (request) => sessions.see(request));
}

type Finding = LiveSession | undefined | Promise<LiveSession | undefined>;

function sessionGuard(name: string, find: (request: IncomingMessage) => Finding): PlainGuard {
  return {
    name,
    admits: ['session'],
    async check(request, response) {
      const live = await find(request);
      if (!live) throw new Rejection('session', 'unauthenticated', 'There is no session: sign in first.');
      response.locals.session = live;
      const { tenantId, clientId, user } = live.session;
      response.locals.signedIn = { tenantId, clientId, subject: user.id };
    },
  };
}

/**
 * Rejects requests for content that a page of another site embeds or fetches, such as images, frames and scripts (Fetch
 * Metadata Request Headers, section 2). Without this guard, such a page could use up the rate limits of
 * its visitor's address, which an office may share. Accepts requests with a bearer token, and requests with one of our
 * cookies, because the identity provider may redirect a frame of the frontend. `cookieName` is the name of the session
 * cookie, with which the names of all our cookies begin. Throws Problem `forbidden`.
 */
export function notEmbedded(cookieName: string): SyncGuard {
  return {
    name: 'notEmbedded',
    check({ headers }) {
      const destination = headers['sec-fetch-dest'] ?? 'document';
      if (headers['sec-fetch-site'] !== 'cross-site' || destination === 'document') return;
      if (headers.authorization !== undefined || headers.cookie?.includes(cookieName)) return;
      throw new Rejection('csrf', 'forbidden', 'The request comes from another site.');
    },
  };
}

/**
 * Rejects requests that a browser or a script sends before the person follows a link. Routes that change something need
 * this guard. Browsers load the link again when the person follows it (HTML standard, section 7.6.2). Throws Problem
 * `forbidden`.
 */
export const notPrefetched: SyncGuard = {
  name: 'notPrefetched',
  check({ headers }) {
    const isPrefetch = prefetchHeaders.some((name) => String(headers[name] ?? '').startsWith('prefetch'));
    if (isPrefetch) throw new Problem('forbidden', 'This link changes something, so it cannot be loaded in advance.');
  },
};

/** `purpose` and `x-moz` come from older browsers, and `x-sec-purpose` from scripts, which cannot set `sec-purpose`. */
const prefetchHeaders = ['sec-purpose', 'x-sec-purpose', 'purpose', 'x-moz'];

/**
 * Rejects a request whose tenant header names a tenant other than the session's. A reverse proxy sets this header to
 * restrict a domain to one tenant. `header` is the name of the tenant header. Works only after `liveSession` or
 * `seenSession`. Throws Problem `unauthenticated`.
 */
export function sessionTenant(tenants: TenantLookup, header: string): PlainGuard {
  async function checkNamed(named: string, tenantId: string): Promise<void> {
    if ((await findTenant(tenants, named))?.id !== tenantId)
      throw new Rejection('session', 'unauthenticated', 'The session is of another tenant.');
  }
  return {
    name: 'sessionTenant',
    check(request, response) {
      const named = tenantHeader(request, header);
      const { tenantId } = sessionOf(response).session;
      return named === undefined || named === tenantId ? undefined : checkNamed(named, tenantId);
    },
  };
}

/**
 * Checks the request with `checkCsrf`, for the session that `liveSession` or `seenSession` has stored. Works only after
 * one of these guards.
 */
export const csrf: SyncGuard = {
  name: 'csrf',
  headers: { 'X-XSRF-TOKEN': { description: `Repeats the cookie ${csrfCookie}`, isRequired: true } },
  check(request, response) {
    checkCsrf(request, sessionOf(response).session);
  },
};

/**
 * Requires the CSRF token for every method except GET. Only scripts of the session's site can read the token. Also
 * rejects non-GET requests and upgrades that another site or origin sent. Throws Problem `forbidden`.
 */
export function checkCsrf(
  { method, headers }: IncomingMessage,
  session: Pick<Session, 'handle' | 'csrfSecret' | 'site'>,
): void {
  const needsToken = method !== 'GET';
  if (!needsToken && headers.upgrade === undefined) return;
  if (headers['sec-fetch-site'] === 'cross-site')
    throw new Rejection('csrf', 'forbidden', 'The request comes from another site.');
  const { origin } = headers;
  if (origin !== undefined && origin !== session.site)
    throw new Rejection('csrf', 'forbidden', 'The request comes from another origin.');
  if (needsToken && !isSameText(csrfToken(session), String(headers['x-xsrf-token'])))
    throw new Rejection('csrf', 'forbidden', `The header X-XSRF-TOKEN must repeat the cookie ${csrfCookie}.`);
}

/** Returns the session that `liveSession` or `seenSession` stored. Throws if the route has no such guard. */
export function sessionOf({ locals }: HttpResponse): LiveSession {
  if (!locals.session) throw new Error('the route has no session guard');
  return locals.session;
}

/** Finds a tenant by URN or by name. The name may be in any case, or in kebab-case. */
export function findTenant(tenants: TenantLookup, text: string): Promise<Tenant | undefined> {
  return text.startsWith('urn:') ? tenants.byId(text) : tenants.byName(text);
}

/**
 * Returns the value of the tenant header, or undefined if the request has no such header. `header` is the header's
 * name.
 */
export function tenantHeader({ headers }: IncomingMessage, header: string): string | undefined {
  const value = headers[header.toLowerCase()];
  return (Array.isArray(value) ? value.join(', ') : value)?.trim() || undefined;
}
