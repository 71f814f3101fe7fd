// Validates and normalises redirect URIs when a client is configured or registered. Accepts exact URIs (RFC 9700
// section 2.1), and rejects a URI that two parsers could read differently. At sign-in, the identity provider decides
// which URI a client may use.
import { z } from 'zod';
import { localHosts } from '../url-text.ts';

export interface RedirectUriRules {
  /** Allows http redirect URIs for every host. */
  allowInsecure: boolean;
  /**
   * Allows a final `/*` in the path of a redirect URI. The identity provider then accepts every path that begins with
   * the part before the `*`.
   */
  allowWildcardPaths: boolean;
}

export type ParsedRedirectUri = { uri: string; problem?: never } | { uri?: never; problem: string };

interface RedirectUriSettings {
  ALLOW_INSECURE_REDIRECT_URIS: boolean;
  ALLOW_WILDCARD_REDIRECT_PATHS: boolean;
}

export function redirectUriRules(config: RedirectUriSettings): RedirectUriRules {
  return {
    allowInsecure: config.ALLOW_INSECURE_REDIRECT_URIS,
    allowWildcardPaths: config.ALLOW_WILDCARD_REDIRECT_PATHS,
  };
}

/** Maximum length of a redirect URI, which is part of the address to which a browser is sent. */
const longestUri = 2_000;
/** Maximum number of redirect URIs of a client. */
export const mostRedirectUris = 100;
/** Maximum number of characters of all redirect URIs of a client. A list of clients contains those of each client. */
const mostCharacters = 16_384;

/** Returns the number of redirect URIs, counted from the first, that are within the limits of a client. */
export function allowedRedirectUris(uris: readonly string[]): number {
  let characters = 0;
  const surplus = uris.findIndex((uri, index) => {
    characters += uri.length;
    return index >= mostRedirectUris || characters > mostCharacters;
  });
  return surplus === -1 ? uris.length : surplus;
}

export const redirectUriLimits = `at most ${mostRedirectUris} redirect URIs of ${mostCharacters} characters together`;

// Matches an absolute http or https URL. This pattern is stricter than URL parsers, which drop white space and accept
// backslashes and missing slashes.
const absolutePattern = /^https?:\/\/([^/?#\\\s\p{Cc}]+)((?:[/?#][^\\\s\p{Cc}]*)?)$/iu;
/** Matches a host as the URL parser returns it: an IP address, or a name in lower case and Punycode. */
const hostPattern = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\da-f:.]+\])$/;
/** Matches a dot segment, also with parameters after `;`. Several servers ignore the parameters. */
const dotSegment = /^\.{1,2}(?:;.*)?$/;

/**
 * Returns the normalised URI, or the reason why it is invalid. A valid URI is absolute (RFC 6749 section 3.1.2), has
 * the scheme http or https, and has no fragment, credentials or dot segments. It has no wildcard except the one that
 * `allowWildcardPaths` allows. Unless `allowInsecure` is set, http is allowed only for localhost, 127.0.0.1 and [::1]
 * (RFC 8252 section 7.3).
 */
export function parseRedirectUri(text: string, rules: RedirectUriRules): ParsedRedirectUri {
  const [, authority, rest = ''] = absolutePattern.exec(text) ?? [];
  // A `*` in the host passes this check, so that `hostProblem` can report it. A `*` in the port fails it.
  if (authority === undefined || !URL.canParse(text)) return { problem: 'must be an absolute http or https URL' };
  if (text.includes('#')) return { problem: 'must not have a fragment' };
  if (authority.includes('@')) return { problem: 'must not contain credentials' };
  const url = new URL(text);
  if (url.href.length > longestUri) return { problem: `must have at most ${longestUri} characters` };
  const problem = hostProblem(url, rules) ?? pathProblem(rest, rules);
  return problem === undefined ? { uri: url.href } : { problem };
}

function hostProblem({ protocol, hostname }: URL, { allowInsecure }: RedirectUriRules): string | undefined {
  if (hostname.includes('*')) return 'must not have a wildcard in its host';
  if (!hostPattern.test(hostname)) return 'must have a host name or an address';
  if (protocol === 'http:' && !allowInsecure && !localHosts.has(hostname))
    return 'must be https, except for localhost, 127.0.0.1 and [::1]';
  return undefined;
}

/**
 * Returns the problem with the path or query, if there is one. `given` is the path and query as written, because the
 * URL parser removes dot segments.
 */
function pathProblem(given: string, { allowWildcardPaths }: RedirectUriRules): string | undefined {
  const [, path, query] = (/^([^?]*)(.*)$/s.exec(given) ?? []).map(decode);
  if (path === undefined || query === undefined)
    return 'must not have invalid percent-encoding or encoded control characters';
  if (path.split(/[/\\]/).some((segment) => dotSegment.test(segment))) return 'must not have a dot segment';
  const isWildcard = allowWildcardPaths && given.endsWith('/*') && query === '';
  const exact = isWildcard ? path.slice(0, -1) : path + query;
  if (!exact.includes('*')) return undefined;
  return allowWildcardPaths ? 'must contain * only as a final /* of its path' : 'must not contain *';
}

/**
 * Decodes percent-encoding repeatedly, because a proxy may decode the URI once more. Returns undefined for invalid
 * percent-encoding and for control characters.
 */
function decode(text: string): string | undefined {
  let decoded = decodeOnce(text);
  for (let depth = 0; decoded !== undefined && depth < 5; depth += 1) {
    if (/\p{Cc}/u.test(decoded)) return undefined;
    decoded = decodeOnce(decoded) ?? decoded;
  }
  return decoded;
}

function decodeOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

const example = 'https://permits.example.org/token-handler/clients/permits-web/callback';

/** Returns a schema that parses a redirect URI into its normalised form. */
export function redirectUriSchema(rules: RedirectUriRules) {
  // The example belongs to the schema of the input, because the OpenAPI document describes requests.
  const given = z.string().meta({ examples: [example] });
  return given.transform((text, context) => {
    const { uri, problem } = parseRedirectUri(text, rules);
    if (problem !== undefined) context.addIssue(problem);
    return uri ?? '';
  });
}

/**
 * Returns the root URL of each redirect URI's host, without duplicates. After a logout, the identity provider may
 * redirect to these URLs.
 */
export function rootsOf(redirectUris: readonly string[]): string[] {
  return [...new Set(redirectUris.map((uri) => `${new URL(uri).origin}/`))];
}
