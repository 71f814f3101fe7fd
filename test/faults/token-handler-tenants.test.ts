// Adds tenants while a token handler runs in a separate process. Each tenant has its own realm and a registered client,
// through which people sign in. An invalid client does not affect other clients. For each tenant, the process keeps
// only entries in bounded caches. TENANTS=1000 adds a thousand tenants. The smaller default is enough, because the
// memory is limited per tenant.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { applySeed } from '../../src/platform-server/seed.ts';
import { systemClock } from '../../src/service/clock.ts';
import { startTestAccess, type TestAccess } from '../support/access.ts';
import { createMemoryEntityStore } from '../support/memory-entity-store.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { cookieName } from '../support/sessions.ts';
import { createSiteBrowser } from '../support/site-browser.ts';
import { sizeOf } from '../support/sizes.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../support/token-handler.ts';
import { startTokenHandlerProcess, type TokenHandlerProcess } from '../support/token-handler-process.ts';

const kibibyte = 1_024;
const most = sizeOf('TENANTS');
/**
 * Number of tenants that are added together. After the first batch, the code is warm, and the process has everything
 * that it keeps once for all tenants.
 */
const batch = Math.max(30, Math.ceil(most / 5));
/**
 * Limit of the live heap per tenant, in KiB. A tenant costs an entry in the list of tenants, a configuration with the
 * parsed clients, the discovery document and the keys of the realm, and a verified token. Each cache except the list is
 * an LRU of 5,000 entries (tokens: 10,000), so more tenants cost no more memory. In a run with a thousand tenants, each
 * tenant cost 12 KiB.
 */
const mostPerTenant = 24;
/**
 * Growth of the live heap, in KiB, that does not depend on the number of tenants, such as code that is compiled late.
 */
const lateCode = 1_024;
/**
 * Limit of the growth of the live heap, in KiB, when requests of the same tenants are repeated. With a thousand
 * tenants, the growth was 50 to 120 KiB.
 */
const noise = 320;
/**
 * Limit of additional metric series, sockets and timers. Other kinds of requests may cause a few of them. One series or
 * socket per tenant would exceed this limit.
 */
const fewer = batch / 2;

let redis: TestRedis;
let access: TestAccess;
let platform: TestPlatform;
let world: TestTokenHandler;
let handler: TokenHandlerProcess;
let database: pg.Pool;
let configurator: string;
/**
 * Tokens of the tenants' administrators. All calls of a tenant use the same token, because the process caches each
 * verified token.
 */
const tokens = new Map<number, string>();
beforeAll(async () => {
  // All realms have the same signing key, because creating a thousand keys would take minutes.
  const store = createMemoryEntityStore(systemClock);
  const signingKey: typeof store.signingKey = (_realm, create) => store.signingKey('all', create);
  access = await startTestAccess({ store: { ...store, signingKey } });
  [redis, platform] = await Promise.all([startTestRedis(), startTestPlatform({ access })]);
  // The measured process does the follow-up work of registrations. The token handler in this process therefore polls
  // for such work only rarely.
  world = await startTestTokenHandler({ platform, env: { REDIS_URL: redis.url }, pace: { poll: 3_600_000 } });
  await world.configure({ shared: {} }, { core: true });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  configurator = await roleToken(access, { 'configuration-service': ['configured-service'] });
  // The caches have a short lifetime, so that cached data is fetched repeatedly.
  const env = { ...world.env, LOG_LEVEL: 'warn', PLATFORM_CACHE_TTL: 'PT2S', SIGN_IN_LIMIT: '1000000' };
  handler = await startTokenHandlerProcess({ env });
});
afterAll(async () => {
  await handler.stop();
  await database.end();
  await world.close();
  await Promise.all([platform.close(), redis.close()]);
  await access.close();
});

const hasInvalidClient = (nth: number) => nth % 20 === 0;
/**
 * True for the tenants in which this test signs people in. The first batch has such a tenant, so that later sign-ins
 * add no metric series.
 */
const signsIn = (nth: number) => nth % 50 === 25;
const nameOf = (nth: number) => `Town ${nth}`;
const realmOf = (nth: number) => `town-${nth}`;
const idOf = (nth: number) => nth.toString(16).padStart(24, '0');
const urnOf = (nth: number) => access.urns.tenant(idOf(nth));
const callbackUrl = () => `${handler.url}/token-handler/clients/own/callback`;
const authUrl = (tenant: string) =>
  `${handler.url}/token-handler/clients/own/auth?${new URLSearchParams({ tenant, callbackUrl: callbackUrl() })}`;

const inTurns = async (tenants: number[], work: (nth: number) => Promise<void>) => {
  const left = [...tenants];
  const worker = async () => {
    for (let nth = left.shift(); nth !== undefined; nth = left.shift()) await work(nth);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
};

const from = (first: number, to: number) => Array.from({ length: to - first + 1 }, (_, index) => first + index);

/** Adds tenants to the list of tenants, each with its own realm and configuration. */
async function add(tenants: number[]): Promise<void> {
  const rows = tenants.map((nth) => ({ id: idOf(nth), name: nameOf(nth), realm: realmOf(nth) }));
  await applySeed(database, { tenants: rows, directory: [] });
  const target = { id: 'directory', upstream: access.urns.service('directory-service:v2') };
  const own = { description: 'Of this town', redirectUris: [callbackUrl()], targets: [target] };
  const invalid = { targets: [{ id: 'x', upstream: 'no urn' }] };
  const configuration = `${platform.url}/configuration/v2/configuration/platform/token-handler`;
  await inTurns(tenants, async (nth) => {
    await access.addRealm(realmOf(nth));
    const role = { 'token-handler': ['token-handler-admin'] };
    const exp = Math.floor(Date.now() / 1_000) + 3_600;
    tokens.set(nth, await roleToken(access, role, { realm: realmOf(nth), claims: { exp } }));
    const clients = { own, ...(hasInvalidClient(nth) && { broken: invalid }) };
    const { status, text } = await call(`${configuration}?tenantId=${encodeURIComponent(urnOf(nth))}`, {
      method: 'PATCH',
      token: configurator,
      body: { operation: 'REPLACE', configuration: { clients } },
    });
    expect([nth, status], text).toEqual([nth, 200]);
  });
  const last = tenants.at(-1) ?? 0;
  const isKnown = async () => (await fetch(authUrl(nameOf(last)), { redirect: 'manual' })).status;
  await expect.poll(isKnown).not.toBe(404);
}

async function register(nth: number): Promise<void> {
  const registrationToken = await access.registrationToken(realmOf(nth));
  const registered = await call(`${handler.url}/token-handler/v1/clients/own`, {
    method: 'POST',
    token: tokens.get(nth),
    body: { registrationToken },
  });
  expect([nth, registered.status], registered.text).toEqual([nth, 200]);
}

/** Sends the requests that make the process cache a tenant's data. */
async function meet(nth: number): Promise<void> {
  const { status, body } = await call(`${handler.url}/token-handler/v1/clients`, { token: tokens.get(nth) });
  const listed = (body as { id: string; registered: boolean }[]).map(({ id, registered }) => [id, registered]);
  // The client `broken`, which is invalid, is not listed and does not affect the other clients of its tenant.
  expect([nth, status, Object.fromEntries(listed)]).toEqual([nth, 200, { own: true, shared: false }]);
  for (const tenant of [realmOf(nth), urnOf(nth)]) {
    const begun = await fetch(authUrl(tenant), { redirect: 'manual' });
    const location = begun.headers.get('location') ?? '';
    expect([nth, begun.status, location.startsWith(`${access.issuer(realmOf(nth))}/`)]).toEqual([nth, 302, true]);
  }
  if (signsIn(nth)) await signIn(nth);
}

/** Signs a person of the tenant in, calls a target with the session, and logs out. */
async function signIn(nth: number): Promise<void> {
  const browser = createSiteBrowser();
  const isCallback = (url: URL) => url.pathname.endsWith('/callback');
  const form = await browser.follow(await browser.request(authUrl(nameOf(nth).toUpperCase())), isCallback);
  const sent = await browser.submit(form, { username: 'alice@example.com', password: 'alice' });
  const { location } = await browser.follow(sent, isCallback);
  const landed = await browser.request(location ?? '');
  expect([nth, landed.status, browser.cookie(handler.url, cookieName) !== undefined]).toEqual([nth, 302, true]);
  const target = `${handler.url}/token-handler/targets/directory/namespaces/platform/entries`;
  expect([nth, (await browser.request(target)).status]).toEqual([nth, 200]);
  const ended = await browser.request(`${handler.url}/token-handler/clients/own/logout`);
  expect([nth, ended.status]).toEqual([nth, 302]);
}

interface Kept {
  /** KiB of the heap in use after garbage collection: the lowest of several measurements. */
  heap: number;
  /** Number of series in the text of /metrics. */
  series: number;
  /** Number of sockets, timers and other resources that Node counts. */
  resources: number;
}

async function whatIsKept(after: string): Promise<Kept> {
  await delay(1_000);
  const looks: number[] = [];
  for (let look = 0; look < 3; look += 1) looks.push((await handler.liveHeapBytes()) / kibibyte);
  const heap = Math.round(Math.min(...looks));
  const resident = Math.round((await handler.residentBytes()) / kibibyte);
  process.stdout.write(`${after}: heap ${heap} KiB, RSS ${resident} KiB\n`);
  const series = (await (await fetch(`${handler.metricsUrl}/metrics`)).text()).split('\n').length;
  return { heap, series, resources: await handler.metric('nodejs_active_resources_total') };
}

it('tenants that are added while it runs are known soon, and each costs no more memory than its entries in bounded caches', {
  timeout: 600_000,
}, async () => {
  const come = async (first: number) => {
    const tenants = from(first, Math.min(first + batch - 1, most));
    await add(tenants);
    await inTurns(tenants, register);
    await inTurns(tenants, meet);
  };
  await come(1);
  const few = await whatIsKept(`${batch} tenants`);
  for (let first = 1 + batch; first <= most; first += batch) await come(first);
  const all = await whatIsKept(`${most} tenants`);
  expect(all.heap - few.heap).toBeLessThan(mostPerTenant * (most - batch) + lateCode);
  expect(all.series - few.series).toBeLessThan(fewer);
  expect(all.resources - few.resources).toBeLessThan(fewer);
});

it('serving the same tenants again takes no more memory, although their list and configurations are fetched again', {
  timeout: 600_000,
}, async () => {
  // Warm up: the code that refreshes cached data is compiled only after several hundred requests.
  for (let met = 0; met < 450; met += most) await inTurns(from(1, most), meet);
  const before = await whatIsKept('all some times');
  for (let met = 0; met < 300; met += most) await inTurns(from(1, most), meet);
  const after = await whatIsKept('all again');
  expect(after.heap - before.heap).toBeLessThan(noise);
  expect(after.series - before.series).toBeLessThan(fewer);
  expect(after.resources - before.resources).toBeLessThan(fewer);
});

it('an invalid client is counted once, and does not affect sign-ins to its tenant’s other client and to other tenants', async () => {
  const left = 'formgate_invalid_clients_total{place="tenant",field="targets"}';
  expect(await handler.metric(left)).toBe(from(1, most).filter(hasInvalidClient).length);
  await inTurns([19, 20, 21], signIn);
});
