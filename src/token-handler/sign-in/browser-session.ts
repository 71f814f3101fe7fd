// express-session for the routes of sign-in and logout: the cookie, the record behind it, and a new id at sign-in. It
// clears no cookie because a store is away.
import { randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import session, { type Store } from 'express-session';
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { clearSessionCookie, cookieValue, type SessionCookie } from '../sessions/cookies.ts';

/** Sets `request.session`. Problem `unavailable` when the store cannot be had. */
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
        throw invalidRequest([{ pointer: '', detail: 'must come by https: the session cookie is for https only' }]);
      dropDoubtfulCookie(request, name);
      return new Promise<void>((resolve, reject) => {
        middleware(request, response, (error?: unknown) => {
          if (error === undefined || error === null) resolve();
          else reject(asError(error));
        });
      });
    },
  };
}

/** A name that comes twice: express-session would take the first. */
function dropDoubtfulCookie(request: Request, name: string): void {
  const { cookie } = request.headers;
  if (cookie === undefined || cookieValue(cookie, name) !== undefined) return;
  request.headers.cookie = cookie
    .split(';')
    .filter((pair) => pair.split('=', 1)[0]?.trim() !== name)
    .join(';');
}

/** A new id, so that nobody who knew the old one knows the session (session fixation). The old record is gone. */
export function renewSession(request: Request): Promise<void> {
  return new Promise((resolve, reject) => {
    request.session.regenerate((error: unknown) => (error ? reject(asError(error)) : resolve()));
  });
}

/** At once, so that a failure is an answer; express-session's own save comes with the answer's end. */
export function saveSession(request: Request): Promise<void> {
  return new Promise((resolve, reject) => {
    request.session.save((error: unknown) => {
      if (!error) return resolve();
      // Nor shall the answer bring a cookie for a record that is not there.
      Object.assign(request, { session: undefined });
      reject(asError(error));
    });
  });
}

/** Removes the record, and tells the browser to forget the cookie. */
export async function endBrowserSession(request: Request, response: Response, name: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    request.session.destroy((error: unknown) => (error ? reject(asError(error)) : resolve()));
  });
  clearSessionCookie(response, name, request.secure);
}

function asError(error: unknown): Error {
  return error instanceof Error
    ? error
    : new Problem('unavailable', 'The session store cannot be reached at the moment.');
}
