// Registers a client that an administrator has created at the identity provider. Verifies its credentials before they
// are stored. Formgate never changes or deletes such a client at the identity provider.
import * as oidc from 'openid-client';
import type { Caller, Tenant } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { ProviderAddresses } from '../provider-addresses.ts';
import { authenticate, type DiscoverProvider } from '../provider-discovery.ts';
import type { Client } from './client.ts';
import { type ClientAuthentication, clientAuthentications, registeredEvent } from './registration.ts';
import type { RegistrationStore } from './registration-store.ts';

export interface ProvidedClients {
  /** Verifies and stores the client, and replaces its earlier registration. Throws Problem. */
  register(request: ProvideRequest): Promise<void>;
}

export interface ProvideRequest {
  tenant: Tenant;
  client: Client;
  /** The credentials of the client at the identity provider: `clientId` and `clientSecret`. */
  clientId: string;
  clientSecret: string;
  by: Pick<Caller, 'subject' | 'name'>;
}

export interface ProvidedClientsOptions {
  store: Pick<RegistrationStore, 'provide'>;
  addresses: ProviderAddresses;
  discover: DiscoverProvider;
  metrics: Pick<Metrics, 'dependencyFailures'>;
  clock: Clock;
  /** Timeout of one call to the identity provider, in milliseconds. */
  timeout: number;
  /** Called after a commit that created a deletion or an event to process. */
  changed(): void;
}

export function createProvidedClients(options: ProvidedClientsOptions): ProvidedClients {
  const { store, addresses, clock, changed } = options;
  return {
    async register(request) {
      const { tenant, client, clientId, clientSecret, by } = request;
      const authentication = await verify(options, request);
      const registration = {
        ...{ tenantId: tenant.id, clientId: client.id, realm: tenant.realm, authentication, clientSecret },
        issuer: addresses.mappedIssuer(tenant.realm) ?? null,
        clientName: null,
        oidcClientId: clientId,
        management: 'provided' as const,
        registrationAccessToken: '',
        registrationClientUri: '',
        // Only the identity provider knows the redirect URIs of a provided client.
        redirectUris: [],
        registeredAt: clock(),
      };
      await store.provide(registration, registeredEvent(client, { clientId }, by), { isLimited: !client.core });
      changed();
    },
  };
}

/** Returns the method with which the client can authenticate at the token endpoint. Throws Problem. */
async function verify(options: ProvidedClientsOptions, request: ProvideRequest): Promise<ClientAuthentication> {
  const failed = (cause?: unknown) => {
    options.metrics.dependencyFailures.inc({ dependency: 'identity-provider', kind: 'client-verification' });
    return new Problem('dependency-failed', 'The identity provider failed to verify the client.', { cause });
  };
  const metadata = await options.discover(request.tenant.realm).catch((cause: unknown) => {
    throw failed(cause);
  });
  // If the metadata lacks the list of methods, the default is client_secret_basic (RFC 8414 section 2).
  const offered = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const methods = clientAuthentications.filter((method) => offered.includes(method));
  let code: string | undefined;
  for (const method of methods) {
    const judged = await attempt(options, metadata, request, method);
    if (judged.kind === 'accepted') return method;
    if (judged.kind === 'failed') throw failed(judged.cause);
    code = judged.code;
  }
  const detail =
    methods.length === 0
      ? 'cannot be used: the identity provider supports neither client_secret_basic nor client_secret_post'
      : `is not accepted with this clientId by the identity provider${code === undefined ? '' : ` (${code})`}`;
  throw invalidRequest([{ pointer: '/clientSecret', detail }]);
}

type Judgement =
  | { kind: 'accepted' }
  | { kind: 'refused'; code: string | undefined }
  | { kind: 'failed'; cause: unknown };

/**
 * Presents a nonexistent authorization code. The identity provider authenticates the client before it checks the code
 * (RFC 6749 section 4.1.3), so `invalid_grant` proves that the credentials are accepted. The request has no side
 * effect. A client credentials grant would issue a token, and a sign-in client might not be allowed to use this grant.
 */
async function attempt(
  { addresses, timeout }: ProvidedClientsOptions,
  metadata: oidc.ServerMetadata,
  { tenant, client, clientId, clientSecret }: ProvideRequest,
  authentication: ClientAuthentication,
): Promise<Judgement> {
  const authenticated = authenticate({ clientSecret, authentication });
  const configuration = new oidc.Configuration(metadata, clientId, undefined, authenticated);
  configuration.timeout = timeout / 1_000;
  configuration[oidc.customFetch] = (url, init) =>
    addresses.fetch(addresses.providerOf(tenant.realm), url, init, 'check client');
  if (addresses.insecure) oidc.allowInsecureRequests(configuration);
  try {
    await oidc.genericGrantRequest(configuration, 'authorization_code', {
      code: oidc.randomState(),
      redirect_uri: client.redirectUris[0] ?? 'https://localhost/',
      code_verifier: oidc.randomPKCECodeVerifier(),
    });
    return { kind: 'failed', cause: new Error('the identity provider accepted a code that does not exist') };
  } catch (error) {
    return judge(error);
  }
}

// For a wrong secret, Keycloak sends unauthorized_client, and Auth0 sends access_denied. An authenticated client also
// gets unauthorized_client if it is not allowed to use the authorization code grant. The token handler refuses such a
// client too, because people could not sign in with it.
const refusals = new Set(['invalid_client', 'unauthorized_client', 'access_denied']);

function judge(error: unknown): Judgement {
  if (error instanceof oidc.ResponseBodyError) {
    const isRefused = error.status === 401 || refusals.has(error.error);
    if (isRefused) return { kind: 'refused', code: /^[a-z_]{1,60}$/.test(error.error) ? error.error : undefined };
    if (error.error === 'invalid_grant') return { kind: 'accepted' };
  }
  if (error instanceof oidc.WWWAuthenticateChallengeError && error.status === 401)
    return { kind: 'refused', code: undefined };
  return { kind: 'failed', cause: error };
}
