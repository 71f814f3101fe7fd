// The session code of one token handler replica, without its HTTP server: store, reader and refreshes, against a real
// identity provider. A test that creates several replicas on one Redis simulates a cluster.
import { createHmac, randomBytes } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { SessionData } from 'express-session';
import { createSigningKeys } from '../../src/service/auth/signing-keys.ts';
import type { Clock } from '../../src/service/clock.ts';
import { createKeyRing } from '../../src/service/keys/key-ring.ts';
import { createMetrics, type Metrics } from '../../src/service/operations/metrics.ts';
import { createRedis, type Redis } from '../../src/service/redis/redis.ts';
import type { Registration } from '../../src/token-handler/clients/registration.ts';
import { createProviderAddresses } from '../../src/token-handler/provider-addresses.ts';
import { createProviderDiscovery } from '../../src/token-handler/provider-discovery.ts';
import { handleOf } from '../../src/token-handler/sessions/cookies.ts';
import { createMemoryStore } from '../../src/token-handler/sessions/memory-store.ts';
import { createRedisStore } from '../../src/token-handler/sessions/redis-store.ts';
import {
  claimsOf,
  type LiveSession,
  type RefreshOutcome,
  type Session,
  type SessionLimits,
  type TokenResponse,
  type TokenSet,
  tokenSetOf,
} from '../../src/token-handler/sessions/session.ts';
import { Sessions } from '../../src/token-handler/sessions/sessions.ts';
import type { SessionStore } from '../../src/token-handler/sessions/store.ts';
import { createProviderCache } from '../../src/token-handler/sign-in/provider-cache.ts';
import { createRelyingParty, type RelyingParty } from '../../src/token-handler/sign-in/relying-party.ts';
import type { TestAccess } from './access.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';

export interface SessionReplica {
  sessions: Sessions;
  store: SessionStore;
  redis: Redis | undefined;
  /**
   * Opens a live session of a person and returns its cookie. The tokens come from the identity provider unless
   * `options.tokens` contains them.
   */
  open(options?: OpenOptions): Promise<OpenedSession>;
  /** Opens a new session with the content of the session `like`, without calling the identity provider. */
  reopen(like: Session, tokens: Omit<TokenSet, 'roles'>): Promise<OpenedSession>;
  read(cookie: string): Promise<LiveSession | undefined>;
  /** Reads a session without extending it, as `GET /sessions` does. */
  see(cookie: string): Promise<LiveSession | undefined>;
  /** Returns the access token that a call with this cookie would forward, or `refused` for 401. */
  call(cookie: string): Promise<string>;
  /** Outcomes of this replica's token requests, in their order. */
  outcomes: RefreshOutcome['kind'][];
  /** Lines of this replica's log. */
  log: CapturedLog;
  metrics: Metrics;
  close(): Promise<void>;
}

export interface OpenOptions {
  /** Changes to the identity provider's response. */
  answer?: Partial<TokenResponse>;
  tokens?: Partial<TokenSet>;
  session?: Partial<Session>;
  email?: string;
}

export interface OpenedSession {
  /** The Cookie header of the session. */
  cookie: string;
  session: Session;
  tokens: TokenSet;
}

export interface SessionReplicaOptions {
  access: TestAccess;
  /** URL at which to call the identity provider. By default, the URL of `access`. */
  accessUrl?: string;
  clock?: Clock;
  /** URL of the Redis for the sessions. Without it, the sessions are kept in memory. */
  redisUrl?: string;
  limits?: Partial<SessionLimits>;
  keyRing?: string;
  /** Timeout of a token request, in milliseconds. */
  refreshTimeout?: number;
  /** Largest number of concurrent refreshes in a realm. */
  concurrency?: number;
  /** Returns the function that the replica uses instead of `real` to redeem refresh tokens. */
  refresh?: (real: Refresh) => Refresh;
}

/** The type of a function that redeems a refresh token. */
export type Refresh = RelyingParty['refresh'];

const replicaClient = { clientId: 'replica-client', secret: 'the secret of the replica client' };
const replicaKeys = `first:${Buffer.alloc(32, 1).toString('base64')}`;
const cookieName = 'formgate_session';

/** Adds a client to the realm `demo`. Replicas refresh tokens as this client. */
export function addReplicaClient(access: TestAccess): Promise<void> {
  return access.addClient('demo', { ...replicaClient, grants: ['password', 'refresh_token'] });
}

export async function startSessionReplica(options: SessionReplicaOptions): Promise<SessionReplica> {
  const { access, clock = () => new Date() } = options;
  const limits: SessionLimits = { maxAge: 12 * 3_600_000, idle: 3_600_000, ...options.limits };
  const ring = createKeyRing(options.keyRing ?? replicaKeys);
  const captured = captureLog();
  const { log } = captured;
  const metrics = createMetrics();
  const outcomes: RefreshOutcome['kind'][] = [];
  const topology = options.redisUrl === undefined ? undefined : ({ kind: 'server', url: options.redisUrl } as const);
  const redis = topology && createRedis({ settings: { topology }, log, metrics });
  const store = redis ? createRedisStore(redis, limits) : createMemoryStore({ ...limits, clock });
  // Client tracking never becomes live with a Redis that does not support it. The log then says so.
  const isSettled = () => redis === undefined || redis.tracked.isLive || captured.text().includes('no client tracking');
  for (let waited = 0; !isSettled() && waited < 60_000; waited += 10) await delay(10);
  const addresses = createProviderAddresses({
    accessUrl: options.accessUrl ?? access.url,
    accessPublicUrl: access.url,
  });
  const discover = createProviderDiscovery({ addresses, log, timeout: 10_000 });
  const providers = createProviderCache({ addresses, discover, timeout: 10_000 });
  const signingKeys = createSigningKeys({ urlOf: providers.keysUrl, log, metrics });
  const { refreshTimeout = 30_000 } = options;
  const relyingParty = createRelyingParty({ addresses, providers, signingKeys, metrics, refreshTimeout });
  const real = options.refresh?.(relyingParty.refresh) ?? relyingParty.refresh;
  const refresh: Refresh = async (...args) => {
    const outcome = await real(...args);
    outcomes.push(outcome.kind);
    return outcome;
  };
  const registration = { realm: 'demo', oidcClientId: replicaClient.clientId, clientSecret: replicaClient.secret };
  const sessions = new Sessions({
    ...{ store, keys: ring, limits, cookieName, clock, log, metrics, addresses },
    refreshConcurrency: options.concurrency ?? 8,
    registrations: { find: async () => registration as Registration },
    relyingParty: { refresh },
  });
  const { cookie, records } = sessions;

  async function begin(opened: Session, id: string, tokens: TokenSet): Promise<OpenedSession> {
    const record = { cookie: { originalMaxAge: null, path: '/' }, signedIn: opened } as unknown as SessionData;
    await new Promise<void>((resolve, reject) =>
      records.set(id, record, (error?: unknown) => (error ? reject(error) : resolve())),
    );
    await sessions.start(opened, tokens);
    return { cookie: `${cookieName}=${signed(id, cookie.secrets[0] ?? '')}`, session: opened, tokens };
  }

  const read = async (header: string) => sessions.ofRequest(requestWith(header));
  return {
    sessions,
    store,
    redis,
    outcomes,
    log: captured,
    metrics,
    async open({ answer = {}, tokens = {}, session = {}, email = 'alice@example.com' } = {}) {
      const id = randomBytes(24).toString('base64url');
      const now = clock().getTime();
      const response = { ...(await requestTokens(access, email)), ...answer };
      const opened: Session = { ...sampleSession(handleOf(id), now, limits), ...session };
      const { sub } = claimsOf(response.access_token);
      if (typeof sub === 'string') opened.user = { ...opened.user, id: sub };
      const set = { ...tokenSetOf(response, now), ...tokens };
      return begin(opened, id, set);
    },
    reopen(like, tokens) {
      const id = randomBytes(24).toString('base64url');
      return begin({ ...like, handle: handleOf(id) }, id, { ...tokens, roles: [] });
    },
    read,
    see: async (header) => sessions.see(requestWith(header)),
    async call(header) {
      const live = await read(header);
      if (!live) return 'refused';
      try {
        return await live.accessToken();
      } catch (error) {
        if ((error as { status?: number }).status === 401) return 'refused';
        throw error;
      }
    },
    async close() {
      await sessions.close();
      await relyingParty.close();
      redis?.close();
    },
  };
}

function requestWith(cookie: string): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.headers.cookie = cookie;
  request.method = 'GET';
  return request;
}

function signed(id: string, secret: string): string {
  const signature = createHmac('sha256', secret).update(id).digest('base64').replace(/=+$/, '');
  return encodeURIComponent(`s:${id}.${signature}`);
}

function sampleSession(handle: string, now: number, { maxAge }: SessionLimits): Session {
  return {
    handle,
    tenantId: 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6',
    tenantName: 'Demo',
    realm: 'demo',
    clientId: 'web',
    core: false,
    oidcClientId: replicaClient.clientId,
    user: { id: 'alice', name: 'Alice Applicant', roles: [] },
    site: 'https://app.example.org',
    callbackUrl: 'https://app.example.org/token-handler/clients/web/callback',
    created: now,
    absoluteExpiry: now + maxAge,
    csrfSecret: 'a secret of the session',
  };
}

async function requestTokens(access: TestAccess, email: string): Promise<TokenResponse> {
  const response = await fetch(`${access.issuer('demo')}/protocol/openid-connect/token`, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from(`${replicaClient.clientId}:${replicaClient.secret.replaceAll(' ', '+')}`).toString('base64')}`,
    },
    body: new URLSearchParams({
      grant_type: 'password',
      username: email,
      password: email.split('@', 1)[0] ?? '',
      scope: 'openid profile email',
    }),
  });
  const answer: TokenResponse & { error?: string } = JSON.parse(await response.text());
  if (answer.error !== undefined) throw new Error(`no tokens: ${JSON.stringify(answer)}`);
  return answer;
}
