// Applies express-session to the routes of sign-in and logout: the cookie, its record, and a new id at sign-in. Keeps
// the cookie if the store is unavailable.
import { randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import session, { type Store } from 'express-session';
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { clearSessionCookie, cookieValue, type SessionCookie } from '../sessions/cookies.ts';

/** Sets `request.session`. Throws Problem `unavailable` if the store cannot be reached. */
export function browserSession(cookie: SessionCookie, records: Store): Guard {
  const { name, secrets } = cookie;
  const needsHttps = /^__(?:Host|Secure)-/.test(name);
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
      if (needsHttps && !request.secure)
        throw invalidRequest([{ pointer: '', detail: 'requires https: the session cookie is sent over https only' }]);
      dropAmbiguousCookie(request, name);
      return completion((done) => middleware(request, response, done));
    },
  };
}

/** Removes a session cookie that occurs twice with different values. express-session would use the first. */
function dropAmbiguousCookie(request: Request, name: string): void {
  const { cookie } = request.headers;
  if (cookie === undefined || cookieValue(cookie, name) !== undefined) return;
  request.headers.cookie = cookie
    .split(';')
    .filter((pair) => pair.split('=', 1)[0]?.trim() !== name)
    .join(';');
}

/** Deletes the record and assigns a new random id, which prevents session fixation. */
export function renewSession(request: Request): Promise<void> {
  return completion((done) => request.session.regenerate(done));
}

/** Saves before the response, so that a failure can be reported. By itself, express-session saves at its end. */
export async function saveSession(request: Request): Promise<void> {
  try {
    await completion((done) => request.session.save(done));
  } catch (error) {
    // Prevents express-session from setting a cookie that has no record.
    Object.assign(request, { session: undefined });
    throw error;
  }
}

/** Deletes the record and the browser's cookie. */
export async function endBrowserSession(request: Request, response: Response, name: string): Promise<void> {
  await completion((done) => request.session.destroy(done));
  clearSessionCookie(response, name, request.secure);
}

/** Converts a callback to a promise. Rejects with an Error even if the callback receives another value. */
function completion(start: (done: (error?: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => {
      if (error === undefined || error === null) resolve();
      else if (error instanceof Error) reject(error);
      else reject(new Problem('unavailable', 'The session store cannot be reached at the moment.'));
    });
  });
}
