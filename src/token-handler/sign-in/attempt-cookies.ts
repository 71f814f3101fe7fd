// Sets, reads and removes the cookies of attempts to sign in. Each attempt has its own cookie, so that no attempt
// overwrites another. The number and the total size of these cookies are limited, because servers refuse requests whose
// headers are too large.
import type { CookieOptions, Request, Response } from 'express';
import { cookiePairs, cookieValues } from '../../service/http/cookie-header.ts';
import { clientPath } from '../clients/client-path.ts';
import {
  type Attempt,
  type Attempts,
  attemptId,
  attemptIdPattern,
  type Begun,
  memory,
  type SignInRequest,
} from './attempts.ts';

/** Maximum number of open attempts to sign in for one browser. */
const mostOpen = 20;
/**
 * Maximum number of characters of all attempt cookies in a Cookie header. Common proxies accept 8 KB in a header line,
 * and the line also contains all other cookies of the site.
 */
const mostCharacters = 7_000;
/** Maximum number of cookies of one name to decrypt. Another host of the domain can set any number of such cookies. */
const mostValues = 4;

export type AttemptCookies = ReturnType<typeof createAttemptCookies>;

/**
 * `sessionCookie` is the name of the session cookie. The name of an attempt's cookie consists of this name and the
 * attempt's id. Both names therefore have the same prefix, such as `__Host-`.
 */
export function createAttemptCookies(sessionCookie: string, attempts: Pick<Attempts, 'open'>) {
  const nameOf = (id: string) => `${sessionCookie}.${id}`;
  // The prefix `__Host-` requires the path `/` (RFC 6265bis section 4.1.3.2).
  const pathOf = (signIn: SignInRequest) => (sessionCookie.startsWith('__Host-') ? '/' : attemptPath(signIn));
  const attributes = (request: Request, signIn: SignInRequest): CookieOptions => ({
    httpOnly: true,
    sameSite: 'lax',
    secure: request.secure,
    path: pathOf(signIn),
  });

  /**
   * Returns the attempts in a Cookie header, latest first, and the names of cookies that look like attempts but cannot
   * be decrypted.
   */
  function read(header = '') {
    const found = new Map<string, { attempt: Attempt; size: number }>();
    const foreign = new Set<string>();
    for (const [name, value] of cookiePairs(header)) {
      const id = name.slice(sessionCookie.length + 1);
      // Skips cookies with other prefixes or invalid ids. Another host of the domain may have set a cookie whose id is
      // not valid in a Set-Cookie header, so the token handler could not remove this cookie.
      if (!name.startsWith(`${sessionCookie}.`) || !attemptIdPattern.test(id)) continue;
      const attempt = attempts.open(id, value);
      if (attempt) found.set(name, { attempt, size: sizeOf(name, value) });
      else foreign.add(name);
    }
    const open = [...found.values()].sort((one, other) => other.attempt.begun - one.attempt.begun);
    return { open, foreign: [...foreign].filter((name) => !found.has(name)) };
  }

  return {
    /** Sets the cookie of a new attempt. Removes the oldest attempt cookies if a limit is exceeded. */
    issue({ id, signIn, sealed }: Begun, request: Request, response: Response): void {
      const { open, foreign } = read(request.headers.cookie);
      let size = sizeOf(nameOf(id), sealed);
      for (const [index, other] of open.entries()) {
        size += other.size;
        if (index + 1 < mostOpen && size <= mostCharacters) continue;
        response.clearCookie(nameOf(other.attempt.id), attributes(request, other.attempt.signIn));
      }
      for (const name of foreign) response.clearCookie(name, attributes(request, signIn));
      response.cookie(nameOf(id), sealed, { ...attributes(request, signIn), maxAge: memory });
    },
    /**
     * Returns the attempt whose authorization request had this `state`. Returns undefined if this browser did not start
     * the attempt, or started it over an hour ago.
     */
    find({ headers }: Request, state: string): Attempt | undefined {
      const id = attemptId(state);
      for (const value of cookieValues(headers.cookie ?? '', nameOf(id)).slice(0, mostValues)) {
        const attempt = attempts.open(id, value);
        if (attempt) return attempt;
      }
      return undefined;
    },
    remove({ id, signIn }: Attempt, request: Request, response: Response): void {
      response.clearCookie(nameOf(id), attributes(request, signIn));
    },
  };
}

const sizeOf = (name: string, value: string) => name.length + value.length + '=; '.length;

/** Returns the narrowest cookie path that contains both routes of a sign-in, the callback and `auth`. */
function attemptPath(signIn: SignInRequest): string {
  const path = clientPath(signIn);
  // A semicolon would end the attribute `Path` of the cookie.
  return path === undefined || path.includes(';') ? '/' : path;
}
