// Who may call with a session, and who with an administrator's bearer token. For upgrades, which no route serves, the
// same question can be asked of a bare request.
import type { IncomingMessage } from 'node:http';
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

export interface SessionGuardOptions {
  reader: SessionReader;
  tenants: TenantLookup;
  /** Name of the header in which a proxy names the tenant. */
  tenantHeader: string;
}

/**
 * The live session of a request that may be served for it. Throws Problem `unauthenticated` without one or for another
 * tenant's domain, `forbidden` where CSRF protection refuses, `unavailable` when the store cannot say. A steady request is
 * admitted at once.
 */
function admitSession(request: IncomingMessage, options: SessionGuardOptions): LiveSession | Promise<LiveSession> {
  const admit = (live: LiveSession | undefined) => {
    if (!live) throw new Problem('unauthenticated', 'There is no session: sign in first.');
    const { session } = live;
    const finish = () => {
      checkCsrf(request, session);
      return live;
    };
    const checked = checkSessionTenant(request, session, { tenants: options.tenants, header: options.tenantHeader });
    return checked ? checked.then(finish) : finish();
  };
  const read = options.reader.read(request);
  return read instanceof Promise ? read.then(admit) : admit(read);
}

/** A live session, left in `locals.session`, and its tenant in `locals.tenant`. */
export function liveSession(options: SessionGuardOptions): Guard {
  return {
    name: 'liveSession',
    admits: ['session'],
    check(request, response) {
      const keep = (live: LiveSession) => {
        response.locals.session = live;
        response.locals.signedIn = { tenantId: live.session.tenantId, subject: live.session.user.id };
      };
      const admitted = admitSession(request, options);
      return admitted instanceof Promise ? admitted.then(keep) : keep(admitted);
    },
  };
}

/** A bearer token is an administrator's, and must pass `administrator`; without one, the session of the cookie. */
export function sessionOrAdministrator(options: SessionGuardOptions, administrator: Guard[]): Guard {
  const session = liveSession(options);
  return {
    name: 'sessionOrAdministrator',
    admits: ['session', 'bearer'],
    async check(request, response) {
      if (request.headers.authorization !== undefined)
        for (const guard of administrator) await guard.check(request, response);
      else await challengeUnless(response, () => session.check(request, response));
    },
  };
}

/** RFC 9110 section 15.5.2: a 401 says how to authenticate. Cookies have no scheme of their own; a bearer would do. */
async function challengeUnless(response: Response, admit: () => void | Promise<void>): Promise<void> {
  try {
    await admit();
  } catch (error) {
    if (error instanceof Problem && error.status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
    throw error;
  }
}

/** Only for routes behind `liveSession`. */
export function sessionOf(response: Response): LiveSession {
  if (!response.locals.session) throw new Error('the route has no session guard');
  return response.locals.session;
}
