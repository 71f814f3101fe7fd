// Sends a refresh token once (RFC 6749 section 6), and classifies the outcome. The refresh token counts as unused only
// in two cases: the request never reached the identity provider, or a complete response says that the request was not
// processed.
import * as oidc from 'openid-client';
import { type Dispatcher, fetch as undiciFetch } from 'undici';
import { createProviderAgent } from '../../service/auth/provider-fetch.ts';
import type { Clock } from '../../service/clock.ts';
import { ForwardingHandler } from '../../service/http/forwarding-handler.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { tracedProviderCall } from '../../service/tracing/provider-call.ts';
import type { Registration } from '../clients/registration.ts';
import type { ProviderAddresses } from '../provider-addresses.ts';
import type { OriginalTokens, RefreshOutcome, TokenResponse } from '../sessions/session.ts';
import type { VerifyJwt } from './id-token.ts';
import { findForeignToken, preloadKeys } from './refreshed-tokens.ts';

export type OidcClient = Pick<Registration, 'realm' | 'oidcClientId' | 'clientSecret'> &
  Partial<Pick<Registration, 'authentication'>>;

export interface TokenRefreshOptions {
  addresses: ProviderAddresses;
  configure(client: OidcClient): Promise<oidc.Configuration>;
  /** Returns a function that verifies JWTs with the realm's keys. */
  verifier(realm: string): VerifyJwt;
  metrics: Metrics;
  /** Timeout of a token request, in milliseconds. */
  refreshTimeout: number;
  /** The clock for dates in the header Retry-After. */
  clock: Clock;
}

/** Maximum wait in milliseconds that a Retry-After header can request. */
const longestPause = 60_000;

/**
 * The outcome of each refresh in the metric of calls to the identity provider. A refusal counts as `ok`, because the
 * identity provider responded.
 */
const callOutcomes: Record<RefreshOutcome['kind'], string> = {
  refreshed: 'ok',
  refused: 'ok',
  foreign: 'ok',
  'client-refused': 'ok',
  unused: 'unreachable',
  unknown: 'failed',
};

export function createTokenRefresh(options: TokenRefreshOptions) {
  const { addresses, configure, verifier, metrics, refreshTimeout, clock } = options;
  // Uses a separate agent, so that `close` ends only refreshes.
  const agent = createProviderAgent();

  return {
    /** Sends the refresh token, and returns the outcome. Never throws. */
    async refresh(client: OidcClient, refreshToken: string, original: OriginalTokens): Promise<RefreshOutcome> {
      const exchange = createExchange(client.realm, addresses, agent);
      const began = performance.now();
      let outcome: RefreshOutcome;
      try {
        const configuration = await configure(client);
        configuration.timeout = refreshTimeout / 1_000;
        configuration[oidc.customFetch] = exchange.fetch;
        const { issuer } = configuration.serverMetadata();
        const verify = verifier(client.realm);
        const expected = { issuer, clientId: client.oidcClientId, original, verify };
        await preloadKeys(expected);
        const response: TokenResponse = await oidc.refreshTokenGrant(configuration, refreshToken);
        const idToken = exchange.idToken();
        if (idToken !== undefined) response.id_token = idToken;
        const check = await findForeignToken(response, expected);
        outcome = check === undefined ? { kind: 'refreshed', response } : { kind: 'foreign', check };
      } catch (error) {
        outcome = failureOf(error, exchange.state(), clock);
      }
      const seconds = (performance.now() - began) / 1_000;
      metrics.dependencyCalled('identity-provider', callOutcomes[outcome.kind], seconds);
      if (outcome.kind !== 'refreshed')
        metrics.dependencyFailures.inc({ dependency: 'identity-provider', kind: `refresh-${outcome.kind}` });
      return outcome;
    },
    close: () => agent.destroy(),
  };
}

type ExchangeState = 'unsent' | 'sent' | { status: number; retryAfter: string | null; error: unknown };

/** Calls `onStart` when a connection exists, before the first byte of the request is written. */
class StartHandler extends ForwardingHandler {
  readonly #onStart: () => void;

  constructor(handler: Dispatcher.DispatchHandler, onStart: () => void) {
    super(handler);
    this.#onStart = onStart;
  }

  override onRequestStart(controller: Dispatcher.DispatchController, context: object) {
    this.#onStart();
    return super.onRequestStart(controller, context);
  }
}

/**
 * Creates the `fetch` function of one refresh. Records whether the request was sent, and whether a complete response
 * arrived. Removes the ID token from the response, because openid-client cannot compare it with the session's ID token.
 */
function createExchange(realm: string, addresses: ProviderAddresses, agent: Dispatcher) {
  let state: ExchangeState = 'unsent';
  let idToken: string | undefined;
  const noteSent = () => {
    state = 'sent';
  };
  const dispatcher = agent.compose(
    (dispatch) => (request, handler) => dispatch(request, new StartHandler(handler, noteSent)),
  );
  return {
    state: () => state,
    idToken: () => idToken,
    fetch: async (url: string, options: oidc.CustomFetchOptions) => {
      const { headers, method, redirect, signal = null } = options;
      const body = options.body instanceof URLSearchParams ? options.body.toString() : null;
      const target = addresses.rebase(addresses.providerOf(realm), url);
      const response = await tracedProviderCall('POST', 'token', () =>
        undiciFetch(target, { method, headers, redirect, signal, body, dispatcher }),
      );
      const content = await response.text();
      const { rest, error, ...taken } = takeIdToken(content);
      // Sets the status after the body has arrived, because only a complete response counts.
      state = { status: response.status, retryAfter: response.headers.get('retry-after'), error };
      idToken = taken.idToken;
      return new Response(rest, { status: response.status, headers: [...response.headers] });
    },
  };
}

/** Returns the members `id_token` and `error` of the response, and the body without the ID token. */
function takeIdToken(content: string): { idToken?: string; error?: unknown; rest: string } {
  try {
    const { id_token: idToken, ...rest } = JSON.parse(content) as { id_token?: unknown; error?: unknown };
    // If the ID token is not a string, openid-client rejects the response.
    return typeof idToken === 'string' ? { idToken, rest: JSON.stringify(rest) } : { error: rest.error, rest: content };
  } catch {
    return { rest: content };
  }
}

/** Error codes for a rejected client or secret. For a wrong secret, Keycloak sends `unauthorized_client`. */
const refusedClient = new Set<unknown>(['invalid_client', 'unauthorized_client']);

function failureOf(error: unknown, state: ExchangeState, clock: Clock): RefreshOutcome {
  if (state === 'unsent') return { kind: 'unused' };
  if (state === 'sent') return { kind: 'unknown' };
  // `invalid_grant` means that the refresh token is invalid, expired or revoked (RFC 6749 section 5.2).
  if (error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant') return { kind: 'refused' };
  const { status, retryAfter } = state;
  // The identity provider authenticates the client before it uses the refresh token (RFC 6749 sections 5.2 and 6), so
  // this token was not used. A 401 from a gateway does not have these error codes.
  if (status === 401 && refusedClient.has(state.error)) return { kind: 'client-refused' };
  // The status 429, or 503 with Retry-After, means that the request was not processed (RFC 6585 section 4, RFC 9110
  // section 15.6.4). Gateways send other error statuses even after they have forwarded the request.
  if (status === 429 || (status === 503 && retryAfter !== null))
    return { kind: 'unused', retryAfter: pauseOf(retryAfter ?? '', clock) };
  return { kind: 'unknown' };
}

/** Returns the wait that a Retry-After header requests (RFC 9110 section 10.2.3), in milliseconds, at most a minute. */
function pauseOf(retryAfter: string, clock: Clock): number {
  const milliseconds = /^\d+$/.test(retryAfter)
    ? Number(retryAfter) * 1_000
    : Date.parse(retryAfter) - clock().getTime();
  return Number.isNaN(milliseconds) ? 0 : Math.min(Math.max(milliseconds, 0), longestPause);
}
