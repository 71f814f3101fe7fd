// Tests the session endpoints for people and for administrators, and that tenants are isolated from each other.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { call, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import {
  cookieName,
  type SessionWorld,
  type SignedInBrowser,
  startSessionWorld,
} from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startTestPlatform();
});
afterAll(() => platform.close());

describe.each(['memory', 'redis'] as const)('sessions in %s', (store) => {
  let world: SessionWorld;
  beforeAll(async () => {
    world = await startSessionWorld({ store, platform });
    await world.handler.configure(
      { web: { redirectUris: [`${world.site}/token-handler/clients/web/callback`] } },
      { tenant: platform.otherTenant },
    );
    await world.handler.register('web', { realm: 'other' });
  });
  afterAll(() => world.close());

  const list = async (browser: SignedInBrowser['browser'], headers = {}) => {
    const { status, text } = await world.sessions(browser, headers);
    return { status, ids: status === 200 ? (JSON.parse(text) as { id: string }[]).map(({ id }) => id) : [] };
  };
  const revoke = (by: SignedInBrowser, handle: string, headers: Record<string, string> = { 'X-XSRF-TOKEN': by.csrf }) =>
    by.browser.request(`${world.site}/token-handler/sessions/${handle}`, { method: 'DELETE', headers });

  it('the list responds with 401 without a session, and never redirects', async () => {
    const response = await world.sessions(createSiteBrowser());
    expect([response.status, response.location]).toEqual([401, undefined]);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(response.headers.get('content-type')).toContain('application/problem+json');
  });

  it('the list begins with the session of the cookie, followed by the person’s others', async () => {
    const [one, two] = [await world.signIn(), await world.signIn()];
    const seen = await list(one.browser);
    expect(seen.ids[0]).toBe(one.handle);
    expect(seen.ids).toContain(two.handle);
    expect((await list(two.browser)).ids[0]).toBe(two.handle);
  });

  it('the list has no sessions of other people', async () => {
    const alice = await world.signIn();
    const admin = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    expect((await list(alice.browser)).ids).not.toContain(admin.handle);
    expect((await list(admin.browser)).ids).not.toContain(alice.handle);
  });

  it('a person revokes another of their sessions, which is rejected immediately', async () => {
    const [one, two] = [await world.signIn(), await world.signIn()];
    expect((await list(two.browser)).status).toBe(200);
    expect((await revoke(one, two.handle)).status).toBe(200);
    expect((await list(two.browser)).status).toBe(401);
    expect((await list(one.browser)).ids).not.toContain(two.handle);
    expect((await revoke(one, two.handle)).status).toBe(404);
  });

  it('a person who revokes the session of the cookie loses the cookies', async () => {
    const one = await world.signIn();
    expect((await revoke(one, one.handle)).status).toBe(200);
    expect(one.browser.cookie(world.site, cookieName)).toBeUndefined();
    expect(one.browser.cookie(world.site, 'XSRF-TOKEN')).toBeUndefined();
  });

  it('revoking requires the CSRF token and the session’s site', async () => {
    const [one, two] = [await world.signIn(), await world.signIn()];
    expect((await revoke(one, two.handle, {})).status).toBe(403);
    expect((await revoke(one, two.handle, { 'X-XSRF-TOKEN': two.csrf })).status).toBe(403);
    const foreign = { 'X-XSRF-TOKEN': one.csrf, Origin: 'https://evil.example' };
    expect((await revoke(one, two.handle, foreign)).status).toBe(403);
    expect((await revoke(one, two.handle, { 'X-XSRF-TOKEN': one.csrf, Origin: world.site })).status).toBe(200);
  });

  it('a person cannot revoke another person’s session', async () => {
    const alice = await world.signIn();
    const admin = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    expect((await revoke(alice, admin.handle)).status).toBe(404);
    expect((await list(admin.browser)).status).toBe(200);
  });

  it('an administrator lists and revokes the tenant’s sessions with a bearer token', async () => {
    const alice = await world.signIn();
    const token = await world.handler.adminToken();
    const seen = await world.handler.api('/sessions', { token });
    expect(seen.status).toBe(200);
    expect((seen.body as { id: string }[]).map(({ id }) => id)).toContain(alice.handle);
    expect((await world.handler.api(`/sessions/${alice.handle}`, { method: 'DELETE', token })).status).toBe(200);
    expect((await list(alice.browser)).status).toBe(401);
  });

  it('an administrator reads the list page by page', async () => {
    await Promise.all([world.signIn(), world.signIn(), world.signIn()]);
    const token = await world.handler.adminToken();
    const all: string[] = [];
    for (let after = ''; ; ) {
      const { body } = await world.handler.api(`/sessions?top=2${after && `&after=${after}`}`, { token });
      const ids = (body as { id: string }[]).map(({ id }) => id);
      if (ids.length === 0) break;
      all.push(...ids);
      after = ids.at(-1) ?? '';
    }
    expect(new Set(all).size).toBe(all.length);
    expect(all.length).toBeGreaterThan(3);
  });

  it('an administrator ends all sessions page by page, and a page after an unknown session is 400', async () => {
    const browsers = await Promise.all(Array.from({ length: 5 }, async () => (await world.signIn()).browser));
    const token = await world.handler.adminToken();
    for (let after = ''; ; ) {
      const { body } = await world.handler.api(`/sessions?top=2${after && `&after=${after}`}`, { token });
      const ids = (body as { id: string }[]).map(({ id }) => id);
      if (ids.length === 0) break;
      for (const id of ids)
        expect((await world.handler.api(`/sessions/${id}`, { method: 'DELETE', token })).status).toBe(200);
      after = ids.at(-1) ?? '';
    }
    for (const browser of browsers) expect((await list(browser)).status).toBe(401);
    const unknown = await world.handler.api('/sessions?after=unknown', { token });
    expect(unknown).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/after' }] } });
  });

  it('a person on a site that asks for a password (Authorization: Basic) lists and revokes sessions, with the CSRF token', async () => {
    const [one, two] = [await world.signIn(), await world.signIn()];
    const basic = { Authorization: 'Basic YTpi' };
    expect((await list(one.browser, basic)).ids).toContain(two.handle);
    expect((await revoke(one, two.handle, basic)).status).toBe(403);
    expect((await revoke(one, two.handle, { ...basic, 'X-XSRF-TOKEN': one.csrf })).status).toBe(200);
    const without = await world.sessions(createSiteBrowser(), basic);
    expect([without.status, without.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });

  it('a bearer token without the role gets 403 and an invalid one 401, even with a session cookie', async () => {
    const { browser } = await world.signIn();
    const plain = await platform.access.foreignToken({ aud: platform.access.urns.service('token-handler') });
    const cookie = `${cookieName}=${browser.cookie(world.site, cookieName)}`;
    const ask = async (token: string) =>
      (await call(`${world.site}/token-handler/sessions`, { token, headers: { cookie } })).status;
    expect(await ask(plain)).toBe(403);
    expect(await ask('nonsense')).toBe(401);
  });

  describe('of another tenant', () => {
    const otherUrl = () => world.authUrl({ tenant: platform.otherTenant.id });

    it('are not listed for an administrator, and cannot be revoked (404)', async () => {
      const other = await world.signIn(createSiteBrowser(), { start: otherUrl() });
      const token = await world.handler.adminToken();
      const { body } = await world.handler.api('/sessions', { token });
      expect((body as { id: string }[]).map(({ id }) => id)).not.toContain(other.handle);
      expect((await world.handler.api(`/sessions/${other.handle}`, { method: 'DELETE', token })).status).toBe(404);
      expect((await list(other.browser)).status).toBe(200);
    });

    it('a cookie gets 401 if the tenant header names another tenant, by name or URN', async () => {
      const { browser } = await world.signIn();
      const named = async (tenant: string) => (await list(browser, { 'X-PLATFORM-TENANT': tenant })).status;
      for (const tenant of ['demo', 'Demo', platform.tenant.id]) expect(await named(tenant)).toBe(200);
      for (const tenant of ['other-town', 'Other Town', platform.otherTenant.id, 'Nowhere', 'urn:example:x'])
        expect(await named(tenant)).toBe(401);
    });

    it('a sign-in to one tenant cannot be completed on another’s domain (mix-up)', async () => {
      const browser = createSiteBrowser();
      const callback = await world.toCallback(browser);
      const headers = { 'X-PLATFORM-TENANT': 'other-town' };
      expect((await browser.request(callback, { headers })).status).toBe(400);
    });

    it('a response of another tenant’s identity provider does not complete a sign-in (mix-up)', async () => {
      const browser = createSiteBrowser();
      const mine = await world.toCallback(browser);
      const theirs = await world.toCallback(browser, otherUrl());
      const mixed = new URL(theirs);
      mixed.searchParams.set('state', mine.searchParams.get('state') ?? '');
      expect((await browser.request(mixed)).status).toBe(400);
      const disguised = new URL(mixed);
      disguised.searchParams.set('iss', mine.searchParams.get('iss') ?? '');
      expect((await browser.request(disguised)).status).toBe(400);
      expect((await list(browser)).status).toBe(401);
    });

    it('a second sign-in, to another tenant, replaces the session of the browser', async () => {
      const { browser } = await world.signIn();
      await world.signIn(browser, { start: otherUrl() });
      const { text } = await world.sessions(browser);
      expect(JSON.parse(text)[0].tenantId).toBe(platform.otherTenant.id);
    });
  });
});

describe('the end of a session', () => {
  it('comes SESSION_IDLE after the last request to a target, however often the list of sessions is read', async () => {
    let offset = 0;
    const clock = () => new Date(Date.now() + offset);
    const client = { targets: [{ id: 'directory', upstream: 'urn:example:platform:directory-service:v2' }] };
    const world = await startSessionWorld({ platform, clock, client, env: { SESSION_IDLE: 'PT4M' } });
    onTestFinished(() => world.close());
    const { browser } = await world.signIn();
    const idleExpiry = async () => Date.parse(JSON.parse((await world.sessions(browser)).text)[0].idleExpiry);
    const first = await idleExpiry();
    offset = 120_000;
    expect(await idleExpiry()).toBe(first);
    const target = `${world.site}/token-handler/targets/directory/namespaces/platform/entries`;
    expect((await browser.request(target)).status).toBe(200);
    await expect.poll(idleExpiry).toBeGreaterThanOrEqual(first + 120_000);
    const later = await idleExpiry();
    offset = 330_000;
    expect(await idleExpiry()).toBe(later);
    offset = 380_000;
    expect((await world.sessions(browser)).status).toBe(401);
  });

  it('is in the list: when it comes without requests, and when at the latest', async () => {
    const world = await startSessionWorld({ platform });
    onTestFinished(() => world.close());
    const { browser } = await world.signIn();
    await world.signIn();
    const [own, other] = JSON.parse((await world.sessions(browser)).text);
    const since = (instant: string) => Date.parse(instant) - Date.parse(own.created);
    expect(since(own.absoluteExpiry)).toBe(12 * 3_600_000);
    expect(since(own.idleExpiry)).toBeGreaterThanOrEqual(3_600_000);
    expect(since(own.idleExpiry)).toBeLessThan(3_660_000);
    expect(since(own.expiry)).toBeLessThanOrEqual(since(own.idleExpiry));
    expect(own.logoutUrl).toBe(world.clientUrl('logout'));
    expect(other.logoutUrl).toBeNull();
    const { location } = await browser.request(own.logoutUrl);
    expect([location?.href, (await world.sessions(browser)).status]).toEqual([`${world.site}/`, 401]);
  });

  it('comes SESSION_MAX_AGE after the sign-in, regardless of requests', async () => {
    let offset = 0;
    const clock = () => new Date(Date.now() + offset);
    const client = { targets: [{ id: 'directory', upstream: 'urn:example:platform:directory-service:v2' }] };
    const env = { SESSION_MAX_AGE: 'PT10M', SESSION_IDLE: 'PT4M' };
    const world = await startSessionWorld({ platform, clock, client, env });
    onTestFinished(() => world.close());
    const { browser } = await world.signIn();
    const idleExpiry = async () => Date.parse(JSON.parse((await world.sessions(browser)).text)[0].idleExpiry);
    const first = await idleExpiry();
    const target = `${world.site}/token-handler/targets/directory/namespaces/platform/entries`;
    for (offset of [180_000, 360_000, 540_000]) {
      expect((await browser.request(target)).status).toBe(200);
      // The next request would come too late if this one had not yet postponed the end.
      await expect.poll(idleExpiry).toBeGreaterThanOrEqual(first + offset);
    }
    offset = 600_000;
    expect((await browser.request(target)).status).toBe(401);
    expect((await world.sessions(browser)).status).toBe(401);
  });
});
