// The rules of the addresses of a sign-in: pure. Where the browser may come back to with a code, and where it lands in
// the end. A landing place given by a request never leads to another origin.

/** Milliseconds that an attempt to sign in may take. */
export const attemptLifetime = 600_000;
/** Milliseconds for which an attempt that took longer starts again by itself. */
export const attemptMemory = 3_600_000;
/** Open attempts of one browser. */
export const mostAttempts = 20;

// Stricter than the parser of URLs, which drops white space and control characters and turns back slashes.
const absolutePattern = /^https?:\/\/([^/?#\\\s\p{Cc}]+)(\/[^\\\s\p{Cc}]*)?$/iu;

/** Why a code must not be sent to an address; undefined where it may, as far as this service can tell. */
export function addressProblem(text: string): string | undefined {
  const [, authority] = absolutePattern.exec(text) ?? [];
  if (authority === undefined || !URL.canParse(text)) return 'must be an absolute http or https URL';
  if (text.includes('#')) return 'must not have a fragment';
  if (authority.includes('@')) return 'must not hold credentials';
  if (text.includes('?')) return 'must not have a query';
  // As written, because it is what the access service compares: `/x/../clients/…` is another text.
  return /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(pathOf(text)) ? 'must not hold dot segments' : undefined;
}

/** Why a text is no callbackUrl of the client; undefined for one that is. */
export function callbackUrlProblem(text: string, clientId: string): string | undefined {
  const problem = addressProblem(text);
  if (problem !== undefined) return problem;
  const ending = ['clients', encodeURIComponent(clientId), 'callback'].join('/');
  return pathOf(text).endsWith(`/${ending}`) ? undefined : `must end in /${ending}`;
}

/** As it is written. */
function pathOf(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('//') + 2));
}

/**
 * The deprecated fallback: the path of the configured URL on the host that the request came to. It is whatever the
 * frontend's proxy leads to the callback endpoint, as it was before there was a callbackUrl.
 */
export function fallbackCallbackUrl(authCallbackUrl: string, protocol: string, host: string): string {
  return `${protocol}://${host}${new URL(authCallbackUrl).pathname}`;
}

/**
 * Whether a text is a path on the origin of the page that it is given to. Not `//host` and `/\host`, which browsers take
 * for another host (WHATWG URL, section 4.4), encoded or not: a proxy on the way may decode once.
 */
export function isLocalPath(text: string): boolean {
  if (text.length > 2_000 || !text.startsWith('/') || /[\\\s\p{Cc}]/u.test(text)) return false;
  if (/^\/(?:\/|%2f|%5c|%09|%0[ad])/i.test(text)) return false;
  const base = 'https://origin.invalid';
  return URL.canParse(text, base) && new URL(text, base).origin === base;
}

export interface Landing {
  returnTo?: string | undefined;
  successRedirectUrl?: string | undefined;
}

/** Where a sign-in ends, as an absolute URL. */
export function landingUrl(site: string, { returnTo, successRedirectUrl }: Landing): string {
  return new URL(returnTo ?? successRedirectUrl ?? '/', site).href;
}

/** Where a sign-in ends that the person, or the access service, refused. `error`: RFC 6749 section 4.1.2.1. */
export function refusalUrl(site: string, failureRedirectUrl: string | undefined, error: string): string {
  const url = new URL(failureRedirectUrl ?? '/', site);
  url.searchParams.set('error', error);
  return url.href;
}
