// Talks OpenID Connect with the access service, by openid-client: the part of the relying party (OpenID Connect Core 1.0,
// RFC 7636, RFC 9207). Discovery and keys are kept by realm. It stores no token, and never presents a code or a refresh
// token a second time.
import * as oidc from 'openid-client';
import { Agent, fetch as undiciFetch } from 'undici';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Registration } from '../clients/registration.ts';
import type { ProviderAddresses } from '../provider-addresses.ts';
import type { RefreshOutcome } from '../sessions/refresh.ts';
import type { TokenAnswer } from '../sessions/token-set.ts';
import { isUnknownClient } from './failures.ts';
import { createProviderCache } from './provider-cache.ts';

export type OidcClient = Pick<Registration, 'realm' | 'oidcClientId' | 'clientSecret'>;

export interface Redeemed {
  answer: TokenAnswer;
  /** Of the ID token, which was checked. */
  claims: Record<string, unknown> & { sub: string };
}

export interface AuthorizationRequest {
  redirectUri: string;
  scope: string[];
  state: string;
  nonce: string;
  codeVerifier: string;
  prompt?: string | undefined;
  idpHint?: string | undefined;
}

export interface RelyingParty {
  /** Where the browser is sent. Throws what openid-client throws. */
  authorizationUrl(client: OidcClient, request: AuthorizationRequest): Promise<URL>;
  /** `answered`: the callbackUrl with the query that the access service added. Throws what openid-client throws. */
  redeem(
    client: OidcClient,
    answered: URL,
    checks: Pick<AuthorizationRequest, 'state' | 'nonce' | 'codeVerifier'>,
  ): Promise<Redeemed>;
  refresh(client: OidcClient, refreshToken: string): Promise<RefreshOutcome>;
  /** OpenID Connect RP-Initiated Logout 1.0; undefined where the access service has no such endpoint. */
  endSessionUrl(
    client: Pick<OidcClient, 'realm' | 'oidcClientId'>,
    hint: { idToken?: string; returnTo: string },
  ): Promise<URL | undefined>;
  close(): Promise<void>;
}

export interface RelyingPartyOptions {
  addresses: ProviderAddresses;
  metrics: Metrics;
  /** Milliseconds of one call at sign-in. */
  timeout: number;
}

/** Seconds of a refresh: long, because giving up gives up the session. */
const refreshTimeout = 30;

export function createRelyingParty({ addresses, metrics, timeout }: RelyingPartyOptions): RelyingParty {
  const providers = createProviderCache({ addresses, timeout });
  // A connection of its own for each refresh: on a kept one, a server that is closing it makes the outcome unknown.
  const agent = new Agent({ pipelining: 0, connect: { timeout: 5_000 } });

  async function configure(client: OidcClient): Promise<oidc.Configuration> {
    const authentication = oidc.ClientSecretBasic(client.clientSecret);
    return providers.configuration(client.realm, client.oidcClientId, authentication);
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
        ...(request.prompt !== undefined && { prompt: request.prompt }),
        ...(request.idpHint !== undefined && { kc_idp_hint: request.idpHint }),
      });
      return providers.publicUrl(client.realm, url);
    },
    async redeem(client, answered, { state, nonce, codeVerifier }) {
      const configuration = await configure(client);
      oidc.enableNonRepudiationChecks(configuration);
      const expected = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: codeVerifier };
      const answer = await oidc.authorizationCodeGrant(configuration, answered, {
        ...expected,
        idTokenExpected: true,
      });
      providers.keepKeys(client.realm, configuration);
      const claims = answer.claims();
      if (!claims) throw new Error('the token answer has no ID token');
      return { answer, claims };
    },
    async refresh(client, refreshToken) {
      const exchange = createExchange(addresses, agent);
      try {
        const configuration = await configure(client);
        configuration.timeout = refreshTimeout;
        configuration[oidc.customFetch] = exchange.fetch;
        return { kind: 'refreshed', answer: await oidc.refreshTokenGrant(configuration, refreshToken) };
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

type ExchangeState = 'unsent' | 'sent' | { status: number };

interface Exchange {
  fetch: oidc.CustomFetch;
  state(): ExchangeState;
}

/** One request of which it is known, afterwards, how far it came. */
function createExchange(addresses: ProviderAddresses, agent: Agent): Exchange {
  let state: ExchangeState = 'unsent';
  return {
    state: () => state,
    async fetch(url, options) {
      const target = addresses.rebase(url);
      const { body, headers, method, redirect } = options;
      const text = body instanceof URLSearchParams ? body.toString() : null;
      const signal = options.signal ?? null;
      state = 'sent';
      try {
        const response = await undiciFetch(target, {
          method,
          headers,
          redirect,
          signal,
          body: text,
          dispatcher: agent,
        });
        // Whole before it counts: an answer that breaks off says nothing.
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

/** Failed before there was a connection. */
function isNeverSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && neverSentCodes.has(String(cause.code));
}

function refreshFailure(error: unknown, state: ExchangeState): Exclude<RefreshOutcome['kind'], 'refreshed'> {
  if (state === 'unsent') return 'unused';
  if (state === 'sent') return 'unknown';
  // RFC 6749 section 5.2
  if (error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant') return 'refused';
  if (isUnknownClient(error)) return 'client-refused';
  // Any other complete error leaves the token as it was; an answer of success that is not usable does not.
  return state.status >= 400 ? 'unused' : 'unknown';
}
