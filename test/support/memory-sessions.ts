// The sessions of one process without servers: the store is in memory, the test sets the clock, and functions of the
// test replace the identity provider. `startSessionReplica` is the counterpart with real servers.
import { createHmac } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { SessionData } from 'express-session';
import { createKeyRing, type KeyRing } from '../../src/service/keys/key-ring.ts';
import { createMetrics, type Metrics } from '../../src/service/operations/metrics.ts';
import type { Registration } from '../../src/token-handler/clients/registration.ts';
import { handleOf } from '../../src/token-handler/sessions/cookies.ts';
import { createMemoryStore } from '../../src/token-handler/sessions/memory-store.ts';
import type { RefreshOutcome, Session, SessionLimits, TokenSet } from '../../src/token-handler/sessions/session.ts';
import { Sessions } from '../../src/token-handler/sessions/sessions.ts';
import type { SessionStore } from '../../src/token-handler/sessions/store.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';

export const hour = 3_600_000;
export const memoryKeys: KeyRing = createKeyRing(`one:${Buffer.alloc(32, 1).toString('base64')}`);
export const tenantId = 'urn:tenant:demo';

/** A person with a live session. */
export interface Visitor {
  session: Session;
  tokens: TokenSet;
  /** A request with the cookie of the session. */
  request(): IncomingMessage;
}

export interface MemorySessions {
  sessions: Sessions;
  store: SessionStore;
  /** The time of the sessions' clock, in milliseconds since 1970. */
  now: number;
  /** Stands in for the identity provider: returns the outcome of a refresh with this token. */
  refresh(refreshToken: string): RefreshOutcome | Promise<RefreshOutcome>;
  /** The refresh tokens that the identity provider has received. */
  presented: string[];
  /** Stands in for the client registry: returns the client's registration. */
  find(): Promise<Registration | undefined>;
  /** The issuer that the operator has mapped to the tenant, if any. */
  mappedIssuer: string | undefined;
  log: CapturedLog;
  metrics: Metrics;
  open(changes?: { session?: Partial<Session>; tokens?: Partial<TokenSet> }): Promise<Visitor>;
}

export interface MemorySessionsOptions {
  limits?: Partial<SessionLimits>;
  /** Idle time of the store. Set it if the store must keep sessions for longer than they are valid. */
  storeIdle?: number;
  concurrency?: number;
  /** Changes the store before the sessions use it. */
  prepare?(store: SessionStore): void;
}

/** For `prepare`: a person may have any number of sessions, as in older versions. */
export function removeCap({ index }: SessionStore): void {
  const { enter } = index;
  index.enter = async (...given) => {
    await enter(...given);
    return new Map();
  };
}

const cookieName = 'formgate_session';

export function createMemorySessions(options: MemorySessionsOptions = {}): MemorySessions {
  const limits: SessionLimits = { maxAge: 12 * hour, idle: hour, ...options.limits };
  const [log, metrics] = [captureLog(), createMetrics()];
  const clock = () => new Date(world.now);
  const store = createMemoryStore({ idle: options.storeIdle ?? limits.idle, clock });
  options.prepare?.(store);
  const sessions = new Sessions({
    ...{ store, keys: memoryKeys, limits, cookieName, clock, log: log.log, metrics },
    refreshConcurrency: options.concurrency ?? 4,
    addresses: { mappedIssuer: () => world.mappedIssuer },
    registrations: { find: () => world.find() },
    relyingParty: {
      async refresh(_client, refreshToken) {
        world.presented.push(refreshToken);
        return world.refresh(refreshToken);
      },
    },
  });
  let serial = 0;
  const world: MemorySessions = {
    ...{ sessions, store, log, metrics, now: Date.now(), presented: [], mappedIssuer: undefined },
    refresh: () => ({
      kind: 'refreshed',
      response: { access_token: `new ${world.presented.length}`, expires_in: 300 },
    }),
    find: async () => ({ realm: 'demo', oidcClientId: 'oidc-web' }) as Registration,
    async open(changes = {}) {
      serial += 1;
      const id = `id ${serial}`;
      const session = sampleSession(handleOf(id), world.now, limits, changes.session);
      const tokens = { ...sampleTokens(world.now), ...changes.tokens };
      await putRecord(sessions, id, { signedIn: session });
      await sessions.start(session, tokens);
      return { session, tokens, request: () => requestWith(`${cookieName}=${signed(id, sessions)}`) };
    },
  };
  return world;
}

/** Stores the record that a sign-in would store. */
function putRecord({ records }: Sessions, id: string, content: Partial<SessionData>): Promise<void> {
  const record = { cookie: { originalMaxAge: null, path: '/' }, ...content } as unknown as SessionData;
  return new Promise((resolve, reject) =>
    records.set(id, record, (error?: unknown) => (error ? reject(error) : resolve())),
  );
}

export function requestWith(cookie: string | undefined): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.method = 'GET';
  if (cookie !== undefined) request.headers.cookie = cookie;
  return request;
}

/** Waits until background work that uses no timer has ended. */
export async function settle(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await turn();
}

function signed(id: string, { cookie }: Sessions): string {
  const signature = createHmac('sha256', cookie.secrets[0] ?? '')
    .update(id)
    .digest('base64')
    .replace(/=+$/, '');
  return encodeURIComponent(`s:${id}.${signature}`);
}

function sampleSession(handle: string, now: number, { maxAge }: SessionLimits, changes?: Partial<Session>): Session {
  return {
    ...{ handle, tenantId, tenantName: 'Demo', realm: 'demo', clientId: 'web', core: false, oidcClientId: 'oidc-web' },
    user: { id: 'ana', name: 'Ana Ares', roles: [] },
    site: 'https://app.example.org',
    callbackUrl: 'https://app.example.org/token-handler/clients/web/callback',
    ...{ created: now, absoluteExpiry: now + maxAge, csrfSecret: 'a secret' },
    ...changes,
  };
}

/** Tokens that are valid for five minutes. */
function sampleTokens(now: number): TokenSet {
  return {
    ...{ accessToken: 'access 1', accessIssued: now, accessExpiry: now + 300_000 },
    ...{ refreshToken: 'refresh 1', roles: ['role of the token'] },
  };
}

/** Opens sessions at intervals of one second. Returns their handles, in this order. */
export async function openSessions(
  world: MemorySessions,
  count: number,
  changes: Parameters<MemorySessions['open']>[0] = {},
): Promise<string[]> {
  const handles: string[] = [];
  for (let opened = 0; opened < count; opened += 1) {
    handles.push((await world.open(changes)).session.handle);
    world.now += 1_000;
  }
  return handles;
}
