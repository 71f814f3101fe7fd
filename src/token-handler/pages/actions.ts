// Chooses the link on a failure page: to a new sign-in, to the page's own address, or to the start page of the site.
// The link contains nothing from the address of the request. The link to a new sign-in is built from the stored attempt
// that this browser started.
import { definedMembers } from '../../service/json-value.ts';
import { callbackUrlProblem, type StartedSignIn } from '../sign-in/sign-in.ts';
import type { Endpoint, PageName } from './catalogue.ts';

export interface Action {
  label: 'signInAgain' | 'tryAgain' | 'startPage';
  /** A reference relative to the page's own address, without a scheme or host. */
  href: string;
}

export interface Failed {
  endpoint: Endpoint;
  page: PageName;
  /** HTTP status of the problem. */
  status: number;
  /** The sign-in attempt that this browser started, if the request is the callback of this attempt. */
  attempt?: StartedSignIn | undefined;
}

const startPage: Action = { label: 'startPage', href: '/' };
/** An empty reference leads to the page's own address (RFC 3986 section 4.4). */
const tryAgain: Action = { label: 'tryAgain', href: '' };

/** Pages for temporary failures: the same request may succeed later. */
const repeatable = new Set<PageName>([
  'client-not-registered',
  'identity-provider-down',
  'service-unavailable',
  'rate-limited',
]);

export function actionFor({ endpoint, page, status, attempt }: Failed): Action {
  if (page === 'unknown-tenant' || page === 'unknown-client') return startPage;
  const restart = attempt && restartOf(attempt);
  if (endpoint === 'callback' && restart !== undefined) return { label: 'signInAgain', href: restart };
  return status >= 500 || repeatable.has(page) ? tryAgain : startPage;
}

/**
 * Returns the address that starts the sign-in again, relative to the address of the callback. Returns undefined if the
 * callback used the deprecated `authCallbackUrl`, because the frontend's reverse proxy may serve the sign-in at another
 * path.
 */
function restartOf({ tenantId, clientId, callbackUrl, returnTo, asked = {} }: StartedSignIn): string | undefined {
  if (callbackUrlProblem(callbackUrl, clientId) !== undefined) return undefined;
  // Leaves out prompt=none, because the person is present and may be asked to sign in. Leaves out login_hint, because
  // it may be an email address, which must not be in the page.
  const { prompt, login_hint: _, ...others } = asked;
  const parameters = { tenant: tenantId, callbackUrl, returnTo, ...others, ...(prompt !== 'none' && { prompt }) };
  return `auth?${new URLSearchParams(definedMembers(parameters))}`;
}
