// Defines what a sign-in is, and checks its addresses. A landing address from a request never leads to another origin.
// Pure functions only.
import { callbackEnding } from '../clients/client-path.ts';

/** Parameters of the authorization request that a frontend may set (OpenID Connect Core 1.0, section 3.1.2.1). */
export interface AskedParameters {
  prompt?: string | undefined;
  max_age?: string | undefined;
  acr_values?: string | undefined;
  ui_locales?: string | undefined;
  login_hint?: string | undefined;
}

/** What is needed to start the same sign-in again. */
export interface StartedSignIn {
  /** URN of the tenant. */
  tenantId: string;
  clientId: string;
  callbackUrl: string;
  returnTo?: string | undefined;
  asked?: AskedParameters | undefined;
}

// This pattern is stricter than the URL parser, which drops white space and control characters, and reads backslashes
// as slashes.
const absolutePattern = /^https?:\/\/([^/?#\\\s\p{Cc}]+)(\/[^\\\s\p{Cc}]*)?$/iu;

/** Returns why an address must not receive authorization codes, or undefined if the address is valid. */
export function addressProblem(text: string): string | undefined {
  const [, authority] = absolutePattern.exec(text) ?? [];
  if (authority === undefined || !URL.canParse(text)) return 'must be an absolute http or https URL';
  if (text.includes('#')) return 'must not have a fragment';
  if (authority.includes('@')) return 'must not contain credentials';
  if (text.includes('?')) return 'must not have a query';
  // Checks the path as written, because the URL parser would resolve `/x/../clients/…` to another path.
  return /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(pathOf(text)) ? 'must not contain dot segments' : undefined;
}

/** Returns why a callbackUrl is invalid for the client, or undefined if it is valid. */
export function callbackUrlProblem(text: string, clientId: string): string | undefined {
  const problem = addressProblem(text);
  if (problem !== undefined) return problem;
  const ending = `/${callbackEnding(clientId)}`;
  return pathOf(text).endsWith(ending) ? undefined : `must end in ${ending}`;
}

/**
 * Returns the path of a valid URL as written, without normalisation. Returns an empty string if the URL ends with the
 * host.
 */
function pathOf(url: string): string {
  return absolutePattern.exec(url)?.[2] ?? '';
}

/**
 * Returns the deprecated fallback for a missing callbackUrl: the path of `authCallbackUrl`, on the host of the request.
 * Any path is allowed.
 */
export function fallbackCallbackUrl(authCallbackUrl: string, protocol: string, host: string): string {
  return `${protocol}://${host}${new URL(authCallbackUrl).pathname}`;
}

/**
 * True if the string is a path on the origin of the page. Rejects `//host` and `/\host`, because browsers read them as
 * another host (WHATWG URL, section 4.4). Also rejects their encoded forms, because a reverse proxy may decode the path
 * once, and paths whose dot segments resolve to such a form.
 */
export function isLocalPath(text: string): boolean {
  if (text.length > 2_000 || !text.startsWith('/') || /[\\\s\p{Cc}]/u.test(text)) return false;
  const base = 'https://origin.invalid';
  const url = URL.parse(text, base);
  return url?.origin === base && !otherHostPattern.test(text) && !otherHostPattern.test(url.pathname);
}

const otherHostPattern = /^\/(?:\/|%2f|%5c|%09|%0[ad])/i;

/**
 * Returns the absolute URL of the page after a sign-in. `path` is a path on the site or a URL. The default is the root
 * of the site.
 */
export function landingUrl(site: string, path: string | undefined): string {
  return new URL(path ?? '/', site).href;
}

/**
 * Returns the URL of the page after a refused sign-in. `page` is a path on the site or a URL. The default is the root
 * of the site. `error` is an error code of RFC 6749 section 4.1.2.1 or OpenID Connect Core 1.0 section 3.1.2.6.
 */
export function refusalUrl(site: string, page: string | undefined, error: string): string {
  const url = new URL(page ?? '/', site);
  url.searchParams.set('error', error);
  return url.href;
}
