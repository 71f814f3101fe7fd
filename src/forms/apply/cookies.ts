// The cookies of the intake application. The cookie of a form proves that this browser created the form or entered a
// code for it. It is encrypted, so it can hold the code of an open read session. The browser's own cookie is a random
// id, which ties codes and retries to that browser. Both cookies end when the browser is closed.
import { randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Clock } from '../../service/clock.ts';
import { cookiePairs, cookieValues } from '../../service/http/cookie-header.ts';
import { isObject } from '../../service/json-value.ts';
import { type KeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import { readSession } from '../codes/code.ts';

/** The content of a form's cookie. */
export interface OpenForm {
  formId: string;
  tenantId: string;
  /** The time at which the browser created the form or entered a code for it, in milliseconds since 1970. */
  opened: number;
  /** The code of the read session. Absent if this browser created the form and has not entered a code. */
  code?: string;
}

/** Milliseconds for which a cookie is accepted. */
export const cookieLife = 12 * 60 * 60_000;
/** Maximum number of form cookies in a browser. The oldest are removed, because servers reject long headers. */
const mostForms = 8;

export type ApplyCookies = ReturnType<typeof createApplyCookies>;

export function createApplyCookies({ keys, clock }: { keys: KeyRing; clock: Clock }) {
  const time = () => clock().getTime();

  function open(formId: string, sealed: string): OpenForm | undefined {
    try {
      const found: unknown = JSON.parse(keys.open(sealed, contextOf(formId)));
      if (!isObject(found) || typeof found.opened !== 'number') return undefined;
      return time() - found.opened < cookieLife ? (found as unknown as OpenForm) : undefined;
    } catch (error) {
      if (error instanceof KeyRingError || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  /**
   * Removes the oldest form cookies if there are more than {@link mostForms}. An invalid cookie counts as the oldest.
   */
  function removeOldest(request: Request, response: Response, besides: string): void {
    const prefix = prefixOf(response);
    const found = cookiePairs(request.headers.cookie ?? '')
      .filter(([name]) => name.startsWith(prefix) && name !== prefix + compact(besides))
      .map(([name, sealed]) => ({ name, opened: open(expand(name.slice(prefix.length)), sealed)?.opened ?? 0 }));
    const old = found.sort((one, other) => other.opened - one.opened).slice(mostForms - 1);
    for (const { name } of old) response.clearCookie(name, attributesOf(response));
  }

  return {
    /** Returns the content of this form's cookie. Undefined if the browser sent no valid cookie. */
    find(request: Request, response: Response, formId: string): OpenForm | undefined {
      const values = cookieValues(request.headers.cookie ?? '', prefixOf(response) + compact(formId));
      const [only, second] = values.flatMap((value) => open(formId, value) ?? []);
      // A browser sends several cookies of one name if different hosts have set them. The request does not show which
      // of them this host has set (RFC 6265 section 8.6).
      return second === undefined ? only : undefined;
    },

    /** Sets the cookie of a form. `opened` is now if it is not given. */
    issue(request: Request, response: Response, form: Omit<OpenForm, 'opened'> & { opened?: number }): void {
      removeOldest(request, response, form.formId);
      const sealed = keys.seal(JSON.stringify({ opened: time(), ...form }), contextOf(form.formId));
      response.cookie(prefixOf(response) + compact(form.formId), sealed, attributesOf(response));
    },

    clear(response: Response, formId: string): void {
      response.clearCookie(prefixOf(response) + compact(formId), attributesOf(response));
    },

    /** Returns the code in the cookie if the code's read session is still open, otherwise undefined. */
    codeOf({ code, opened }: OpenForm): string | undefined {
      return time() - opened < readSession ? code : undefined;
    },

    /** Returns the browser's id. Issues a new id if the browser has none. */
    browserOf(request: Request, response: Response): string {
      const name = browserName(response);
      const [known] = cookieValues(request.headers.cookie ?? '', name).filter((value) => /^[\w-]{22}$/.test(value));
      const id = known ?? randomBytes(16).toString('base64url');
      if (known === undefined) response.cookie(name, id, attributesOf(response));
      return id;
    },
  };
}

const contextOf = (formId: string) => `form cookie of ${formId}`;
const compact = (formId: string) => formId.toLowerCase().replaceAll('-', '');
const expand = (text: string) => text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

// Over https, browsers accept a cookie with the prefix __Host- only from the host itself, not from its parent or
// sibling domains.
const hostPrefix = (response: Response) => (isSecure(response) ? '__Host-' : '');
const prefixOf = (response: Response) => `${hostPrefix(response)}formgate-form-`;
const browserName = (response: Response) => `${hostPrefix(response)}formgate-browser`;
const isSecure = ({ locals }: Response) => locals.forwarded.protocol === 'https';

function attributesOf(response: Response) {
  return { path: '/', httpOnly: true, sameSite: 'strict', secure: isSecure(response) } as const;
}
