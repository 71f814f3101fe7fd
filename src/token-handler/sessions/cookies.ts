// Reads and writes the cookies of a session. The session cookie contains an id that express-session has signed. All
// other code gets only the handle, which is a digest of the id. The CSRF cookie contains a token of the session, which
// scripts send back in a header.

import { createHmac, hash } from 'node:crypto';
import type { Response } from 'express';
import { LRUCache } from 'lru-cache';
import { cookieValues } from '../../service/http/cookie-header.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest } from '../../service/http/problem.ts';
import type { KeyRing } from '../../service/keys/key-ring.ts';
import { isSameText } from '../../service/same-text.ts';
import { requiresHttps } from './cookie-name.ts';
import type { Session } from './session.ts';

export interface SessionCookie {
  name: string;
  /** Secrets for express-session, which signs with the first secret and accepts signatures of all secrets. */
  secrets: string[];
  /**
   * Returns the value of the session cookie in a Cookie header. Returns undefined if no value has a valid signature, or
   * if several values have one. In the latter case, other hosts of the domain may have set all but one of the cookies,
   * and the header does not show which cookie is the right one (RFC 6265 section 8.6).
   */
  valueIn(cookieHeader: string | undefined): string | undefined;
  /** Returns the handle of the session whose cookie `valueIn` returns. */
  handleOf(cookieHeader: string | undefined): string | undefined;
}

interface VerifiedCookie {
  value: string;
  handle: string;
}

/**
 * Maximum number of session cookies in a Cookie header. Another host of the domain can set any number of cookies of
 * this name. A request with more session cookies has no session.
 */
const mostValues = 4;

export function createSessionCookie(name: string, keys: KeyRing): SessionCookie {
  const secrets = keys.hmacs(name, 'session cookie');
  const cache = new LRUCache<string, VerifiedCookie>({ max: 10_000 });
  const verify = (value: string) => {
    const found = cache.get(value);
    if (found) return found;
    const id = unsign(value, secrets);
    if (id === undefined) return undefined;
    const verified = { value, handle: handleOf(id) };
    cache.set(value, verified);
    return verified;
  };
  const onlyVerifiedIn = (header = '') => {
    const values = cookieValues(header, name);
    if (values.length > mostValues) return undefined;
    let only: VerifiedCookie | undefined;
    for (const value of values) {
      const verified = verify(value);
      if (verified && only) return undefined;
      only ??= verified;
    }
    return only;
  };
  return {
    name,
    secrets,
    valueIn: (header) => onlyVerifiedIn(header)?.value,
    handleOf: (header) => onlyVerifiedIn(header)?.handle,
  };
}

/**
 * Throws Problem `invalid-request` if the request was sent over http and the browser would therefore refuse the session
 * cookie.
 */
export function checkCookieScheme(name: string, request: { secure: boolean }): void {
  if (!requiresHttps(name) || request.secure) return;
  throw invalidRequest([{ pointer: '', detail: 'requires https: the session cookie is sent over https only' }]);
}

export function cookieScheme(name: string): Guard {
  return { name: 'cookieScheme', check: (request) => checkCookieScheme(name, request) };
}

/** Returns the public handle of the session whose cookie holds `id`. */
export function handleOf(id: string): string {
  return hash('sha256', `formgate session ${id}`, 'base64url');
}

/** `secure` is true if the request was sent over https. */
export function clearSessionCookie(response: Response, name: string, secure: boolean): void {
  response.clearCookie(name, { httpOnly: true, sameSite: 'lax', path: '/', secure });
}

// Checks the signature of a cookie in the format of cookie-signature: `s:<id>.<HMAC-SHA-256 in base64 without
// padding>`, percent-encoded.
function unsign(value: string, secrets: string[]): string | undefined {
  const text = decode(value);
  const dot = text.lastIndexOf('.');
  if (!text.startsWith('s:') || dot < 0) return undefined;
  const id = text.slice(2, dot);
  const given = text.slice(dot + 1);
  const isSigned = secrets.some((secret) =>
    isSameText(createHmac('sha256', secret).update(id).digest('base64').replace(/=+$/, ''), given),
  );
  return isSigned ? id : undefined;
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return '';
  }
}

export const csrfCookie = 'XSRF-TOKEN';

type CsrfSession = Pick<Session, 'handle' | 'csrfSecret'>;

/** Returns the session's CSRF token: an HMAC of the session's handle. Each session has its own key for this HMAC. */
export function csrfToken({ handle, csrfSecret }: CsrfSession): string {
  return createHmac('sha256', csrfSecret).update(handle).digest('base64url');
}

/**
 * Sets the CSRF cookie. Scripts read it and send its value back. `secure` is true if the request was sent over https.
 */
export function issueCsrfCookie(response: Response, session: CsrfSession, secure: boolean): void {
  response.cookie(csrfCookie, csrfToken(session), { path: '/', sameSite: 'strict', secure, httpOnly: false });
}

export function clearCsrfCookie(response: Response, secure: boolean): void {
  response.clearCookie(csrfCookie, { path: '/', sameSite: 'strict', secure, httpOnly: false });
}
