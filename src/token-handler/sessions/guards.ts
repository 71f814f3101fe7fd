// The guards of routes that a browser calls with its session: the session itself, its tenant, and CSRF protection. An
// administrator's bearer token can take the place of the session where a route says so.
import type { Guard, PlainGuard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { checkCsrf } from './csrf.ts';
import type { LiveSession, SessionReader } from './live-session.ts';
import { checkSessionTenant, type TenantLookup } from './request-tenant.ts';

declare global {
  namespace Express {
    interface Locals {
      session?: LiveSession;
    }
  }
}

/**
 * Requires a live session and leaves it in `locals.session`. Throws Problem `unauthenticated` without one, `unavailable`
 * if the session store cannot be asked.
 */
export function liveSession(reader: SessionReader): PlainGuard {
  return {
    name: 'liveSession',
    admits: ['session'],
    async check(request, response) {
      const live = await reader.read(request);
      if (!live) throw new Problem('unauthenticated', 'There is no session: sign in first.');
      response.locals.session = live;
      response.locals.signedIn = { tenantId: live.session.tenantId, subject: live.session.user.id };
    },
  };
}

/**
 * For routes behind `liveSession`: the tenant header, which a proxy sets to keep a domain to one tenant, must not name
 * another tenant than the session's. `header` is its name. Throws Problem `unauthenticated`.
 */
export function sessionTenant(tenants: TenantLookup, header: string): PlainGuard {
  return {
    name: 'sessionTenant',
    check: (request, response) => checkSessionTenant(request, sessionOf(response).session, { tenants, header }),
  };
}

/** Throws Problem `forbidden`. A request without a session has a bearer token, which no other site can add to it. */
export const csrf: PlainGuard = {
  name: 'csrf',
  check(request, { locals }) {
    if (locals.session) checkCsrf(request, locals.session.session);
  },
};

/** Requires what `administrator` requires from a request with a bearer token, and what `session` requires otherwise. */
export function sessionOrAdministrator(session: Guard[], administrator: Guard[]): Guard {
  return {
    name: 'sessionOrAdministrator',
    admits: ['session', 'bearer'],
    async check(request, response) {
      const isBearer = request.headers.authorization !== undefined;
      try {
        for (const guard of isBearer ? administrator : session) await guard.check(request, response);
      } catch (error) {
        // RFC 9110 section 15.5.2: a 401 says how to authenticate. Cookies have no scheme, but a bearer token would do.
        if (!isBearer && error instanceof Problem && error.status === 401)
          response.setHeader('WWW-Authenticate', 'Bearer');
        throw error;
      }
    },
  };
}

/** Only for routes behind `liveSession`. */
export function sessionOf({ locals }: HttpResponse): LiveSession {
  if (!locals.session) throw new Error('the route has no session guard');
  return locals.session;
}
