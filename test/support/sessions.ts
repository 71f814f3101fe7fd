// A token handler with a registered client, and people who sign in to it over plain HTTP. The service's own address is
// the frontend's site.
import { startTestRedis, type TestRedis } from './redis.ts';
import { createSiteBrowser, type SiteBrowser, type Visit } from './site-browser.ts';
import { startTestTokenHandler, type TestTokenHandler, type TestTokenHandlerOptions } from './token-handler.ts';

export interface SessionWorld {
  handler: TestTokenHandler;
  redis: TestRedis | undefined;
  /** Of the site: where the token handler answers. */
  site: string;
  clientId: string;
  /** Address of an endpoint of the client: `auth`, `callback`, `logout`. */
  clientUrl(endpoint: string, query?: Record<string, string>, client?: { site?: string; clientId?: string }): string;
  /** The address that starts a sign-in to the tenant `Demo`. */
  authUrl(query?: Record<string, string>, client?: { site?: string; clientId?: string }): string;
  /** From the start to the callback, whose address it answers without asking for it. */
  toCallback(browser: SiteBrowser, start?: string, email?: string): Promise<URL>;
  /** From the start to where the sign-in ends. */
  signIn(browser?: SiteBrowser, options?: { start?: string; email?: string }): Promise<SignedInBrowser>;
  sessions(browser: SiteBrowser, headers?: Record<string, string>): Promise<Visit>;
  close(): Promise<void>;
}

export interface SignedInBrowser {
  browser: SiteBrowser;
  /** The answer of the callback. */
  landed: Visit;
  csrf: string;
  /** Public handle. */
  handle: string;
}

export interface SessionWorldOptions extends TestTokenHandlerOptions {
  store?: 'redis' | 'memory';
  client?: Record<string, unknown>;
  /** Further frontends' sites that may be called back. */
  sites?: string[];
}

export const cookieName = 'formgate_session';
/** What the demo realm's people have as passwords. */
const passwordOf = (email: string) => email.split('@', 1)[0] ?? '';

export async function startSessionWorld(options: SessionWorldOptions = {}): Promise<SessionWorld> {
  const { store = 'memory', client = {}, sites = [], env, ...rest } = options;
  const redis = store === 'redis' ? await startTestRedis() : undefined;
  const handler = await startTestTokenHandler({
    ...rest,
    env: { ...(redis && { REDIS_URL: redis.url }), SIGN_IN_LIMIT: '100000', ...env },
  });
  const site = handler.url;
  const clientId = 'web';
  const callbackOf = (origin: string, id: string) =>
    `${origin}/token-handler/clients/${encodeURIComponent(id)}/callback`;
  await handler.configure({
    [clientId]: { redirectUris: [site, ...sites].map((origin) => callbackOf(origin, clientId)), ...client },
  });
  const registered = await handler.register(clientId);
  if (registered.status !== 200) throw new Error(`registration: ${registered.text}`);

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
      if (!begun.location) throw new Error(`sign-in did not start: ${begun.status} ${begun.text}`);
      const form = await browser.follow(begun, isCallback);
      // Whoever is signed in at the access service is asked nothing.
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
    async close() {
      redis?.resume();
      await handler.close();
      await redis?.close();
    },
  };
  return world;
}
