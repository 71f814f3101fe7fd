// A real token handler, with an address that leads to each page of a failed sign-in or logout. The causes are a client
// that is not registered, an unreachable identity provider, an unreachable Redis, an exhausted rate limit, and a
// missing table.
import type { RunningService } from '../../src/service/operations/serve.ts';
import type { PageName } from '../../src/token-handler/pages/catalogue.ts';
import { type HttpTap, startHttpTap } from './http-tap.ts';
import { call, startTestPlatform, type TestPlatform } from './platform.ts';
import { cookieName, type SessionWorld, startSessionWorld } from './sessions.ts';

export interface FailedSignIns {
  world: SessionWorld;
  /**
   * Value of the session cookie of a person who is signed in at `world`. Without this cookie, a request does not need
   * the session store.
   */
  cookie: string;
  /**
   * Calls `visit` with the address of a page. While `visit` runs, each request to this address with the cookie gets the
   * page.
   */
  during<T>(page: PageName, visit: (url: string) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const frozen = new Date('2026-11-22T12:02:30Z');
/**
 * A clock that stands still: the rate limit's window is always half over, and data cached from the platform never
 * expires.
 */
const clock = () => frozen;

/**
 * A client name that tries to break out of an HTML attribute or tag, to reverse the text direction, and to fill the
 * screen.
 */
const hostileName = `<img src=x onerror=alert(1)>&\u202e"'${'x'.repeat(5_000)}`;

export async function startFailedSignIns(): Promise<FailedSignIns> {
  const platform = await startTestPlatform();
  const { origin } = new URL(platform.access.url);
  const [world, tap] = await Promise.all([startSessionWorld({ platform }), startHttpTap(origin)]);
  const { configure, startReplica } = world.handler;
  await configure({
    web: { name: 'Fishing licences', redirectUris: [`${world.site}/token-handler/clients/web/callback`] },
    unregistered: { name: 'Camping permits' },
    hostile: { name: hostileName },
  });
  const { withoutRedis, withoutProvider, limited } = await startReplicas(startReplica, tap, platform);
  await call(world.authUrl({}, { site: limited.url }));
  await loseProvider(withoutProvider, world, tap);

  const addresses: Record<PageName, string> = {
    'sign-in-expired': world.clientUrl('callback', { state: 'of-another-browser', code: 'x' }),
    'client-not-registered': world.authUrl({}, { clientId: 'unregistered' }),
    'unknown-tenant': world.authUrl({ tenant: 'nowhere' }),
    'unknown-client': world.authUrl({}, { clientId: 'unknown' }),
    'identity-provider-down': world.authUrl({}, { site: withoutProvider.url }),
    'service-unavailable': world.clientUrl('callback', { state: 'x', code: 'x' }, { site: withoutRedis.url }),
    'rate-limited': world.authUrl({}, { site: limited.url }),
    'invalid-link': world.clientUrl('auth', { tenant: 'demo' }),
    'sign-out-failed': world.clientUrl('logout', {}, { site: withoutRedis.url }),
    general: world.authUrl(),
  };
  const { browser } = await world.signIn();
  return {
    world,
    cookie: browser.cookie(world.site, cookieName) ?? '',
    during: (page, visit) =>
      page === 'general' ? withoutTable(world, () => visit(addresses.general)) : visit(addresses[page]),
    async close() {
      await Promise.all([withoutRedis, withoutProvider, limited].map((replica) => replica.close()));
      await tap.close();
      await world.close();
      await platform.close();
    },
  };
}

async function startReplicas(start: SessionWorld['handler']['startReplica'], tap: HttpTap, { access }: TestPlatform) {
  const provider = { ACCESS_SERVICE_URL: `${tap.url}${new URL(access.url).pathname}` };
  // Nothing listens on port 1.
  const noRedis = { SESSION_STORE: 'redis', REDIS_URL: 'redis://127.0.0.1:1' };
  const [withoutRedis, withoutProvider, limited] = await Promise.all([
    start({ env: noRedis }),
    start({ env: provider, clock }),
    start({ env: { SIGN_IN_LIMIT: '1' }, clock }),
  ]);
  return { withoutRedis, withoutProvider, limited };
}

/**
 * Makes the identity provider unreachable, after the token handler has got its token for the platform and before
 * anybody has signed in.
 */
async function loseProvider(replica: RunningService, world: SessionWorld, tap: HttpTap): Promise<void> {
  const { status } = await call(world.authUrl({}, { site: replica.url, clientId: 'unregistered' }));
  if (status !== 409) throw new Error(`the token handler does not find its clients: ${status}`);
  await tap.shut();
}

async function withoutTable<T>({ handler }: SessionWorld, work: () => Promise<T>): Promise<T> {
  await handler.rows('ALTER TABLE client_registrations RENAME TO hidden');
  try {
    return await work();
  } finally {
    await handler.rows('ALTER TABLE hidden RENAME TO client_registrations');
  }
}
