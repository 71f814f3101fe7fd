// Applies express-session to the callback and to logout. express-session handles the session cookie and its record, and
// assigns a new id at sign-in. If the session store is unavailable, the browser keeps its cookie.
import { randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import session, { type Store } from 'express-session';
import { cookiePairs } from '../../service/http/cookie-header.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { checkCookieScheme, clearSessionCookie, type SessionCookie } from '../sessions/cookies.ts';

/** A guard that sets `request.session`. It throws Problem `unavailable` if the session store cannot be reached. */
export function browserSession(cookie: SessionCookie, records: Store): Guard {
  const { name, secrets } = cookie;
  const middleware = session({
    name,
    secret: secrets,
    store: records,
    genid: () => randomBytes(32).toString('base64url'),
    resave: false,
    saveUninitialized: false,
    cookie: { httpOnly: true, sameSite: 'lax', path: '/', secure: 'auto' },
  });
  return {
    name: 'browserSession',
    check: (request, response) => {
      checkCookieScheme(name, request);
      keepOwnCookie(request, cookie);
      return completion((done) => middleware(request, response, done));
    },
  };
}

/**
 * Removes session cookies that another host of the domain has set, because express-session reads only the first cookie
 * of this name.
 */
function keepOwnCookie({ headers }: Request, sessionCookie: SessionCookie): void {
  if (headers.cookie === undefined) return;
  const { name } = sessionCookie;
  const own = sessionCookie.valueIn(headers.cookie);
  headers.cookie = cookiePairs(headers.cookie)
    .filter(([other, value]) => other !== name || value === own)
    .map((pair) => pair.join('='))
    .join('; ');
}

/** Deletes the session's record and assigns a new random session id, which prevents session fixation. */
export function renewSession(request: Request): Promise<void> {
  return completion((done) => request.session.regenerate(done));
}

/**
 * Saves the session before the response is sent, so that a failure can be reported. By default, express-session saves
 * at the end of the response.
 */
export async function saveSession(request: Request): Promise<void> {
  await completion((done) => request.session.save(done));
  // express-session does not notice the save of a session that `regenerate` made, and would save it again at the end of
  // the response: for the store's default lifetime, and even if the session has ended in the meantime.
  const { session: saved } = request;
  const save = (done?: (error?: unknown) => void) => {
    done?.();
    return saved;
  };
  Object.defineProperty(saved, 'save', { value: save, configurable: true });
}

/** Prevents express-session from setting a session cookie, and from saving the session at the end of the response. */
export function dropSession(request: Request): void {
  Object.assign(request, { session: undefined });
}

/** Deletes the session's record and the browser's session cookie. */
export async function endBrowserSession(request: Request, response: Response, name: string): Promise<void> {
  await completion((done) => request.session.destroy(done));
  clearSessionCookie(response, name, request.secure);
}

/** Converts a callback to a promise. Rejects with an Error even if the callback receives an error of another type. */
function completion(start: (done: (error?: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => {
      if (error === undefined || error === null) resolve();
      else if (error instanceof Error) reject(error);
      else reject(new Problem('unavailable', 'The session store cannot be reached at the moment.'));
    });
  });
}
