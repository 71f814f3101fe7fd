// Validates redirect URIs when a client is registered. At sign-in, the identity provider decides which URI a client may use.

export interface RedirectUriRules {
  /** Allows http for every host. */
  allowInsecure: boolean;
}

const localHosts = new Set(['localhost', '127.0.0.1', '[::1]']);
// Stricter than URL parsers, which drop white space and accept backslashes and missing slashes.
const absolutePattern = /^https?:\/\/([^/?#\\\s\p{Cc}]+)[^\\\s\p{Cc}]*$/iu;

/**
 * Returns why a redirect URI is invalid, or undefined if it is valid. A valid URI is absolute (RFC 6749 section 3.1.2),
 * has the scheme http or https, and has no fragment or credentials. Unless `allowInsecure` is set, http is allowed only
 * for localhost, 127.0.0.1 and [::1] (RFC 8252 section 7.3).
 */
export function redirectUriProblem(text: string, { allowInsecure }: RedirectUriRules): string | undefined {
  const [, authority] = absolutePattern.exec(text) ?? [];
  if (authority === undefined || !URL.canParse(text)) return 'must be an absolute http or https URL';
  if (text.includes('#')) return 'must not have a fragment';
  if (authority.includes('@')) return 'must not contain credentials';
  const { protocol, hostname } = new URL(text);
  if (protocol === 'http:' && !allowInsecure && !localHosts.has(hostname))
    return 'must be https, except for localhost, 127.0.0.1 and [::1]';
  return undefined;
}

/** Returns the root URLs of the redirect URIs' hosts. After a logout, the identity provider may redirect to them. */
export function rootsOf(redirectUris: readonly string[]): string[] {
  return [...new Set(redirectUris.map((uri) => `${new URL(uri).origin}/`))];
}
