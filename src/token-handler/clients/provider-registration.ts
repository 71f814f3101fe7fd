// Registers clients at the identity provider (RFC 7591, with openid-client), and changes and deletes them (RFC 7592,
// with plain requests). Distinguishes failed calls from calls whose outcome is unknown. Never repeats a change.
import * as oidc from 'openid-client';
import type { HttpAgent } from '../../platform/http-agent.ts';
import { exchange, type RawResponse } from '../../platform/http-exchange.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { jsonOrUndefined } from '../../service/json-value.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Provider, ProviderAddresses } from '../provider-addresses.ts';
import type { DiscoverProvider } from '../provider-discovery.ts';
import type { ClientMetadata } from './client-metadata.ts';
import { changedSchema, issuedSchema } from './issued-credentials.ts';
import type { Registration, StoredRegistration } from './registration.ts';

/** The credentials that the identity provider issues for a client. */
export type IssuedClient = Pick<
  Registration,
  'oidcClientId' | 'clientSecret' | 'registrationAccessToken' | 'registrationClientUri' | 'management'
>;

/** `code` is the identity provider's error code, such as `invalid_redirect_uri`. */
export type RegisterOutcome =
  | { kind: 'registered'; client: IssuedClient }
  /** The identity provider rejected the initial access token (`token-refused`) or the request itself (`refused`). */
  | { kind: 'token-refused' | 'refused'; code: string | undefined }
  /** The identity provider has no dynamic registration. */
  | { kind: 'unsupported' }
  /**
   * The identity provider failed, or sent an invalid response. If `mayExist` is true, a client may have been created.
   */
  | { kind: 'failed'; mayExist: boolean; cause: unknown };

export type ChangeOutcome =
  /** `client` has the latest credentials that the identity provider issued. Absent if the credentials are unknown. */
  | { kind: 'changed' | 'failed'; client?: StoredRegistration }
  | { kind: 'refused'; code: string | undefined }
  /** The identity provider no longer accepts the registration access token. */
  | { kind: 'lost' }
  /** The identity provider has no such client. */
  | { kind: 'gone' };

export type ManagedClient = Provider & Pick<Registration, 'registrationAccessToken' | 'registrationClientUri'>;

export interface ProviderRegistration {
  register(realm: string, metadata: ClientMetadata, initialAccessToken: string): Promise<RegisterOutcome>;
  change(client: StoredRegistration, metadata: ClientMetadata): Promise<ChangeOutcome>;
  /**
   * Returns `refused` if the token was rejected, or if the client is at an identity provider that is no longer
   * configured. The client may then still exist. Throws PlatformError.
   */
  remove(client: ManagedClient): Promise<'removed' | 'refused'>;
}

export interface ProviderRegistrationOptions {
  addresses: ProviderAddresses;
  discover: DiscoverProvider;
  log: Logger;
  agent: HttpAgent;
  metrics: Metrics;
  /** Timeout of one call to the identity provider, in milliseconds. */
  timeout: number;
}

export function createProviderRegistration(options: ProviderRegistrationOptions): ProviderRegistration {
  const manage = createManagement(options);
  const counted = async <T extends { kind: string }>(work: Promise<T>): Promise<T> => {
    const outcome = await work;
    if (outcome.kind === 'failed')
      options.metrics.dependencyFailures.inc({ dependency: 'identity-provider', kind: 'registration' });
    return outcome;
  };
  return {
    register: (...asked) => counted(register(options, ...asked)),
    change: (...asked) => counted(change(manage, options.addresses, ...asked)),
    async remove(client) {
      if (!isReachable(options.addresses, client)) return 'refused';
      const { status } = await manage('DELETE', client);
      // For a nonexistent client, RFC 7592 section 2.3 specifies 401. Some identity providers send 404.
      if (status === 401) return 'refused';
      if (status === 404 || isSuccess(status)) return 'removed';
      const kind = definiteRefusals.has(status) ? 'rejected' : 'failed';
      throw new PlatformError('identity-provider', kind, { upstreamStatus: status });
    },
  };
}

const definiteRefusals = new Set([400, 409, 410, 422]);
const isSuccess = (status: number) => status >= 200 && status < 300;

async function register(
  { addresses, discover, log, timeout }: ProviderRegistrationOptions,
  ...[realm, metadata, initialAccessToken]: Parameters<ProviderRegistration['register']>
): Promise<RegisterOutcome> {
  const provider = addresses.providerOf(realm);
  const post: { sent: boolean; status?: number } = { sent: false };
  const fetch: oidc.CustomFetch = async (url, init) => {
    if (init.method !== 'POST') return addresses.fetch(provider, url, init, 'discovery');
    // Calls `rebase` first, so that `sent` remains false if `rebase` throws for a URL outside the identity provider.
    const target = addresses.rebase(provider, url).href;
    post.sent = true;
    const response = await addresses.fetch(provider, target, init, 'registration');
    post.status = response.status;
    return response;
  };
  try {
    // For a mapped issuer, `discover` requires an exact match, which openid-client does not check.
    if (provider.issuer !== null) await discover(realm);
    const registered = await oidc.dynamicClientRegistration(addresses.issuer(realm), { ...metadata }, undefined, {
      initialAccessToken,
      timeout: timeout / 1_000,
      [oidc.customFetch]: fetch,
      ...(addresses.insecure && { execute: [oidc.allowInsecureRequests] }),
    });
    const issued = issuedSchema.parse(registered.clientMetadata());
    const { registration_access_token: token, registration_client_uri: uri } = issued;
    if (uri !== undefined) addresses.rebase(provider, uri);
    const isManaged = token !== undefined && uri !== undefined;
    const management = isManaged
      ? { registrationAccessToken: token, registrationClientUri: uri, management: 'kept' as const }
      : { registrationAccessToken: '', registrationClientUri: '', management: 'unsupported' as const };
    const client = { oidcClientId: issued.client_id, clientSecret: issued.client_secret, ...management };
    if (!isManaged)
      log.warn(
        { realm },
        'identity provider issued no registration access token (RFC 7592): the client cannot be updated or deleted here',
      );
    return { kind: 'registered', client };
  } catch (cause) {
    return registrationFailure(cause, post);
  }
}

function isReachable(addresses: ProviderAddresses, client: ManagedClient): boolean {
  try {
    addresses.rebase(client, client.registrationClientUri);
    return true;
  } catch {
    return false;
  }
}

function registrationFailure(cause: unknown, { sent, status }: { sent: boolean; status?: number }): RegisterOutcome {
  if (cause instanceof oidc.ClientError && cause.code === 'OAUTH_MISSING_SERVER_METADATA')
    return { kind: 'unsupported' };
  if (status === 401 || status === 403) return { kind: 'token-refused', code: errorCode(cause) };
  const isClientError = status !== undefined && status >= 400 && status < 500;
  if (isClientError && ![404, 408, 429].includes(status)) return { kind: 'refused', code: errorCode(cause) };
  return { kind: 'failed', mayExist: sent && !isClientError, cause };
}

/** Returns only the error code, because the error description may quote the request (RFC 7591 section 3.2.2). */
function errorCode(error: unknown): string | undefined {
  const isChallenge = error instanceof oidc.WWWAuthenticateChallengeError;
  const source = isChallenge ? error.cause.find(({ parameters }) => parameters.error !== undefined)?.parameters : error;
  const code = typeof source === 'object' && source !== null && 'error' in source ? source.error : undefined;
  return typeof code === 'string' && /^[a-z_]{1,60}$/.test(code) ? code : undefined;
}

type Manage = (method: 'GET' | 'PUT' | 'DELETE', client: ManagedClient, body?: object) => Promise<RawResponse>;

function createManagement({ addresses, agent, timeout }: ProviderRegistrationOptions): Manage {
  return async (method, client, body) =>
    exchange(agent, {
      service: 'identity-provider',
      method,
      url: addresses.rebase(client, client.registrationClientUri),
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${client.registrationAccessToken}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      body: body ? JSON.stringify(body) : null,
      signal: AbortSignal.timeout(timeout),
      closesConnection: true,
    });
}

async function change(
  manage: Manage,
  addresses: ProviderAddresses,
  client: StoredRegistration,
  metadata: ClientMetadata,
): Promise<ChangeOutcome> {
  if (!isReachable(addresses, client)) return { kind: 'lost' };
  const credentials = { client_id: client.oidcClientId, client_secret: client.clientSecret };
  const { status, body } = await attempt(manage, 'PUT', client, { ...metadata, ...credentials });
  const { redirect_uris: redirectUris } = metadata;
  const changed = readClient(addresses, client, status, body);
  if (changed) return { kind: 'changed', client: { ...changed.client, redirectUris } };
  if (status === 400 || status === 403 || status === 422) return { kind: 'refused', code: errorCode(body) };
  if (isGone(status)) return { kind: status === 401 ? 'lost' : 'gone' };
  // The identity provider may have changed the client and replaced its token. Reading the client shows whether it was
  // changed.
  const read = await attempt(manage, 'GET', client);
  if (isGone(read.status)) return { kind: read.status === 401 ? 'lost' : 'gone' };
  const present = readClient(addresses, client, read.status, read.body);
  if (!present) return { kind: 'failed' };
  const isChanged = new Set(present.redirectUris).symmetricDifference(new Set(redirectUris)).size === 0;
  // In Keycloak, a registration access token can be used only once. The read may therefore have replaced the token too.
  if (!isChanged) return { kind: 'failed', client: present.client };
  return { kind: 'changed', client: { ...present.client, redirectUris } };
}

const isGone = (status: number) => [401, 404, 410].includes(status);

/** Sends a request to read or change a client. Returns status 0 if no response arrives. */
async function attempt(manage: Manage, method: 'GET' | 'PUT', client: StoredRegistration, body?: object) {
  try {
    const response = await manage(method, client, body);
    return { status: response.status, body: jsonOrUndefined(response.text) };
  } catch (error) {
    if (error instanceof PlatformError) return { status: 0, body: undefined };
    throw error;
  }
}

/**
 * Returns the client and the redirect URIs from a response, or undefined if the response describes no client. Keeps the
 * current URI of the client if the response has one that does not belong to the identity provider.
 */
function readClient(addresses: ProviderAddresses, client: StoredRegistration, status: number, body: unknown) {
  const { data } = changedSchema.safeParse(body);
  if (!isSuccess(status) || !data) return undefined;
  const { registration_client_uri: uri = client.registrationClientUri } = data;
  return {
    client: {
      ...client,
      clientSecret: data.client_secret ?? client.clientSecret,
      registrationAccessToken: data.registration_access_token ?? client.registrationAccessToken,
      registrationClientUri: isReachable(addresses, { ...client, registrationClientUri: uri })
        ? uri
        : client.registrationClientUri,
    },
    redirectUris: data.redirect_uris,
  };
}
