// Gets access tokens for the service's own account in the realm core (client credentials, RFC 6749 section 4.4). The
// token is kept only in memory. Neither the token nor the secret appears in a log, an error or a URL.
import { z } from 'zod';
import type { Clock } from '../service/clock.ts';
import { WrongSetting } from '../service/operations/startup-check.ts';
import { type CallSettings, createPlatformClient, type PlatformClient, type TokenSource } from './http-client.ts';
import { PlatformError } from './platform-error.ts';
import { pathOf } from './url-path.ts';

export interface ServiceAccountOptions extends CallSettings {
  /** Base URL of the identity provider for requests of this process, such as `http://keycloak:8080/auth`. */
  accessUrl: string;
  /** The realm of the account. Default: `core`. */
  realm?: string | undefined;
  clientId: string;
  clientSecret: string;
  clock: Clock;
}

export interface ServiceAccount extends TokenSource {
  /** True if the identity provider rejected the credentials when a token was last requested. */
  readonly isRefused: boolean;
  /**
   * Returns a valid token from the cache, or gets one if the cache has none. A token is renewed in the background
   * during its last 60 s, or the last quarter of its lifetime if that is shorter. Concurrent renewals share one
   * request. Throws PlatformError of service `identity-provider`.
   */
  token(): Promise<string>;
  /**
   * Returns a token to replace one that a service refused. A token is renewed at most once in 5 s. Otherwise, a service
   * that refuses every token would cause a flood of requests to the identity provider. Until the new token has
   * arrived, `token` returns the refused one, because other services may accept it.
   */
  renew(refused: string): Promise<string>;
  /** Gets a token. Throws WrongSetting if the identity provider rejects the credentials, or the errors of `token`. */
  authenticate(): Promise<void>;
}

interface Held {
  token: string;
  renewAt: number;
  uselessAt: number;
}

const renewalInterval = 5_000;

const tokenSchema = z.looseObject({
  access_token: z.string().min(1),
  // RFC 6749 section 5.1 recommends this member but does not require it.
  expires_in: z.number().positive().default(60),
});

export function createServiceAccount(options: ServiceAccountOptions): ServiceAccount {
  const { accessUrl, clientId, clock } = options;
  const client = createPlatformClient({
    ...options,
    service: 'identity-provider',
    baseUrl: () => Promise.resolve(accessUrl),
    // The request carries no request id and no trace, because one token serves many requests, and the identity provider
    // must not get Formgate's ids (decision 0075).
    sendsScope: false,
    // service/auth/provider-fetch.ts explains why each call opens a new connection.
    keepsConnections: false,
  });
  let held: Held | undefined;
  let flight: Promise<string> | undefined;
  let isRefused = false;
  let attemptedAt = Number.NEGATIVE_INFINITY;
  let refusedAt = Number.NEGATIVE_INFINITY;

  async function signIn(): Promise<string> {
    const startedAt = clock().getTime();
    attemptedAt = startedAt;
    try {
      const { access_token: token, expires_in: seconds } = await requestToken(client, options);
      const life = seconds * 1_000;
      const renewAt = startedAt + life - Math.min(60_000, life / 4);
      const uselessAt = startedAt + life - Math.min(10_000, life / 10);
      held = { token, renewAt, uselessAt };
      isRefused = false;
      return token;
    } catch (error) {
      const failure = withDenial(error);
      isRefused ||= isDenial(failure);
      throw failure;
    } finally {
      flight = undefined;
    }
  }

  function renewed(): Promise<string> {
    flight ??= signIn();
    return flight;
  }

  async function token(): Promise<string> {
    const now = clock().getTime();
    if (!held || now >= held.uselessAt) return renewed();
    if (now >= held.renewAt && !isRecent(attemptedAt, now)) renewed().catch(() => undefined);
    return held.token;
  }

  return {
    get isRefused() {
      return isRefused;
    },
    token,
    // A token that is still held says nothing about credentials that were refused since.
    authenticate: () => (isRefused ? renewed() : token()).then(() => undefined, explainRejection(clientId)),
    async renew(refused) {
      if (held && held.token !== refused) return held.token;
      if (flight) return flight;
      const now = clock().getTime();
      if (held && isRecent(refusedAt, now)) return held.token;
      refusedAt = now;
      // Other services may still accept the held token, so it is kept until there is a new one.
      return renewed();
    },
  };
}

function requestToken(client: PlatformClient, { realm = 'core', clientId, clientSecret }: ServiceAccountOptions) {
  return client.request({
    operation: 'sign in the service account',
    method: 'POST',
    path: `${pathOf('identity-provider', 'realms', realm)}/protocol/openid-connect/token`,
    form: { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret },
    idempotent: true,
    response: tokenSchema,
  });
}

/** True if less than the renewal interval has passed. The difference is negative if the clock was set back. */
function isRecent(time: number, now: number): boolean {
  return Math.abs(now - time) < renewalInterval;
}

/**
 * Returns PlatformError `denied` for a rejected request. The identity provider may reject wrong credentials with a 400
 * (RFC 6749 section 5.2). The fault is in the service's account, not in the caller's request.
 */
function withDenial(error: unknown): unknown {
  if (!(error instanceof PlatformError && error.kind === 'rejected')) return error;
  return new PlatformError('identity-provider', 'denied', { upstreamStatus: error.upstreamStatus });
}

function isDenial(error: unknown): error is PlatformError {
  return error instanceof PlatformError && error.kind === 'denied';
}

function explainRejection(clientId: string): (error: unknown) => never {
  return (error) => {
    if (!isDenial(error)) throw error;
    throw new WrongSetting(
      "the identity provider rejected this service's credentials; check CLIENT_ID and CLIENT_SECRET",
      { clientId, status: error.upstreamStatus },
    );
  };
}
