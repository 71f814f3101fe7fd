// Tests the five rules TH-logout-1 to TH-logout-5 for a logout by the person, with a real identity provider and both
// session stores.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { confirmLogout } from '../../../test/support/access-pages.ts';
import { type HttpTap, startHttpTap } from '../../../test/support/http-tap.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { cookieName, type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startTestPlatform();
});
afterAll(() => platform.close());

describe.each(['memory', 'redis'] as const)('logout with sessions in %s', (store) => {
  let world: SessionWorld;
  let tap: HttpTap;
  beforeAll(async () => {
    const { origin, pathname } = new URL(platform.access.url);
    tap = await startHttpTap(origin);
    world = await startSessionWorld({ store, platform, accessUrl: `${tap.url}${pathname}` });
    const callback = `${world.site}/token-handler/clients`;
    await world.handler.configure({
      web: { redirectUris: [`${callback}/web/callback`] },
      through: { redirectUris: [`${callback}/through/callback`], keycloakLogout: true },
    });
    await world.handler.register('through');
  });
  afterAll(async () => {
    await world.close();
    await tap.close();
  });

  const through = { clientId: 'through' };
  /** True if the browser is still signed in at the identity provider, which then shows no sign-in form. */
  const isKnown = async (browser: ReturnType<typeof createSiteBrowser>) => {
    const begun = await browser.request(world.authUrl());
    return (await browser.follow(begun, (url) => url.pathname.endsWith('/callback'))).location !== undefined;
  };

  it('ends the session, discards its tokens, clears the cookies and redirects to the root of the site (rule 1)', async () => {
    const { browser, handle } = await world.signIn();
    const stolen = browser.copy();
    const { status, headers } = await browser.request(world.clientUrl('logout'));
    expect([status, headers.get('location')]).toEqual([302, '/']);
    expect(browser.cookie(world.site, cookieName)).toBeUndefined();
    expect(browser.cookie(world.site, 'XSRF-TOKEN')).toBeUndefined();
    expect((await world.sessions(stolen)).status).toBe(401);
    // Redis keeps only the session's former position in lists, for an hour (`positionLife`).
    const kept = ((await world.redis?.command('KEYS', `*${handle}*`)) ?? []) as string[];
    expect(kept.filter((key) => !key.includes('}:removed:'))).toEqual([]);
  });

  it('redirects to a returnTo path, and to no other origin', async () => {
    const { browser } = await world.signIn();
    const gone = await browser.request(world.clientUrl('logout', { returnTo: '/bye?x=1' }));
    expect([gone.status, gone.headers.get('location')]).toEqual([302, '/bye?x=1']);
    for (const returnTo of ['//evil.example', '/\\evil.example', 'https://evil.example', '/%5cevil.example'])
      expect((await browser.request(world.clientUrl('logout', { returnTo }))).status).toBe(400);
  });

  it('does not end the session of the identity provider by default (rule 2)', async () => {
    const { browser } = await world.signIn();
    await browser.request(world.clientUrl('logout'));
    expect(await isKnown(browser)).toBe(true);
  });

  it('with keycloakLogout also ends the session of the identity provider, and returns to the root of the callbackUrl’s host (rule 3)', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { start: world.authUrl({}, through) });
    const { location } = await browser.request(world.clientUrl('logout', {}, through));
    expect(location?.href.startsWith(`${platform.access.issuer('demo')}/protocol/openid-connect/logout?`)).toBe(true);
    expect(location?.searchParams.get('post_logout_redirect_uri')).toBe(`${world.site}/`);
    expect(location?.searchParams.get('id_token_hint')).toBeTruthy();
    expect((await world.sessions(browser)).status).toBe(401);
    const done = await confirmLogout(browser, location);
    const back = await browser.follow(done, (url) => url.origin === world.site);
    expect(back.location?.href).toBe(`${world.site}/`);
    expect(await isKnown(browser)).toBe(false);
  });

  it('with keycloakLogout ends the session of the identity provider also if the client was registered again', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { start: world.authUrl({}, through) });
    await world.handler.register('through');
    // Waits until the former OAuth client has been deleted in the background.
    await expect.poll(() => world.handler.rows('SELECT FROM client_deletions')).toEqual([]);
    const { location } = await browser.request(world.clientUrl('logout', {}, through));
    const done = await confirmLogout(browser, location);
    const back = await browser.follow(done, (url) => url.origin === world.site);
    expect(back.location?.href).toBe(`${world.site}/`);
    expect(await isKnown(browser)).toBe(false);
  });

  it('with keycloakLogout ends the session of the identity provider also while the database fails', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { start: world.authUrl({}, through) });
    await world.handler.rows('ALTER TABLE client_registrations RENAME TO former_registrations');
    onTestFinished(
      async () =>
        void (await world.handler.rows('ALTER TABLE IF EXISTS former_registrations RENAME TO client_registrations')),
    );
    const { location } = await browser.request(world.clientUrl('logout', {}, through));
    await world.handler.rows('ALTER TABLE former_registrations RENAME TO client_registrations');
    const done = await confirmLogout(browser, location);
    await browser.follow(done, (url) => url.origin === world.site);
    expect(await isKnown(browser)).toBe(false);
  });

  it('with Sec-Fetch-Site: cross-site ends the session of the token handler only (rule 5)', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { start: world.authUrl({}, through) });
    const headers = { 'Sec-Fetch-Site': 'cross-site' };
    const gone = await browser.request(world.clientUrl('logout', {}, through), { headers });
    expect([gone.status, gone.headers.get('location')]).toEqual([302, '/']);
    expect((await world.sessions(browser)).status).toBe(401);
    expect(await isKnown(browser)).toBe(true);
  });

  it('redirects to the root also without a session, and a second time', async () => {
    const { browser } = await world.signIn();
    for (const who of [createSiteBrowser(), browser, browser]) {
      const gone = await who.request(world.clientUrl('logout'));
      expect([gone.status, gone.headers.get('location')]).toEqual([302, '/']);
    }
  });

  it('revokes no token and sends the identity provider nothing, so the person stays signed in there', async () => {
    const { browser } = await world.signIn();
    const before = tap.exchanges.length;
    await browser.request(world.clientUrl('logout'));
    expect(tap.exchanges.slice(before)).toEqual([]);
    expect(await isKnown(browser)).toBe(true);
  });

  it('uses the client of the session, not the client in the address', async () => {
    const { browser } = await world.signIn();
    const gone = await browser.request(world.clientUrl('logout', {}, through));
    expect([gone.status, gone.headers.get('location')]).toEqual([302, '/']);
    expect((await world.sessions(browser)).status).toBe(401);
    expect(await isKnown(browser)).toBe(true);
  });
});

it('a logout without ID token ends the session of the token handler only (rule 4)', async () => {
  const world = await startSessionWorld({ platform, store: 'redis', client: { keycloakLogout: true } });
  onTestFinished(() => world.close());
  const { browser, handle } = await world.signIn();
  await world.dropIdToken(handle);
  const { headers } = await browser.request(world.clientUrl('logout'));
  expect(headers.get('location')).toBe('/');
  expect((await world.sessions(browser)).status).toBe(401);
});

it('a logout ends the session of the token handler even if the identity provider cannot be reached', async () => {
  const tap = await startHttpTap(new URL(platform.access.url).origin);
  const accessUrl = `${tap.url}${new URL(platform.access.url).pathname}`;
  const client = { keycloakLogout: true };
  const world = await startSessionWorld({ store: 'redis', platform, accessUrl, client });
  onTestFinished(() => world.close());
  // A new replica has not yet cached the identity provider's discovery document.
  const replica = await world.handler.startReplica();
  onTestFinished(() => replica.close());
  const { browser } = await world.signIn();
  await tap.shut();
  const cookie = `${cookieName}=${browser.cookie(world.site, cookieName)}`;
  const url = `${replica.url}/token-handler/clients/web/logout`;
  const gone = await createSiteBrowser().request(url, { headers: { cookie } });
  expect([gone.status, gone.headers.get('location')]).toEqual([302, '/']);
  await expect.poll(async () => (await world.sessions(browser)).status).toBe(401);
});
