// Redeems an authorization code, and verifies the ID token in the response. Counts failures of the identity provider. A
// code is never sent a second time.
import * as oidc from 'openid-client';
import { systemClock } from '../../service/clock.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { TokenResponse } from '../sessions/session.ts';
import { areTokensTooLarge, TokensTooLarge } from '../sessions/token-size.ts';
import { failureKind } from './failures.ts';
import { type IdTokenClaims, type VerifyJwt, verifyIdToken } from './id-token.ts';

export interface RedeemOptions {
  /** The openid-client configuration of the client to which the code was issued. */
  configuration: oidc.Configuration;
  verify: VerifyJwt;
  metrics: Pick<Metrics, 'dependencyFailures'>;
}

/** The values of this sign-in that the identity provider's response must match. */
export interface RedeemChecks {
  state: string;
  nonce: string;
  codeVerifier: string;
  /**
   * The earliest accepted time at which the person signed in at the identity provider, in milliseconds since 1970. Set
   * only if the authorization request had a `max_age`.
   */
  earliestAuthTime?: number | undefined;
}

/**
 * `callback` is the callbackUrl with the query of the authorization response. Throws errors of openid-client,
 * TokensTooLarge, IdTokenFault, and a network error if the identity provider's keys cannot be fetched.
 */
export async function redeemCode(
  { configuration, verify, metrics }: RedeemOptions,
  callback: URL,
  checks: RedeemChecks,
): Promise<{ tokens: TokenResponse; claims: IdTokenClaims }> {
  const { state: expectedState, nonce: expectedNonce, codeVerifier: pkceCodeVerifier } = checks;
  try {
    const tokens = await oidc.authorizationCodeGrant(configuration, callback, {
      expectedState,
      expectedNonce,
      pkceCodeVerifier,
      idTokenExpected: true,
    });
    if (areTokensTooLarge(tokens)) throw new TokensTooLarge();
    // The option `idTokenExpected` makes openid-client reject responses without an ID token.
    const claims = await verifyIdToken(tokens.id_token as string, verify, {
      issuer: configuration.serverMetadata().issuer,
      clientId: configuration.clientMetadata().client_id,
      // Uses the system clock, as openid-client does for its own checks.
      now: systemClock(),
      accessToken: tokens.access_token,
      code: callback.searchParams.get('code') ?? undefined,
      earliestAuthTime: checks.earliestAuthTime,
    });
    return { tokens, claims };
  } catch (error) {
    const kind = failureKind(error);
    if (kind !== undefined) metrics.dependencyFailures.inc({ dependency: 'identity-provider', kind });
    throw error;
  }
}
