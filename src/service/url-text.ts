/** The hosts of this machine, as `URL.hostname` returns them. */
export const localHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * True if a URL has a query or a fragment, even an empty one (RFC 3986 sections 3.4 and 3.5), which `search` and `hash`
 * of `URL` do not show. A path that is appended to such a URL would become a part of its query or fragment.
 */
export function hasQueryOrFragment(url: string): boolean {
  return url.includes('?') || url.includes('#');
}

/**
 * Returns the text without the slashes at its end. A regular expression such as `/\/+$/` would take quadratic time for
 * many slashes that are followed by another character, and tenants write some of these texts.
 */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}
