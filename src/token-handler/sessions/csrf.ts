// Protects sessions from cross-site request forgery. Every method but GET needs a token that only scripts of the session's
// site can read. A request that the browser marks as cross-site is rejected even with the token.
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Response } from 'express';
import { Problem } from '../../service/http/problem.ts';
import { isSameText } from '../../service/same-text.ts';
import type { Session } from './session.ts';

const csrfCookie = 'XSRF-TOKEN';
const csrfHeader = 'x-xsrf-token';

type CsrfSession = Pick<Session, 'handle' | 'csrfSecret' | 'site'>;

/** Bound to its session: the token of another session is rejected. */
export function csrfToken({ handle, csrfSecret }: CsrfSession): string {
  return createHmac('sha256', csrfSecret).update(handle).digest('base64url');
}

/** Throws Problem `forbidden` for a request that the session's site did not send. */
export function checkCsrf(request: IncomingMessage, session: CsrfSession): void {
  const isUpgrade = request.headers.upgrade !== undefined;
  const needsToken = request.method !== 'GET';
  if (!needsToken && !isUpgrade) return;
  if (request.headers['sec-fetch-site'] === 'cross-site') throw refusal('The request comes from another site.');
  const { origin } = request.headers;
  if (origin !== undefined && origin !== session.site) throw refusal('The request comes from another origin.');
  if (needsToken && !isSameText(csrfToken(session), String(request.headers[csrfHeader])))
    throw refusal(`The header X-XSRF-TOKEN must repeat the cookie ${csrfCookie}.`);
}

/** The cookie is readable by scripts, which send it back. `secure`: whether the request came by https. */
export function issueCsrfCookie(response: Response, session: CsrfSession, secure: boolean): void {
  response.cookie(csrfCookie, csrfToken(session), { path: '/', sameSite: 'strict', secure, httpOnly: false });
}

export function clearCsrfCookie(response: Response, secure: boolean): void {
  response.clearCookie(csrfCookie, { path: '/', sameSite: 'strict', secure, httpOnly: false });
}

function refusal(detail: string): Problem {
  return new Problem('forbidden', detail);
}
