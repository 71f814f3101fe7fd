// Rules that hold for every route of every process, tested with the route tables of docs/routes.md.
//
// HEAD changes nothing (RFC 9110 section 9.2.1): every GET route gets a HEAD request with valid credentials, which must
// not change Postgres, Redis or the cookies. On some of these routes, GET does change them. Proxied requests are left
// out: their HEAD needs the CSRF token, and the upstream defines its effect.
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Route } from '../../src/service/http/http-app.ts';
import { routedProcesses } from '../rules/route-tables.ts';
import { applySettings } from '../support/apply.ts';
import { dumpDatabase } from '../support/database-dump.ts';
import { draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { roleToken } from '../support/platform.ts';
import { sendRaw } from '../support/raw-http.ts';
import { type SessionWorld, startSessionWorld } from '../support/sessions.ts';
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';

let world: FormWorld;
let forms: FormReplica;
let site: SessionWorld;
let formId: string;
const register = 'countries';

beforeAll(async () => {
  world = await startFormWorld();
  [forms, site] = await Promise.all([
    world.start({ env: applySettings }),
    startSessionWorld({ store: 'redis', platform: world.platform, client: { keycloakLogout: true } }),
  ]);
  formId = await draft(forms);
  const body = JSON.stringify({ name: register, description: 'Countries', entries: ['Canada'] });
  const headers = { authorization: `Bearer ${await adminToken()}`, 'content-type': 'application/json' };
  const created = await fetch(`${forms.url}/form/v1/registers`, { method: 'POST', headers, body });
  expect(created.status).toBe(201);
  await drained(world.pool);
  await world.platform.mailbox.waitFor(() => true);
});
afterAll(async () => {
  await site?.close();
  await world?.close();
});

/** Returns the token of a caller of the tenant demo who has every role, except that of an intake application. */
async function adminToken(): Promise<string> {
  const roles = ['admin', 'reader'].map((role) => `configuration-${role}`);
  return roleToken(
    world.platform.access,
    {
      'form-service': ['form-admin'],
      'token-handler': ['token-handler-admin'],
      'configuration-service': [...roles, 'configured-service'],
      'tenant-service': ['tenant-admin'],
      'notification-service': ['subscription-admin', 'subscription-app'],
    },
    { realm: 'demo', realmRoles: ['applicant'] },
  );
}

const routesOf = (title: string): Route[] =>
  routedProcesses.flatMap((process) => (process.title === title ? process.routes : []));
const get = (title: string): Route[] => routesOf(title).filter(({ method }) => method === 'get');

/** Replaces the parameters of a route with the names and ids of existing resources. */
function pathOf({ path }: Route): string {
  const tenantId = world.platform.tenant.id.split('/').at(-1) ?? '';
  const names: [RegExp, string][] = [
    [/(?<=\/registers\/):name/, register],
    [/(?<=configuration\/):namespace/, 'platform'],
    [/(?<=namespaces\/):namespace/, 'platform'],
    [/:name/, 'form-service'],
    [/:service/, 'form-service'],
    [/:api/, 'v1'],
    [/:revision/, '0'],
    [/:formId/, formId],
    [/:clientId/, site.clientId],
    [/:targetId\/\*path/, 'api/x'],
    [/:slug/, 'not-found'],
    [/:tenant/, 'demo'],
    [/:subscriberId/, randomBytes(12).toString('hex')],
    [/:id\b/, tenantId],
  ];
  return names.reduce((made, [name, value]) => made.replace(name, value), path).replaceAll(/:\w+/g, 'none');
}

/** Tables that background work changes: heartbeats of the platform server's workers, and measured storage. */
const background = /^public\.(?:worker_pools|tenant_storage)\./;

/** Returns the contents of all tables that only requests change. */
async function stateOf(pool: Pick<pg.Pool, 'query'>): Promise<Record<string, string[]>> {
  const columns = [...(await dumpDatabase(pool))].filter(([place]) => !background.test(place));
  return Object.fromEntries(columns.map(([place, texts]) => [place, texts.sort()]));
}

/** Waits until the background work of the preparation is done, such as mails about the draft. */
async function untilQuiet(pool: Pick<pg.Pool, 'query'>): Promise<Record<string, string[]>> {
  let last = await stateOf(pool);
  await expect
    .poll(
      async () => {
        const before = last;
        last = await stateOf(pool);
        return isDeepStrictEqual(before, last);
      },
      { interval: 500 },
    )
    .toBe(true);
  return last;
}

/** Returns the values and expiry times of all keys in Redis. */
async function stateOfRedis(): Promise<Record<string, unknown>> {
  const command = async (...args: string[]) => site.redis?.command(...args);
  const keys = ((await command('KEYS', '*')) as string[]).sort();
  const states = keys.map(async (key) => [key, await command('DUMP', key), await command('PEXPIRETIME', key)] as const);
  return Object.fromEntries((await Promise.all(states)).map(([key, ...state]) => [key, state]));
}

const cookieOf = (browser: SiteBrowser) =>
  ['formgate_session', 'XSRF-TOKEN'].map((name) => `${name}=${browser.cookie(site.site, name)}`).join('; ');

async function head(url: string, headers: Record<string, string>) {
  const response = await fetch(url, { method: 'HEAD', redirect: 'manual', headers });
  return { status: response.status, allow: response.headers.get('allow'), cookies: response.headers.getSetCookie() };
}

describe.each([
  ['Form service', () => ({ url: forms.url, pool: world.pool })],
  ['Platform server', () => ({ url: world.platform.url, pool: world.platformPool })],
] as const)('HEAD at the %s', (title, service) => {
  it('changes nothing, and has the status of GET where GET has no effects', async () => {
    const { url, pool } = service();
    const authorization = `Bearer ${await adminToken()}`;
    const intake = `Bearer ${world.token('intake')}`;
    const before = await untilQuiet(pool);
    const statuses = new Map<string, number>();
    for (const route of get(title)) {
      const { status, allow, cookies } = await head(url + pathOf(route), { authorization });
      expect([route.path, cookies]).toEqual([route.path, []]);
      if (route.getHasEffects)
        expect([route.path, status, allow]).toEqual([route.path, 405, expect.not.stringContaining('HEAD')]);
      statuses.set(route.path, status);
      await head(url + pathOf(route), { authorization: intake, 'x-form-code': 'WRONG1' });
    }
    expect(await stateOf(pool)).toEqual(before);
    for (const route of get(title).filter(({ getHasEffects }) => !getHasEffects)) {
      const { status } = await fetch(url + pathOf(route), { headers: { authorization } });
      expect([route.path, statuses.get(route.path)]).toEqual([route.path, status]);
      const needsMore =
        route.path.startsWith('/apply/forms/') || route.guards.some(({ admits }) => admits?.includes('form'));
      expect([route.path, [400, 401, 403].includes(status)]).toEqual([route.path, needsMore]);
    }
  });
});

it('HEAD for form data leaves lastAccessed as it is, which GET sets', async () => {
  const accessed = async () => (await world.pool.query('SELECT last_accessed::text FROM forms')).rows;
  const before = await accessed();
  const path = `/${formId}/data`;
  expect((await forms.ask('HEAD', path, { as: 'admin' })).status).toBe(405);
  expect(await accessed()).toEqual(before);
  expect((await forms.ask('GET', path, { as: 'admin' })).status).toBe(200);
  expect(await accessed()).not.toEqual(before);
});

describe('HEAD at the token handler', () => {
  it('changes nothing, for a person who is signed in and has another sign-in under way', async () => {
    const { browser } = await site.signIn();
    const callback = await site.toCallback(browser, site.authUrl({ returnTo: '/other' }));
    const cookie = cookieOf(browser);
    const queries: Record<string, string> = {
      auth: new URL(site.authUrl()).search,
      callback: callback.search,
      logout: '?returnTo=%2F',
    };
    const token = `Bearer ${await adminToken()}`;
    const database = {
      query: (sql: string) => site.handler.rows(sql).then((rows) => ({ rows })),
    } as unknown as pg.Pool;
    const before = [await stateOf(database), await stateOfRedis()];
    for (const route of get('Token handler')) {
      const url = site.site + pathOf(route) + (queries[route.path.split('/').at(-1) ?? ''] ?? '');
      for (const headers of [{ cookie }, { cookie, authorization: token }, {}]) {
        const { status, allow, cookies } = await head(url, headers as Record<string, string>);
        expect([route.path, cookies]).toEqual([route.path, []]);
        if (route.getHasEffects)
          expect([route.path, status, allow]).toEqual([route.path, 405, expect.not.stringContaining('HEAD')]);
      }
    }
    expect([await stateOf(database), await stateOfRedis()]).toEqual(before);
    // The same request to the callback with GET has an effect: it completes the sign-in.
    expect((await browser.request(callback)).headers.get('location')).toBe(`${site.site}/other`);
  });

  it('neither ends a session nor starts a sign-in', async () => {
    const { browser } = await site.signIn();
    const logout = site.clientUrl('logout');
    expect((await browser.request(logout, { method: 'HEAD' })).status).toBe(405);
    expect((await site.sessions(browser)).status).toBe(200);
    const stranger = createSiteBrowser();
    expect(await stranger.request(site.authUrl(), { method: 'HEAD' })).toMatchObject({ status: 405, setCookies: [] });
    expect((await browser.request(logout)).status).toBe(302);
    expect((await site.sessions(browser)).status).toBe(401);
  });
});

describe('two Authorization headers', () => {
  it('get 400 on every route of every process, proxied requests and WebSockets included', async () => {
    const authorization = `Authorization: Bearer ${await adminToken()}`;
    const { browser } = await site.signIn();
    const cookie = `Cookie: ${cookieOf(browser)}`;
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    const urls = { 'Form service': forms.url, 'Platform server': world.platform.url, 'Token handler': site.site };
    for (const [title, url] of Object.entries(urls))
      for (const route of routesOf(title))
        for (const more of route.method === 'all' ? [[cookie], [cookie, ...upgrade]] : [[]]) {
          const method = route.method === 'all' ? 'GET' : route.method.toUpperCase();
          const lines = [
            'Host: a',
            authorization,
            ...more,
            authorization,
            ...(more.length > 1 ? [] : ['Connection: close']),
          ];
          const head = [`${method} ${pathOf(route)} HTTP/1.1`, ...lines].join('\r\n');
          const { status, body } = await sendRaw(Number(new URL(url).port), `${head}\r\n\r\n`);
          expect([method, route.path, status, JSON.parse(body).errors]).toEqual([
            ...[method, route.path, 400],
            [{ pointer: '/headers/authorization', detail: 'must be sent once' }],
          ]);
        }
  });
});
