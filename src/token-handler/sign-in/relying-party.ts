// The OpenID Connect relying party, built on openid-client, with PKCE (RFC 7636) and issuer identification (RFC 9207).
// The relying party stores no token, and never sends a code or a refresh token a second time.
import * as jose from 'jose';
import * as oidc from 'openid-client';
import type { SigningKeys } from '../../service/auth/signing-keys.ts';
import { type Clock, systemClock } from '../../service/clock.ts';
import { definedMembers } from '../../service/json-value.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { ProviderAddresses } from '../provider-addresses.ts';
import { authenticate } from '../provider-discovery.ts';
import type { OriginalTokens, RefreshOutcome, TokenResponse } from '../sessions/session.ts';
import type { VerifyJwt } from './id-token.ts';
import type { ProviderCache } from './provider-cache.ts';
import { type RedeemChecks, redeemCode } from './redeem-code.ts';
import type { AskedParameters } from './sign-in.ts';
import { createTokenRefresh, type OidcClient } from './token-refresh.ts';

export interface Redeemed {
  tokens: TokenResponse;
  /** The claims of the verified ID token. */
  claims: Record<string, unknown> & { sub: string };
}

export interface AuthorizationRequest {
  redirectUri: string;
  scope: string[];
  state: string;
  nonce: string;
  codeVerifier: string;
  asked: AskedParameters;
  idpHint?: string | undefined;
}

export interface RelyingParty {
  /** Returns the identity provider's address for the authorization request. Throws errors of openid-client. */
  authorizationUrl(client: OidcClient, request: AuthorizationRequest): Promise<URL>;
  /**
   * Redeems the code of an authorization response. `callback` is the callbackUrl with the query of this response.
   * Throws errors of openid-client, TokensTooLarge and IdTokenFault.
   */
  redeem(client: OidcClient, callback: URL, checks: RedeemChecks): Promise<Redeemed>;
  /** Sends the refresh token, and returns the outcome. Never throws. */
  refresh(client: OidcClient, refreshToken: string, original: OriginalTokens): Promise<RefreshOutcome>;
  /** Returns the URL for RP-Initiated Logout 1.0, or undefined if the identity provider has no end-session endpoint. */
  endSessionUrl(
    client: Pick<OidcClient, 'realm' | 'oidcClientId'>,
    hint: { idToken?: string; returnTo: string },
  ): Promise<URL | undefined>;
  close(): Promise<void>;
}

export interface RelyingPartyOptions {
  addresses: ProviderAddresses;
  providers: ProviderCache;
  signingKeys: Pick<SigningKeys, 'ofRealm'>;
  metrics: Metrics;
  /** Timeout of a refresh in milliseconds. It is long, because an incomplete refresh ends the session. */
  refreshTimeout?: number;
  /** The clock for checks of the times in tokens. The default is the system clock, which openid-client uses too. */
  clock?: Clock;
}

export function createRelyingParty(options: RelyingPartyOptions): RelyingParty {
  const { addresses, providers, signingKeys, metrics, refreshTimeout = 30_000, clock = systemClock } = options;
  /** Returns the function that verifies ID tokens with the realm's keys. */
  const verifier = (realm: string): VerifyJwt => {
    const keys = signingKeys.ofRealm(realm, 'provider');
    return (token, settings) => jose.jwtVerify(token, keys, settings);
  };

  async function configure(client: OidcClient): Promise<oidc.Configuration> {
    return providers.configuration(client.realm, client.oidcClientId, authenticate(client));
  }

  const tokenRefresh = createTokenRefresh({ addresses, configure, verifier, metrics, refreshTimeout, clock });
  return {
    async authorizationUrl(client, request) {
      const configuration = await configure(client);
      const url = oidc.buildAuthorizationUrl(configuration, {
        redirect_uri: request.redirectUri,
        scope: request.scope.join(' '),
        state: request.state,
        nonce: request.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(request.codeVerifier),
        code_challenge_method: 'S256',
        ...definedMembers({ ...request.asked, kc_idp_hint: request.idpHint }),
      });
      return providers.publicUrl(client.realm, url);
    },
    async redeem(client, callback, checks) {
      const configuration = await configure(client);
      return redeemCode({ configuration, verify: verifier(client.realm), metrics }, callback, checks);
    },
    refresh: tokenRefresh.refresh,
    async endSessionUrl({ realm, oidcClientId }, { idToken, returnTo }) {
      const configuration = await providers.configuration(realm, oidcClientId, oidc.None());
      if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined;
      const url = oidc.buildEndSessionUrl(configuration, {
        ...(idToken !== undefined && { id_token_hint: idToken }),
        post_logout_redirect_uri: returnTo,
      });
      return providers.publicUrl(realm, url);
    },
    close: tokenRefresh.close,
  };
}
