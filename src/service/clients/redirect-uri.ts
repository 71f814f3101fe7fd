// The rules of redirect URIs, and what follows from one: pure. They are applied to what is registered; whether a client
// may use an address is the access service's to say.

export interface RedirectUriRules {
  /** Lets http pass for any host, not only for this machine. */
  allowInsecure: boolean;
}

const localHosts = new Set(['localhost', '127.0.0.1', '[::1]']);
// Stricter than the parser of URLs, which drops white space, and takes back slashes and missing slashes as it likes.
const absolutePattern = /^https?:\/\/([^/?#\\\s\p{Cc}]+)[^\\\s\p{Cc}]*$/iu;

/**
 * Why a text is no redirect URI, undefined for one that is: absolute (RFC 6749 section 3.1.2), http or https, without
 * fragment or credentials; http only for localhost, 127.0.0.1 and [::1] (RFC 8252 section 7.3), unless allowed.
 */
export function redirectUriProblem(text: string, { allowInsecure }: RedirectUriRules): string | undefined {
  const [, authority] = absolutePattern.exec(text) ?? [];
  if (authority === undefined || !URL.canParse(text)) return 'must be an absolute http or https URL';
  if (text.includes('#')) return 'must not have a fragment';
  if (authority.includes('@')) return 'must not hold credentials';
  const { protocol, hostname } = new URL(text);
  if (protocol === 'http:' && !allowInsecure && !localHosts.has(hostname))
    return 'must be https, except for localhost, 127.0.0.1 and [::1]';
  return undefined;
}

/** The roots of the hosts of redirect URIs, each once: where a logout at the access service may return to. */
export function rootsOf(redirectUris: readonly string[]): string[] {
  return [...new Set(redirectUris.map((uri) => `${new URL(uri).origin}/`))];
}
