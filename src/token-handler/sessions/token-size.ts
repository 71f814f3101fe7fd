// Limits the size of a session's token set. A tenant controls the roles and claims in its realm's tokens. A list of
// sessions reads 100 token sets at once. Token sets of unlimited size could therefore exhaust the memory of every pod.
import { type TokenResponse, type TokenSet, tokenSetOf } from './session.ts';

/**
 * Maximum size of a token set as JSON, in bytes. The set contains all tokens, and a copy of the role names. A set with
 * an access token of 32 KiB fits. Larger access tokens would be useless, because upstreams reject such headers by
 * default: Node.js accepts 16 KiB for all headers, and nginx 8 KiB for one header.
 */
export const mostTokenSetSize = 65_536;

/** Thrown if the identity provider issued tokens that are too large for a session. */
export class TokensTooLarge extends Error {
  override name = 'TokensTooLarge';

  constructor() {
    super(`the tokens of the identity provider need more than ${mostTokenSetSize} bytes in a session`);
  }
}

/** True if the token set of this response would be too large. `previous` is the token set before a refresh. */
export function areTokensTooLarge(response: TokenResponse, previous?: TokenSet): boolean {
  const { access_token: access, refresh_token: refresh = previous?.refreshToken } = response;
  if (lengthOf([access, refresh, response.id_token ?? previous?.idToken]) > mostTokenSetSize) return true;
  const set = tokenSetOf(response, 0, previous);
  // The roles are measured before they are written as JSON. The name of a client is repeated in each of its roles, so
  // the role names of a 64 KiB token can take 100 MB.
  return lengthOf(set.roles) > mostTokenSetSize || Buffer.byteLength(JSON.stringify(set)) > mostTokenSetSize;
}

/**
 * Limits of the session cache: 64 MiB, which is enough for about 8,000 sessions. A session counts with all its tokens
 * and role names, because a tenant controls their sizes.
 */
export const sessionCacheLimits = {
  maxSize: 64 * 1024 * 1024,
  sizeCalculation: ({ tokens }: { tokens: TokenSet }): number =>
    3_000 +
    lengthOf([tokens.accessToken, tokens.refreshToken, tokens.idToken]) +
    lengthOf(tokens.roles) +
    roleOverhead * tokens.roles.length,
};

/** Bytes that V8 uses for a short string in an array, besides its characters. */
const roleOverhead = 32;

function lengthOf(texts: readonly (string | undefined)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
