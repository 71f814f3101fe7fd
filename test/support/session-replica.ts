// What one replica of the token handler has for sessions, without its HTTP: store, reader and refreshes, against a real
// access service. Several of them on one Redis are several replicas.
import { createHmac, randomBytes } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { SessionData } from 'express-session';
import pino from 'pino';
import type { Clock } from '../../src/service/clock.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createRedis, type Redis } from '../../src/service/redis/redis.ts';
import { createKeyRing, type KeyRing } from '../../src/token-handler/keys/key-ring.ts';
import { createProviderAddresses } from '../../src/token-handler/provider-addresses.ts';
import { createEndWatch } from '../../src/token-handler/sessions/end-watch.ts';
import type { LiveSession } from '../../src/token-handler/sessions/live-session.ts';
import { createMemoryStore } from '../../src/token-handler/sessions/memory-store.ts';
import { createSessionReader } from '../../src/token-handler/sessions/reader.ts';
import { createRecordStore, handleOf } from '../../src/token-handler/sessions/records.ts';
import { createRedisStore, recordIdOf } from '../../src/token-handler/sessions/redis-store.ts';
import { createRefresher, type Refresher, type RefreshTokens } from '../../src/token-handler/sessions/refresh.ts';
import type { Session, SessionLimits } from '../../src/token-handler/sessions/session.ts';
import { createSessionCookie } from '../../src/token-handler/sessions/session-cookie.ts';
import { createSessions, type Sessions } from '../../src/token-handler/sessions/sessions.ts';
import type { SessionStore } from '../../src/token-handler/sessions/store.ts';
import { type TokenAnswer, type TokenSet, tokenSetOf } from '../../src/token-handler/sessions/token-set.ts';
import { createRelyingParty } from '../../src/token-handler/sign-in/relying-party.ts';
import type { TestAccess } from './access.ts';

export interface SessionReplica {
  sessions: Sessions;
  store: SessionStore;
  redis: Redis | undefined;
  refresher: Refresher;
  keys: KeyRing;
  /** A live session of a person, with tokens of the access service unless told; answers its cookie. */
  open(options?: OpenOptions): Promise<OpenedSession>;
  /** Another session like this one, without a word to the access service. */
  reopen(like: Session, tokens: Omit<TokenSet, 'roles'>): Promise<OpenedSession>;
  read(cookie: string): Promise<LiveSession | undefined>;
  /** What a call with this cookie would send on, `refused` with 401. */
  call(cookie: string): Promise<string>;
  close(): Promise<void>;
}

export interface OpenOptions {
  /** What differs of the access service's answer. */
  answer?: Partial<TokenAnswer>;
  tokens?: Partial<TokenSet>;
  session?: Partial<Session>;
  email?: string;
}

export interface OpenedSession {
  /** A `Cookie` header. */
  cookie: string;
  session: Session;
  tokens: TokenSet;
}

export interface SessionReplicaOptions {
  access: TestAccess;
  /** Where the access service is called; its own address unless told. */
  accessUrl?: string;
  clock?: Clock;
  /** Without it, and without `store`, in memory. */
  redisUrl?: string;
  store?: SessionStore;
  limits?: Partial<SessionLimits>;
  keyRing?: string;
  /** Stands between the replica and its refreshes. */
  refresh?: (real: RefreshTokens) => RefreshTokens;
}

const replicaClient = { clientId: 'replica-client', secret: 'the secret of the replica client' };
const replicaKeys = `first:${Buffer.alloc(32, 1).toString('base64')}`;
const cookieName = 'formgate_session';

/** Makes the client known to the realm `demo` that replicas refresh as. */
export function addReplicaClient(access: TestAccess): Promise<void> {
  return access.addClient('demo', { ...replicaClient, grants: ['password', 'refresh_token'] });
}

export async function startSessionReplica(options: SessionReplicaOptions): Promise<SessionReplica> {
  const { access, clock = () => new Date() } = options;
  const limits: SessionLimits = { maxAge: 12 * 3_600_000, idle: 3_600_000, ...options.limits };
  const keys = createKeyRing(options.keyRing ?? replicaKeys);
  const log = pino({ level: 'silent' });
  const metrics = createMetrics();
  const topology = options.redisUrl === undefined ? undefined : ({ kind: 'server', url: options.redisUrl } as const);
  const redis = topology && createRedis({ settings: { topology }, log, metrics });
  const store = options.store ?? (redis ? createRedisStore(redis, limits) : createMemoryStore({ ...limits, clock }));
  if (redis) for (let waited = 0; !redis.tracked.isLive && waited < 5_000; waited += 10) await delay(10);
  const sessions = createSessions({ store, keys, limits, clock });
  const addresses = createProviderAddresses({
    accessUrl: options.accessUrl ?? access.url,
    accessPublicUrl: access.url,
  });
  const relyingParty = createRelyingParty({ addresses, metrics, timeout: 10_000 });
  const client = { realm: 'demo', oidcClientId: replicaClient.clientId, clientSecret: replicaClient.secret };
  const real: RefreshTokens = (_session, refreshToken) => relyingParty.refresh(client, refreshToken);
  const refresher = createRefresher({
    sessions,
    tokens: store.tokens,
    refresh: options.refresh?.(real) ?? real,
    clock,
    log,
  });
  const endWatch = createEndWatch({ sessions, tokens: store.tokens, clock });
  const cookie = createSessionCookie(cookieName, keys);
  const reader = createSessionReader({ cookie, sessions, tokens: store.tokens, refresher, endWatch, limits, clock });
  const records = createRecordStore(store.records, keys, redis || options.store ? recordIdOf : (handle) => handle);

  async function begin(opened: Session, id: string, tokens: TokenSet): Promise<OpenedSession> {
    const record = { cookie: { originalMaxAge: null, path: '/' }, signedIn: opened } as unknown as SessionData;
    await new Promise<void>((resolve, reject) =>
      records.set(id, record, (error?: unknown) => (error ? reject(error) : resolve())),
    );
    await sessions.start(opened, tokens);
    return { cookie: `${cookieName}=${signed(id, cookie.secrets[0] ?? '')}`, session: opened, tokens };
  }

  const read = async (header: string) => reader.read(requestWith(header));
  return {
    sessions,
    store,
    redis,
    refresher,
    keys,
    async open({ answer = {}, tokens = {}, session = {}, email = 'alice@example.com' } = {}) {
      const id = randomBytes(24).toString('base64url');
      const now = clock().getTime();
      const opened: Session = { ...sampleSession(handleOf(id), now, limits), ...session };
      const set = { ...tokenSetOf({ ...(await requestTokens(access, email)), ...answer }, now), ...tokens };
      return begin(opened, id, set);
    },
    reopen(like, tokens) {
      const id = randomBytes(24).toString('base64url');
      return begin({ ...like, handle: handleOf(id) }, id, { ...tokens, roles: [] });
    },
    read,
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
      endWatch.close();
      await refresher.close();
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

async function requestTokens(access: TestAccess, email: string): Promise<TokenAnswer> {
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
  const answer: TokenAnswer & { error?: string } = JSON.parse(await response.text());
  if (answer.error !== undefined) throw new Error(`no tokens: ${JSON.stringify(answer)}`);
  return answer;
}
