// Checks that refreshed tokens belong to the person and the client of the session. Checks the ID token as OpenID
// Connect Core 1.0 section 12.2 requires, and the subject of a JWT access token. Section 12.2 allows a response without
// an ID token; then only the access token is checked. `auth_time` is not compared, because Keycloak changes it when the
// person signs in again in another tab. Times are not checked either, because a pod with a wrong clock would end the
// session.
import { claimsOf, nonceOf, type OriginalTokens, type TokenResponse } from '../sessions/session.ts';
import { type IdTokenClaims, IdTokenFault, type VerifyJwt, verifyIdToken } from './id-token.ts';

export interface ExpectedTokens {
  issuer: string;
  /** Id of the session's OAuth client. */
  clientId: string;
  original: OriginalTokens;
  verify: VerifyJwt;
}

/**
 * Returns the name of the check that failed, or undefined if the tokens belong to the session. Throws if the identity
 * provider's keys cannot be fetched.
 */
export async function findForeignToken(response: TokenResponse, expected: ExpectedTokens): Promise<string | undefined> {
  const { subject, tokens } = expected.original;
  const before = claimsOf(tokens.accessToken).sub;
  const { sub } = claimsOf(response.access_token);
  // Some identity providers use different subjects for a person in access tokens and in ID tokens. The new access token
  // is therefore compared with the previous access token, if that token has a subject.
  if (sub !== undefined && sub !== (before ?? subject)) return 'access-token-sub';
  return response.id_token === undefined ? undefined : checkIdToken(response.id_token, response.access_token, expected);
}

/**
 * Fetches the key that verifies the session's ID token, if this key is not cached. Call this before the refresh token
 * is sent, because a response that cannot be checked would end the session. Throws if the identity provider's keys
 * cannot be fetched.
 */
export async function preloadKeys(expected: ExpectedTokens): Promise<void> {
  const { idToken, accessToken } = expected.original.tokens;
  if (idToken === undefined) return;
  try {
    await verifyIdToken(idToken, expected.verify, { ...expected, now: undefined, accessToken });
  } catch (error) {
    // Accepts an invalid ID token here, because the identity provider may have replaced its key. The refreshed ID token
    // will name the new key.
    if (!(error instanceof IdTokenFault)) throw error;
  }
}

async function checkIdToken(idToken: string, accessToken: string, expected: ExpectedTokens) {
  const { issuer, clientId, original, verify } = expected;
  const { subject: sub } = original;
  try {
    const claims = await verifyIdToken(idToken, verify, { issuer, clientId, now: undefined, accessToken, sub });
    return compareIdToken(claims, original);
  } catch (error) {
    if (error instanceof IdTokenFault) return error.rule;
    throw error;
  }
}

/** Compares claims of a refreshed ID token with the sign-in's ID token (OpenID Connect Core 1.0, section 12.2). */
function compareIdToken({ aud, azp, nonce }: IdTokenClaims, { tokens }: OriginalTokens): string | undefined {
  const before = tokens.idToken === undefined ? undefined : claimsOf(tokens.idToken);
  if (before && !isSameAudience(aud, before.aud)) return 'aud';
  if (before && azp !== before.azp) return 'azp';
  return nonce !== undefined && nonce !== nonceOf(tokens) ? 'nonce' : undefined;
}

function isSameAudience(one: unknown, other: unknown): boolean {
  const [some, others] = [new Set([one].flat()), new Set([other].flat())];
  return some.size === others.size && some.isSubsetOf(others);
}
