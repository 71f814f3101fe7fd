// Limits which caches may reuse a response. The upstream sees an access token, but caches between the browser and the
// token handler see only the session's cookie. Such caches would therefore not apply HTTP's rules for responses to
// requests with an Authorization header, and could show one person's data to another.
import { remembered } from './remembered.ts';

type Headers = Record<string, string | string[]>;

/** `CDN-Cache-Control` replaces `Cache-Control` in the caches of delivery networks (RFC 9213). */
const cacheControls = ['cache-control', 'cdn-cache-control'];

/**
 * If a cache may store the response, adds `Cookie` to `Vary`. Also adds `private` to each header of `cacheControls`
 * that does not say whether shared caches may reuse the response. A response without Cache-Control needs no change,
 * because the token handler sets `no-store`.
 */
export function limitCaches(headers: Headers, status: number): void {
  let mayBeStored = false;
  for (const name of cacheControls) {
    const value = asText(headers[name]);
    if (value === undefined) continue;
    const sharing = sharingOf(value);
    if (sharing === 'never stored') continue;
    mayBeStored = true;
    // Adds `private` at the beginning, because the value may end within an unterminated quoted string.
    if (sharing === 'not stated') headers[name] = listWith('private', value);
  }
  if (mayBeStored) varyByCookie(headers, status);
}

/** Adds `Cookie` to `Vary`, so that caches reuse the response only for equal cookies (RFC 9111 section 4.1). */
function varyByCookie(headers: Headers, status: number): void {
  const vary = asText(headers.vary);
  // A 304 without Vary keeps the Vary of the cached response (RFC 9111 section 3.2), which already names Cookie.
  if (vary === undefined && status === 304) return;
  const names = membersOf(vary ?? '');
  if (!names.includes('*') && !names.includes('cookie')) headers.vary = listWith(vary ?? '', 'Cookie');
}

type Sharing = 'never stored' | 'stated' | 'not stated';

/** Limits of the cache for results of `sharingOf`. Upstreams send few different Cache-Control values. */
const rememberedValues = { most: 500, longest: 100 };

/**
 * Reads a Cache-Control value. `stated` means that the value itself says whether shared caches may reuse a response to
 * a request with an Authorization header (RFC 9111 section 3.5). `private` with field names does not say so, because it
 * restricts only these fields.
 */
const sharingOf = remembered((value): Sharing => {
  // The pattern also matches an unterminated quoted string, up to the end of the value. Otherwise, the replacement
  // might not take linear time.
  const directives = membersOf(value.replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, 'quoted'));
  if (directives.includes('no-store')) return 'never stored';
  const isStated = directives.some((directive) => /^(?:private|public|must-revalidate|s-maxage=.*)$/.test(directive));
  return isStated ? 'stated' : 'not stated';
}, rememberedValues);

/** Returns the members of a comma-separated list in lower case. */
function membersOf(list: string): string[] {
  return list.split(',').map((member) => member.trim().toLowerCase());
}

function listWith(first: string, second: string): string {
  return [first, second].filter((part) => part.trim() !== '').join(', ');
}

/** Returns the lines of a header as one list (RFC 9110 section 5.3). */
export function asText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
