// The guards of routes that a browser calls with its session: the session itself, its tenant, and CSRF protection.
import type { PlainGuard, SyncGuard } from '../../service/http/http-app.ts';
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

export interface SessionGuards {
  liveSession: PlainGuard;
  sessionTenant: PlainGuard;
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

/** For routes behind `liveSession`. Throws Problem `forbidden` for a request that the session's own site did not send. */
export const csrf: SyncGuard = {
  name: 'csrf',
  check(request, response) {
    checkCsrf(request, sessionOf(response).session);
  },
};

/** Only for routes behind `liveSession`. */
export function sessionOf({ locals }: HttpResponse): LiveSession {
  if (!locals.session) throw new Error('the route has no session guard');
  return locals.session;
}
