// Checks that refreshed tokens belong to the person and the client of the session: the ID token as OpenID Connect Core
// 1.0 section 12.2 requires, and the subject of a JWT access token. Without an ID token, which section 12.2 allows, only
// the access token is compared. Skips `auth_time`: Keycloak changes it when the person signs in again in another tab.
import { hash } from 'node:crypto';
import * as jose from 'jose';
import { isTokenFault, type SigningKeys } from '../../service/auth/signing-keys.ts';
import type { Clock } from '../../service/clock.ts';
import { claimsOf, nonceOf, type OriginalTokens, type TokenResponse } from '../sessions/session.ts';

export interface ExpectedTokens {
  issuer: string;
  oidcClientId: string;
  keys: ReturnType<SigningKeys['ofRealm']>;
  original: OriginalTokens;
  clock: Clock;
}

// Only asymmetric algorithms: everybody who knows the client secret could forge an HMAC.
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** Seconds by which clocks may differ. */
const leeway = 5;
/** Greatest difference between `iat` and the time of the response, in seconds. */
const longestDelay = 300;

/**
 * Returns the name of the check that failed; undefined if the tokens belong to the session. Throws if the provider's
 * keys cannot be fetched.
 */
export async function findForeignToken(response: TokenResponse, expected: ExpectedTokens): Promise<string | undefined> {
  const { subject, tokens } = expected.original;
  const before = claimsOf(tokens.accessToken).sub;
  const { sub } = claimsOf(response.access_token);
  // Some providers use another identifier of the same person in access tokens, so the former one counts first.
  if (sub !== undefined && sub !== (before ?? subject)) return 'access-token-sub';
  return response.id_token === undefined ? undefined : checkIdToken(response.id_token, response.access_token, expected);
}

/**
 * Fetches the key of the session's ID token, unless it is cached. Call it before the refresh token is sent: a response
 * that could not be checked would cost the session. Throws if the provider's keys cannot be fetched.
 */
export async function preloadKeys({ keys, original }: Pick<ExpectedTokens, 'keys' | 'original'>): Promise<void> {
  const header = headerOf(original.tokens.idToken ?? '');
  if (!header) return;
  try {
    await keys(header, { payload: '', signature: '' });
  } catch (error) {
    // The provider may have replaced the key. The refreshed token names the new one.
    if (!isTokenFault(error)) throw error;
  }
}

function headerOf(token: string): jose.CompactJWSHeaderParameters | undefined {
  try {
    return jose.decodeProtectedHeader(token) as jose.CompactJWSHeaderParameters;
  } catch {
    return undefined;
  }
}

async function checkIdToken(idToken: string, accessToken: string, expected: ExpectedTokens) {
  const { issuer, oidcClientId, keys, original, clock } = expected;
  let verified: jose.JWTVerifyResult;
  try {
    verified = await jose.jwtVerify(idToken, keys, {
      ...{ issuer, audience: oidcClientId, subject: original.subject, algorithms, clockTolerance: leeway },
      currentDate: clock(),
      requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat'],
    });
  } catch (error) {
    if (!isTokenFault(error)) throw error;
    const { JWTClaimValidationFailed, JWTExpired, JOSEError } = jose.errors;
    if (error instanceof JWTClaimValidationFailed || error instanceof JWTExpired) return error.claim;
    return error instanceof JOSEError ? error.code : 'format';
  }
  return checkClaims(verified, accessToken, expected);
}

function checkClaims(
  { payload, protectedHeader }: jose.JWTVerifyResult,
  accessToken: string,
  expected: ExpectedTokens,
) {
  const { oidcClientId, original, clock } = expected;
  const { aud, azp, iat = 0, nonce, at_hash: accessHash } = payload;
  const before = original.tokens.idToken === undefined ? undefined : claimsOf(original.tokens.idToken);
  if (Math.abs(clock().getTime() / 1_000 - iat) > longestDelay) return 'iat';
  if (before && !isSameAudience(aud, before.aud)) return 'aud';
  if ((azp ?? oidcClientId) !== oidcClientId || (before && azp !== before.azp)) return 'azp';
  if (nonce !== undefined && nonce !== nonceOf(original.tokens)) return 'nonce';
  if (accessHash !== undefined && accessHash !== accessHashOf(accessToken, protectedHeader.alg)) return 'at_hash';
  return undefined;
}

function isSameAudience(one: unknown, other: unknown): boolean {
  const [some, others] = [new Set([one].flat()), new Set([other].flat())];
  return some.size === others.size && some.isSubsetOf(others);
}

/** Returns the `at_hash` of OpenID Connect Core 1.0 section 3.1.3.6. */
function accessHashOf(accessToken: string, algorithm: string): string {
  const size = /^[RPE]S(256|384|512)$/.exec(algorithm)?.[1] ?? '512';
  const digest = hash(`sha${size}`, accessToken, 'buffer');
  return digest.subarray(0, digest.length / 2).toString('base64url');
}
