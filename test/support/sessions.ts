// A token handler with a registered client, and people who sign in over plain HTTP. The token handler's own address is
// the frontend's site.
import { setTimeout as delay } from 'node:timers/promises';
import pino from 'pino';
import { createKeyRing } from '../../src/service/keys/key-ring.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createRedis } from '../../src/service/redis/redis.ts';
import { createRedisStore } from '../../src/token-handler/sessions/redis-store.ts';
import type { FoundSession, TokenSet } from '../../src/token-handler/sessions/session.ts';
import { Sessions } from '../../src/token-handler/sessions/sessions.ts';
import { startTestRedis, type TestRedis } from './redis.ts';
import { createSiteBrowser, type SiteBrowser, type Visit } from './site-browser.ts';
import { startTestTokenHandler, type TestTokenHandler, type TestTokenHandlerOptions } from './token-handler.ts';

export interface SessionWorld {
  handler: TestTokenHandler;
  redis: TestRedis | undefined;
  /** Origin of the site, where the token handler listens. */
  site: string;
  clientId: string;
  /** Returns the address of an endpoint of the client: `auth`, `callback`, `logout`. */
  clientUrl(endpoint: string, query?: Record<string, string>, client?: { site?: string; clientId?: string }): string;
  /** Returns the address that starts a sign-in to the tenant `Demo`. */
  authUrl(query?: Record<string, string>, client?: { site?: string; clientId?: string }): string;
  /** Goes through a sign-in up to the callback, and returns the callback's address without fetching it. */
  toCallback(browser: SiteBrowser, start?: string, email?: string): Promise<URL>;
  /** Goes through a whole sign-in. */
  signIn(browser?: SiteBrowser, options?: { start?: string; email?: string }): Promise<SignedInBrowser>;
  sessions(browser: SiteBrowser, headers?: Record<string, string>): Promise<Visit>;
  /** Reads a session from Redis, decrypted. */
  stored(handle: string): Promise<FoundSession>;
  /** Removes the ID token from the session's stored tokens, as if an older version had stored them. */
  dropIdToken(handle: string): Promise<void>;
  /**
   * Makes the stored access token look as if it expires after `milliseconds`. The token itself stays valid as long as
   * before.
   */
  shortenToken(handle: string, milliseconds: number): Promise<void>;
  close(): Promise<void>;
}

export interface SignedInBrowser {
  browser: SiteBrowser;
  /** The response of the callback. */
  landed: Visit;
  csrf: string;
  /** Public handle of the session. */
  handle: string;
}

export interface SessionWorldOptions extends TestTokenHandlerOptions {
  store?: 'redis' | 'memory';
  client?: Record<string, unknown>;
  /** Further clients of the tenant. A test that signs in to one must register it. */
  furtherClients?: Record<string, object>;
  /** Sites of other frontends that are allowed as callbacks. */
  sites?: string[];
}

export const cookieName = 'formgate_session';
/** Returns the password of a person in the realm `demo`: the part of the address before the @. */
const passwordOf = (email: string) => email.split('@', 1)[0] ?? '';

export async function startSessionWorld(options: SessionWorldOptions = {}): Promise<SessionWorld> {
  const { store = 'memory', client = {}, furtherClients = {}, sites = [], env, ...rest } = options;
  const redis = store === 'redis' ? await startTestRedis() : undefined;
  const handler = await startTestTokenHandler({
    ...rest,
    env: { ...(redis && { REDIS_URL: redis.url }), SIGN_IN_LIMIT: '100000', SESSION_REQUEST_LIMIT: '100000', ...env },
  });
  const site = handler.url;
  const clientId = 'web';
  const callbackOf = (origin: string, id: string) =>
    `${origin}/token-handler/clients/${encodeURIComponent(id)}/callback`;
  await handler.configure({
    [clientId]: { redirectUris: [site, ...sites].map((origin) => callbackOf(origin, clientId)), ...client },
    ...furtherClients,
  });
  const registered = await handler.register(clientId);
  if (registered.status !== 200) throw new Error(`registration: ${registered.text}`);

  const inspector = redis && createInspector(redis, handler);
  async function change(handle: string, edit: (tokens: TokenSet) => TokenSet): Promise<void> {
    const { session, tokens, state } = await world.stored(handle);
    const now = Date.now();
    await inspector?.store.tokens.claim(handle, state.version, 'test');
    await inspector?.store.tokens.conclude(handle, 'test', now, inspector.sessions.seal(session, edit(tokens)));
  }

  const world: SessionWorld = {
    handler,
    redis,
    site,
    clientId,
    clientUrl(endpoint, query = {}, { site: origin = site, clientId: id = clientId } = {}) {
      const url = new URL(`${origin}/token-handler/clients/${encodeURIComponent(id)}/${endpoint}`);
      url.search = new URLSearchParams(query).toString();
      return url.href;
    },
    authUrl: (query = {}, place = {}) =>
      world.clientUrl(
        'auth',
        { tenant: 'demo', callbackUrl: callbackOf(place.site ?? site, place.clientId ?? clientId), ...query },
        place,
      ),
    async toCallback(browser, start = world.authUrl(), email = 'alice@example.com') {
      const isCallback = (url: URL) => url.pathname.endsWith('/callback');
      const begun = await browser.request(start);
      if (begun.status >= 400) throw new Error(`sign-in did not start: ${begun.status} ${begun.text}`);
      const form = await browser.follow(begun, isCallback);
      // The identity provider shows no form to a person who is signed in already.
      if (form.location) return form.location;
      const sent = await browser.submit(form, { username: email, password: passwordOf(email) });
      const { location } = await browser.follow(sent, isCallback);
      if (!location) throw new Error('the access service did not call back');
      return location;
    },
    async signIn(browser = createSiteBrowser(), { start, email } = {}) {
      const landed = await browser.request(await world.toCallback(browser, start, email));
      if (landed.status !== 302) throw new Error(`callback: ${landed.status} ${landed.text}`);
      const { origin } = landed.url;
      const list = await browser.request(`${origin}/token-handler/sessions`);
      const [own]: { id?: string }[] = JSON.parse(list.text);
      return { browser, landed, csrf: browser.cookie(origin, 'XSRF-TOKEN') ?? '', handle: own?.id ?? '' };
    },
    sessions: (browser, headers = {}) => browser.request(`${site}/token-handler/sessions`, { headers }),
    async stored(handle) {
      // The inspector's connection may still be reconnecting to Redis.
      for (let waited = 0; inspector && !(await inspector.redis.isReachable()) && waited < 60_000; waited += 50)
        await delay(50);
      const found = await inspector?.sessions.read(handle);
      if (!found) throw new Error('there is no such session in Redis');
      return found;
    },
    async dropIdToken(handle) {
      await change(handle, ({ idToken: _, ...rest }) => rest);
    },
    async shortenToken(handle, milliseconds) {
      const accessExpiry = Date.now() + milliseconds;
      await change(handle, (tokens) => ({ ...tokens, accessIssued: accessExpiry - 300_000, accessExpiry }));
    },
    async close() {
      await inspector?.sessions.close();
      inspector?.redis.close();
      redis?.resume();
      await handler.close();
      await redis?.close();
    },
  };
  return world;
}

/** Connects to the token handler's Redis as another replica would, so that a test can read sessions. */
function createInspector({ url }: TestRedis, handler: TestTokenHandler) {
  const limits = { maxAge: handler.config.SESSION_MAX_AGE, idle: handler.config.SESSION_IDLE };
  const log = pino({ level: 'silent' });
  const metrics = createMetrics();
  const redis = createRedis({ settings: { topology: { kind: 'server', url } }, log, metrics });
  const store = createRedisStore(redis, limits);
  const keys = createKeyRing(handler.config.KEY_RING);
  const unused = () => Promise.reject(new Error('the inspector refreshes nothing'));
  const sessions = new Sessions({
    ...{ store, keys, limits, cookieName, log, metrics, refreshConcurrency: 1, clock: () => new Date() },
    ...{ registrations: { find: unused }, relyingParty: { refresh: unused } },
    addresses: { mappedIssuer: handler.config.TENANT_ISSUERS.issuerOf },
  });
  return { sessions, store, redis };
}
