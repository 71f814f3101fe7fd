// Registers, changes and deletes clients at the access service: RFC 7591 by openid-client, RFC 7592 by plain requests.
// It says what became of a call as exactly as can be known, sends no change twice, and keeps nothing.
import * as oidc from 'openid-client';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import { exchange, type RawResponse } from '../../platform/http-exchange.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { AccessAddresses } from '../access-addresses.ts';
import type { ClientMetadata, Registration } from './registration.ts';

/** What the access service answers of a client that it has. */
export interface RegisteredClient {
  oidcClientId: string;
  clientSecret: string;
  registrationAccessToken: string;
  registrationClientUri: string;
}

/**
 * - `token-refused`: the initial access token is not accepted
 * - `refused`: what was asked for is not accepted
 * - `failed`: no answer, a failure, or an answer that is none
 */
export type RefusalKind = 'token-refused' | 'refused' | 'failed';

export class AccessRegistrationError extends Error {
  readonly kind: RefusalKind;
  /** The access service's error code, such as `invalid_redirect_uri`. */
  readonly code: string | undefined;
  /** Whether a client may have been created whose answer was lost. */
  readonly mayExist: boolean;

  constructor(kind: RefusalKind, options: { code?: string | undefined; mayExist?: boolean; cause?: unknown } = {}) {
    super(`the registration at the access service was ${kind}`, { cause: options.cause });
    this.name = 'AccessRegistrationError';
    this.kind = kind;
    this.code = options.code;
    this.mayExist = options.mayExist ?? false;
  }
}

/** Of a change: `changed` is what the access service says of the client now, where that is known. */
export type ChangeOutcome =
  | { kind: 'changed'; changed: Partial<RegisteredClient> }
  | { kind: 'failed'; changed?: Partial<RegisteredClient> }
  | { kind: 'refused'; code: string | undefined }
  /** The registration access token manages this client no more. */
  | { kind: 'lost' };

export type ManagedClient = Pick<Registration, 'realm' | 'registrationAccessToken' | 'registrationClientUri'>;

export interface AccessRegistration {
  /** Throws AccessRegistrationError. */
  register(realm: string, metadata: ClientMetadata, initialAccessToken: string): Promise<RegisteredClient>;
  change(client: Registration, metadata: ClientMetadata): Promise<ChangeOutcome>;
  /** `refused`: the token is not accepted (any more); the client may be gone or not. Throws PlatformError. */
  remove(client: ManagedClient): Promise<'removed' | 'refused'>;
}

export interface AccessRegistrationOptions {
  addresses: AccessAddresses;
  agent: Dispatcher;
  metrics: Metrics;
  /** Milliseconds of one call. */
  timeout: number;
}

export function createAccessRegistration(options: AccessRegistrationOptions): AccessRegistration {
  const count = (kind: string) => options.metrics.dependencyFailures.inc({ dependency: 'access', kind });
  const manage = createManagement(options);
  return {
    async register(realm, metadata, initialAccessToken) {
      try {
        return await register(options, { realm, metadata, initialAccessToken });
      } catch (error) {
        if (error instanceof AccessRegistrationError && error.kind === 'failed') count('registration');
        throw error;
      }
    },
    async change(client, metadata) {
      const outcome = await change(manage, client, metadata);
      if (outcome.kind === 'failed') count('registration');
      return outcome;
    },
    async remove(client) {
      const answer = await manage('DELETE', client);
      // RFC 7592 section 2.3 has 401 for a client that does not exist; 404 is seen too.
      if (answer.status === 401) return 'refused';
      if (answer.status === 404 || (answer.status >= 200 && answer.status < 300)) return 'removed';
      const kind = definiteRefusals.has(answer.status) ? 'rejected' : 'failed';
      throw new PlatformError('access', kind, { upstreamStatus: answer.status });
    },
  };
}

const definiteRefusals = new Set([400, 409, 410, 422]);

const text = z.string().min(1);
const registeredSchema = z.looseObject({
  client_id: text,
  client_secret: text,
  registration_access_token: text,
  registration_client_uri: text,
});

interface Asked {
  realm: string;
  metadata: ClientMetadata;
  initialAccessToken: string;
}

async function register({ addresses, timeout }: AccessRegistrationOptions, asked: Asked): Promise<RegisteredClient> {
  const post: { sent: boolean; status?: number } = { sent: false };
  const fetch: oidc.CustomFetch = async (url, init) => {
    if (init.method !== 'POST') return addresses.fetch(url, init as RequestInit);
    // Rebased before it counts as sent: a foreign address is never called.
    const target = addresses.rebase(url).href;
    post.sent = true;
    const response = await addresses.fetch(target, init as RequestInit);
    post.status = response.status;
    return response;
  };
  try {
    const registered = await oidc.dynamicClientRegistration(
      addresses.issuer(asked.realm),
      { ...asked.metadata },
      undefined,
      {
        initialAccessToken: asked.initialAccessToken,
        timeout: timeout / 1_000,
        [oidc.customFetch]: fetch,
        ...(addresses.insecure && { execute: [oidc.allowInsecureRequests] }),
      },
    );
    const client = registeredSchema.parse(registered.clientMetadata());
    addresses.rebase(client.registration_client_uri);
    return fromAnswer(client) as RegisteredClient;
  } catch (error) {
    throw registrationError(error, post);
  }
}

function registrationError(cause: unknown, { sent, status }: { sent: boolean; status?: number }) {
  if (status === 401 || status === 403)
    return new AccessRegistrationError('token-refused', { code: errorCode(cause), cause });
  if (status !== undefined && status >= 400 && status < 500 && status !== 404 && status !== 408 && status !== 429)
    return new AccessRegistrationError('refused', { code: errorCode(cause), cause });
  const mayExist = sent && !(status !== undefined && status >= 400 && status < 500);
  return new AccessRegistrationError('failed', { mayExist, cause });
}

/** RFC 7591 section 3.2.2, RFC 6750 section 3. Only the code: a description may quote the request. */
function errorCode(error: unknown): string | undefined {
  const carriers =
    error instanceof oidc.WWWAuthenticateChallengeError ? error.cause.map((one) => one.parameters) : [error];
  const [code] = carriers.flatMap((one) =>
    typeof one === 'object' && one !== null && 'error' in one ? [one.error] : [],
  );
  return typeof code === 'string' && /^[a-z_]{1,60}$/.test(code) ? code : undefined;
}

type Manage = (method: 'GET' | 'PUT' | 'DELETE', client: ManagedClient, body?: object) => Promise<RawResponse>;

function createManagement({ addresses, agent, timeout }: AccessRegistrationOptions): Manage {
  return async (method, { registrationClientUri, registrationAccessToken }, body) =>
    exchange(agent, {
      service: 'access',
      method,
      url: addresses.rebase(registrationClientUri),
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${registrationAccessToken}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      body: body ? JSON.stringify(body) : null,
      signal: AbortSignal.timeout(timeout),
      isLast: false,
    });
}

const clientSchema = registeredSchema.partial().extend({ redirect_uris: z.array(z.string()).optional() });

async function change(manage: Manage, client: Registration, metadata: ClientMetadata): Promise<ChangeOutcome> {
  const answer = await attempt(manage, 'PUT', client, {
    ...metadata,
    client_id: client.oidcClientId,
    client_secret: client.clientSecret,
  });
  const changed = readClient(answer);
  if (changed) return { kind: 'changed', changed: fromAnswer(changed) };
  if (answer && [401, 404, 410].includes(answer.status)) return { kind: 'lost' };
  if (answer && [400, 403, 422].includes(answer.status)) return { kind: 'refused', code: errorCode(json(answer)) };
  return recover(manage, client, metadata);
}

/** The change may have happened, and may have replaced the token: a read tells, unless that fails too. */
async function recover(manage: Manage, client: Registration, metadata: ClientMetadata): Promise<ChangeOutcome> {
  const answer = await attempt(manage, 'GET', client);
  if (answer && [401, 404, 410].includes(answer.status)) return { kind: 'lost' };
  const present = readClient(answer);
  if (!present) return { kind: 'failed' };
  const kind = isSameSet(present.redirect_uris ?? [], metadata.redirect_uris) ? 'changed' : 'failed';
  // A read may replace the token as well: Keycloak's are good for one use.
  return { kind, changed: fromAnswer(present) };
}

async function attempt(manage: Manage, method: 'GET' | 'PUT', client: Registration, body?: object) {
  try {
    return await manage(method, client, body);
  } catch (error) {
    if (error instanceof PlatformError) return undefined;
    throw error;
  }
}

function readClient(answer: RawResponse | undefined) {
  if (!answer || answer.status < 200 || answer.status >= 300) return undefined;
  const parsed = clientSchema.safeParse(json(answer));
  return parsed.success && parsed.data.client_id !== undefined ? parsed.data : undefined;
}

function json({ text: body }: RawResponse): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function fromAnswer(answer: z.output<typeof clientSchema>): Partial<RegisteredClient> {
  return {
    ...(answer.client_id !== undefined && { oidcClientId: answer.client_id }),
    ...(answer.client_secret !== undefined && { clientSecret: answer.client_secret }),
    ...(answer.registration_access_token !== undefined && {
      registrationAccessToken: answer.registration_access_token,
    }),
    ...(answer.registration_client_uri !== undefined && { registrationClientUri: answer.registration_client_uri }),
  };
}

function isSameSet(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item) => other.includes(item));
}
