// The OpenID Connect relying party, built on openid-client, with PKCE (RFC 7636) and issuer identification (RFC 9207).
// It stores no token, and never sends a code or a refresh token a second time.
import * as oidc from 'openid-client';
import { Agent, fetch as undiciFetch } from 'undici';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Registration } from '../clients/registration.ts';
import type { ProviderAddresses } from '../provider-addresses.ts';
import { authenticate, type DiscoverProvider } from '../provider-discovery.ts';
import type { RefreshOutcome, TokenResponse } from '../sessions/session.ts';
import type { AskedParameters } from './attempts.ts';
import { isUnknownClient } from './failures.ts';
import { createProviderCache } from './provider-cache.ts';
import { redeemCode } from './redeem-code.ts';

export type OidcClient = Pick<Registration, 'realm' | 'oidcClientId' | 'clientSecret'> &
  Partial<Pick<Registration, 'authentication'>>;

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
  /** Returns the address to which the browser is redirected. Throws errors of openid-client. */
  authorizationUrl(client: OidcClient, request: AuthorizationRequest): Promise<URL>;
  /**
   * `callback` is the callbackUrl with the query of the authorization response. `maxAge` is the requested `max_age`: the
   * seconds for which the person may have been signed in. Throws errors of openid-client.
   */
  redeem(
    client: OidcClient,
    callback: URL,
    checks: Pick<AuthorizationRequest, 'state' | 'nonce' | 'codeVerifier'> & { maxAge?: number | undefined },
  ): Promise<Redeemed>;
  refresh(client: OidcClient, refreshToken: string): Promise<RefreshOutcome>;
  /** Returns the URL for RP-Initiated Logout 1.0; undefined if the identity provider has no such endpoint. */
  endSessionUrl(
    client: Pick<OidcClient, 'realm' | 'oidcClientId'>,
    hint: { idToken?: string; returnTo: string },
  ): Promise<URL | undefined>;
  close(): Promise<void>;
}

export interface RelyingPartyOptions {
  addresses: ProviderAddresses;
  discover: DiscoverProvider;
  metrics: Metrics;
  /** Timeout of one call at sign-in, in milliseconds. */
  timeout: number;
}

/** Timeout of a refresh, in seconds. It is long, because a refresh that is abandoned ends the session. */
const refreshTimeout = 30;

export function createRelyingParty({ addresses, discover, metrics, timeout }: RelyingPartyOptions): RelyingParty {
  const providers = createProviderCache({ addresses, discover, timeout });
  // Opens a new connection for each refresh. If the server closed a reused connection, the outcome would be unknown.
  const agent = new Agent({ pipelining: 0, connect: { timeout: 5_000 } });

  async function configure(client: OidcClient): Promise<oidc.Configuration> {
    return providers.configuration(client.realm, client.oidcClientId, authenticate(client));
  }

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
        ...definedOf(request.asked),
        ...(request.idpHint !== undefined && { kc_idp_hint: request.idpHint }),
      });
      return providers.publicUrl(client.realm, url);
    },
    async redeem(client, callback, checks) {
      const configuration = await configure(client);
      const verify = await providers.verifier(client.realm);
      return redeemCode({ configuration, verify, metrics }, callback, checks);
    },
    async refresh(client, refreshToken) {
      const exchange = createExchange(addresses, agent);
      try {
        const configuration = await configure(client);
        configuration.timeout = refreshTimeout;
        configuration[oidc.customFetch] = exchange.fetch;
        return { kind: 'refreshed', response: await oidc.refreshTokenGrant(configuration, refreshToken) };
      } catch (error) {
        const kind = refreshFailure(error, exchange.state());
        metrics.dependencyFailures.inc({ dependency: 'access', kind: `refresh-${kind}` });
        return { kind };
      }
    },
    async endSessionUrl({ realm, oidcClientId }, { idToken, returnTo }) {
      const configuration = await providers.configuration(realm, oidcClientId, oidc.None());
      if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined;
      const url = oidc.buildEndSessionUrl(configuration, {
        ...(idToken !== undefined && { id_token_hint: idToken }),
        post_logout_redirect_uri: returnTo,
      });
      return providers.publicUrl(realm, url);
    },
    close: () => agent.destroy(),
  };
}

function definedOf(asked: AskedParameters): Record<string, string> {
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}

type ExchangeState = 'unsent' | 'sent' | { status: number };

/** Sends one request, and records whether it was sent and whether a complete response arrived. */
function createExchange(addresses: ProviderAddresses, agent: Agent) {
  let state: ExchangeState = 'unsent';
  return {
    state: () => state,
    fetch: async (url: string, options: oidc.CustomFetchOptions) => {
      const target = addresses.rebase(url);
      const { headers, method, redirect, signal = null } = options;
      const body = options.body instanceof URLSearchParams ? options.body.toString() : null;
      state = 'sent';
      try {
        const response = await undiciFetch(target, { method, headers, redirect, signal, body, dispatcher: agent });
        // Sets the status only when the response is complete.
        const content = await response.arrayBuffer();
        state = { status: response.status };
        return new Response(content, { status: response.status, headers: [...response.headers] });
      } catch (error) {
        if (isNeverSent(error)) state = 'unsent';
        throw error;
      }
    },
  };
}

const neverSentCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** True if a request failed before a connection was established. */
function isNeverSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && neverSentCodes.has(String(cause.code));
}

function refreshFailure(error: unknown, state: ExchangeState): Exclude<RefreshOutcome['kind'], 'refreshed'> {
  if (state === 'unsent') return 'unused';
  if (state === 'sent') return 'unknown';
  // The refresh token is invalid, expired or revoked (RFC 6749 section 5.2).
  if (error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant') return 'refused';
  if (isUnknownClient(error)) return 'client-refused';
  // After any other complete error response the token is unused. After an invalid success response it may be used.
  return state.status >= 400 ? 'unused' : 'unknown';
}
