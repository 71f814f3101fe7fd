// The guards of routes that a browser calls with its session: the session itself, its tenant, and CSRF protection.
import type { Response } from 'express';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
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
  liveSession: Guard;
  sessionTenant: Guard;
}

/**
 * Requires a live session and stores it in `locals.session`. Throws Problem `unauthenticated` without one, `unavailable`
 * if the session store cannot be asked.
 */
export function liveSession(reader: SessionReader): Guard {
  const keep = (live: LiveSession | undefined, { locals }: Response) => {
    if (!live) throw new Problem('unauthenticated', 'There is no session: sign in first.');
    locals.session = live;
    locals.signedIn = { tenantId: live.session.tenantId, subject: live.session.user.id };
  };
  return {
    name: 'liveSession',
    admits: ['session'],
    check(request, response) {
      const read = reader.read(request);
      return read instanceof Promise ? read.then((live) => keep(live, response)) : keep(read, response);
    },
  };
}

/**
 * For routes behind `liveSession`: the tenant header, which a proxy sets to keep a domain to one tenant, must not name
 * another tenant than the session's. `header` is its name. Throws Problem `unauthenticated`.
 */
export function sessionTenant(tenants: TenantLookup, header: string): Guard {
  return {
    name: 'sessionTenant',
    check: (request, response) => checkSessionTenant(request, sessionOf(response).session, { tenants, header }),
  };
}

/** For routes behind `liveSession`. Throws Problem `forbidden` for a request that the session's own site did not send. */
export const csrf: Guard = {
  name: 'csrf',
  check: (request, response) => checkCsrf(request, sessionOf(response).session),
};

/** Only for routes behind `liveSession`. */
export function sessionOf({ locals }: Response): LiveSession {
  if (!locals.session) throw new Error('the route has no session guard');
  return locals.session;
}
