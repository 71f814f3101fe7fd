// The rules for the addresses of a sign-in: pure. A landing address from a request never leads to another origin.

// Stricter than the URL parser, which drops white space and control characters and turns backslashes into slashes.
const absolutePattern = /^https?:\/\/([^/?#\\\s\p{Cc}]+)(\/[^\\\s\p{Cc}]*)?$/iu;

/** Why a code must not be sent to an address; undefined if this service has no objection. */
export function addressProblem(text: string): string | undefined {
  const [, authority] = absolutePattern.exec(text) ?? [];
  if (authority === undefined || !URL.canParse(text)) return 'must be an absolute http or https URL';
  if (text.includes('#')) return 'must not have a fragment';
  if (authority.includes('@')) return 'must not contain credentials';
  if (text.includes('?')) return 'must not have a query';
  // As written, because the identity provider compares the text: `/x/../clients/…` is another one.
  return /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(pathOf(text)) ? 'must not contain dot segments' : undefined;
}

/** Why a callbackUrl is invalid for the client; undefined if it is valid. */
export function callbackUrlProblem(text: string, clientId: string): string | undefined {
  const problem = addressProblem(text);
  if (problem !== undefined) return problem;
  const ending = ['clients', encodeURIComponent(clientId), 'callback'].join('/');
  return pathOf(text).endsWith(`/${ending}`) ? undefined : `must end in /${ending}`;
}

/** The path as it is written. */
function pathOf(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('//') + 2));
}

/** The deprecated fallback: the path of the configured URL, on the host of the request. The path may be any. */
export function fallbackCallbackUrl(authCallbackUrl: string, protocol: string, host: string): string {
  return `${protocol}://${host}${new URL(authCallbackUrl).pathname}`;
}

/**
 * Whether a text is a path on the same origin. Browsers read `//host` and `/\host` as another host (WHATWG URL, section
 * 4.4). They are refused in encoded form too, because a proxy may decode once.
 */
export function isLocalPath(text: string): boolean {
  if (text.length > 2_000 || !text.startsWith('/') || /[\\\s\p{Cc}]/u.test(text)) return false;
  if (/^\/(?:\/|%2f|%5c|%09|%0[ad])/i.test(text)) return false;
  const base = 'https://origin.invalid';
  return URL.canParse(text, base) && new URL(text, base).origin === base;
}

/** Where a successful sign-in lands, as an absolute URL. `path`: of the site, or absolute; its root if undefined. */
export function landingUrl(site: string, path: string | undefined): string {
  return new URL(path ?? '/', site).href;
}

/** Where a refused sign-in lands. `error`: RFC 6749 section 4.1.2.1. */
export function refusalUrl(site: string, failureRedirectUrl: string | undefined, error: string): string {
  const url = new URL(failureRedirectUrl ?? '/', site);
  url.searchParams.set('error', error);
  return url.href;
}
