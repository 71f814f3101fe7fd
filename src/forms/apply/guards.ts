// Guards of the intake application's routes. They check the request's origin, its tenant, and the cookie of its form.
import type { Request, Response } from 'express';
import type { Tenants } from '../../service/auth/identity.ts';
import { anonymous, type Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { ProblemSlug } from '../../service/http/problem-types.ts';
import { addressLimit, type LocalRateLimiter } from '../../service/limits/rate-limit.ts';
import type { ApplyCookies, OpenForm } from './cookies.ts';
import type { ApplyStore } from './store.ts';

declare global {
  namespace Express {
    interface Locals {
      /** The form that this browser has opened, read from the cookie of the form. */
      openForm?: OpenForm;
    }
  }
}

export interface ApplyGuardsOptions {
  cookies: Pick<ApplyCookies, 'find' | 'codeOf'>;
  store: Pick<ApplyStore, 'isOpenedWithCode'>;
  tenants: Pick<Tenants, 'byRealm'>;
  /** A further origin whose requests are accepted. It is needed behind a proxy that changes the Host header. */
  publicOrigin: string | undefined;
  requests: LocalRateLimiter;
  codes: LocalRateLimiter;
  uploads: LocalRateLimiter;
}

export type ApplyGuards = ReturnType<typeof createApplyGuards>;

const applyHeader = 'X-Formgate-Apply';

export function createApplyGuards(options: ApplyGuardsOptions) {
  const { cookies, store, tenants, publicOrigin, requests, codes, uploads } = options;

  /**
   * Rejects requests from pages of other origins. Requests other than GET and HEAD also need the header
   * X-Formgate-Apply, because a script of another origin cannot send this header without a preflight.
   */
  const ownPage: Guard = {
    name: 'ownPage',
    headers: {
      [applyHeader]: {
        description: 'Any value; scripts of other origins cannot send it',
        isRequired: true,
        example: '1',
      },
    },
    check(request, response) {
      checkOrigin(request, response, publicOrigin);
      response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
      if (!isSafe(request) && request.get(applyHeader) === undefined)
        throw new Problem('forbidden', `The request has no header ${applyHeader}.`);
    },
  };

  /** Checks the origin like `ownPage`. It does not require X-Formgate-Apply, which plain HTML forms cannot send. */
  const ownForm: Guard = {
    name: 'ownForm',
    check(request, response) {
      if (!isSafe(request)) checkOrigin(request, response, publicOrigin);
    },
  };

  /** Finds the tenant by the realm in the path. */
  const realmTenant: Guard = {
    name: 'realmTenant',
    async check(request, response) {
      const tenant = await tenants.byRealm(String(request.params.tenant));
      if (!tenant) throw new Problem('not-found', 'There is no such tenant.');
      response.locals.tenant = tenant;
    },
  };

  /**
   * Requires the cookie of the form that the path names. Anyone can start a form for somebody else's address. So after
   * the applicant has entered a code in any browser, the browser that started the form needs a code too.
   */
  const formCookie: Guard = {
    name: 'formCookie',
    admits: ['form'],
    async check(request, response) {
      const found = cookies.find(request, response, String(request.params.formId).toLowerCase());
      if (!found || found.tenantId !== response.locals.tenant?.id) throw codeEntryRequired();
      const { formId, tenantId, code } = found;
      if (code === undefined && (await store.isOpenedWithCode(tenantId, formId))) throw codeEntryRequired();
      response.locals.openForm = found;
    },
  };

  /** Requires that the browser got its cookie by entering a code, and that the read session is still open. */
  const openReadSession: Guard = {
    name: 'openReadSession',
    check(_request, response) {
      if (cookies.codeOf(openFormOf(response)) === undefined) throw codeEntryRequired();
    },
  };

  const requestLimit = addressLimit(requests);
  return {
    ownForm,
    openReadSession,
    requestLimit,
    codeLimit: addressLimit(codes),
    uploadLimit: addressLimit(uploads),
    /** Guards of routes that need no cookie. */
    forAnyone: [anonymous, requestLimit, ownPage, realmTenant],
    /** Guards of routes of a form that this browser has opened. */
    forForm: [requestLimit, ownPage, realmTenant, formCookie],
  };
}

/** True for methods without effects (RFC 9110 section 9.2.1). */
function isSafe({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD';
}

export function codeEntryRequired(): Problem {
  return new Problem(
    'code-entry-required',
    'This browser has not opened the form. Enter a code that was sent to the applicant.',
  );
}

/** Returns a function that replaces problems with one of these slugs, and rethrows all other errors. */
export const insteadOf =
  (slugs: readonly ProblemSlug[], replacement: () => Problem) =>
  (error: unknown): never => {
    throw error instanceof Problem && slugs.includes(error.slug) ? replacement() : error;
  };

/** Makes a form that intake applications may not use look like a form that does not exist. */
export const hideForeignForm = insteadOf(['forbidden', 'not-found'], codeEntryRequired);

/** Makes a definition that is not for applicants without an account look like one that does not exist. */
export const notForApplicants = insteadOf(
  ['forbidden', 'not-found'],
  () => new Problem('not-found', 'There is no such form for applicants without an account.'),
);

/** Returns the form that the guard `formCookie` found. Throws if the route does not have this guard. */
export function openFormOf({ locals }: Response): OpenForm {
  if (!locals.openForm) throw new Error('the route has no form guard');
  return locals.openForm;
}

/**
 * Throws Problem `forbidden` if a page of another origin sent the request. Uses Sec-Fetch-Site (Fetch Metadata) and
 * Origin (RFC 6454 section 7).
 */
function checkOrigin(request: Request, { locals }: Response, publicOrigin: string | undefined): void {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new Problem('forbidden', 'The request comes from another site.');
  const { origin } = request.headers;
  const { protocol, host } = locals.forwarded;
  if (origin !== undefined && origin !== `${protocol}://${host}` && origin !== publicOrigin)
    throw new Problem('forbidden', 'The request comes from another origin.');
}
