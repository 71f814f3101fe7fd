// Tests sign-in from the first redirect to the landing page, with a real OpenID provider and both session stores.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { cookieName, type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser, type SiteBrowser } from '../../../test/support/site-browser.ts';

let offset = 0;
const clock = () => new Date(Date.now() + offset);
beforeEach(() => {
  offset = 0;
});
const errorOf = (text: string) => JSON.parse(text) as { type: string; status: number; errors?: { pointer: string }[] };

describe.each(['memory', 'redis'] as const)('sign-in with sessions in %s', (store) => {
  let world: SessionWorld;
  let platform: TestPlatform;
  let browser: SiteBrowser;
  beforeAll(async () => {
    // Only the token handler uses the simulated clock. The platform uses the real time.
    platform = await startTestPlatform();
    world = await startSessionWorld({ store, clock, platform });
    const { handler } = world;
    const callback = `${world.site}/token-handler/clients`;
    await handler.configure({
      web: {
        redirectUris: [`${callback}/web/callback`],
        scope: 'email profile',
        successRedirectUrl: '/welcome',
        failureRedirectUrl: '/sorry',
      },
      hinted: { redirectUris: [`${callback}/hinted/callback`], prompt: 'login', idpHint: 'goa-idp' },
      'old app': { authCallbackUrl: 'https://old.example.org/token-handler/clients/old%20app/callback' },
      'older app': { authCallbackUrl: 'https://old.example.org/signed-in/callback?x=1' },
      unregistered: {},
    });
    await handler.configure({ web: { redirectUris: [`${callback}/web/callback`] } }, { tenant: platform.otherTenant });
    await handler.register('web', { realm: 'other' });
    await handler.register('hinted');
    await handler.register('older app', { authCallbackUrl: `${world.site}/signed-in/callback` });
    await handler.register('old app', { authCallbackUrl: `${callback}/old%20app/callback` });
  });
  afterAll(async () => {
    await world.close();
    await platform.close();
  });
  beforeEach(() => {
    browser = createSiteBrowser();
  });

  it('redirects to the identity provider with PKCE S256, a new state and nonce each time, and the client’s scope', async () => {
    const seen = new Set<string | null>();
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { status, location } = await browser.request(world.authUrl());
      expect(status).toBe(302);
      const query = location?.searchParams;
      expect(location?.href.startsWith(`${world.handler.platform.access.issuer('demo')}/protocol/`)).toBe(true);
      expect(query?.get('response_type')).toBe('code');
      expect(query?.get('code_challenge_method')).toBe('S256');
      expect(query?.get('scope')).toBe('openid email profile');
      expect(query?.get('redirect_uri')).toBe(`${world.site}/token-handler/clients/web/callback`);
      for (const name of ['state', 'nonce', 'code_challenge']) seen.add(query?.get(name) ?? null);
    }
    expect(seen.size).toBe(6);
  });

  it('passes on prompt and idpHint of the client', async () => {
    const { location } = await browser.request(world.authUrl({}, { clientId: 'hinted' }));
    expect(location?.searchParams.get('prompt')).toBe('login');
    expect(location?.searchParams.get('kc_idp_hint')).toBe('goa-idp');
  });

  it('opens a session of the person, which the sessions endpoint shows without the value of the cookie', async () => {
    const signedIn = await world.signIn(browser);
    const list = await world.sessions(browser);
    expect(list.status).toBe(200);
    expect(JSON.parse(list.text)[0]).toEqual({
      tenantId: world.handler.tenant.id,
      tenant: { name: 'Demo', realm: 'demo' },
      clientId: 'web',
      id: signedIn.handle,
      person: expect.any(String),
      name: 'Alice Applicant',
      email: 'alice@example.com',
      roles: expect.arrayContaining(['applicant']),
      expiry: expect.any(String),
      idleExpiry: expect.any(String),
      absoluteExpiry: expect.any(String),
      authenticatedBy: null,
      created: expect.any(String),
      core: false,
      logoutUrl: `${world.site}/token-handler/clients/web/logout`,
    });
    expect(list.text).not.toContain(browser.cookie(world.site, cookieName));
  });

  it('lands at returnTo, or else at the client’s successRedirectUrl', async () => {
    expect((await world.signIn(browser)).landed.location?.href).toBe(`${world.site}/welcome`);
    const again = await world.signIn(browser, { start: world.authUrl({ returnTo: '/here?x=1' }) });
    expect(again.landed.location?.href).toBe(`${world.site}/here?x=1`);
  });

  it('refuses a returnTo that is not a path on the same origin (open redirect)', async () => {
    for (const returnTo of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/%2Fevil.example',
      '/\t/evil',
    ]) {
      const { status, text, location } = await browser.request(world.authUrl({ returnTo }));
      expect([status, location]).toEqual([400, undefined]);
      expect(errorOf(text).errors?.[0]?.pointer).toBe('/query/returnTo');
    }
  });

  it('refuses a callbackUrl that does not end in the client’s callback (open redirect), with its pointer', async () => {
    for (const callbackUrl of [
      'https://evil.example/',
      'https://evil.example/clients/other/callback',
      '/clients/web/callback',
    ]) {
      const { status, text } = await browser.request(world.authUrl({ callbackUrl }));
      expect([status, errorOf(text).errors?.[0]?.pointer]).toEqual([400, '/query/callbackUrl']);
    }
  });

  it('lets the identity provider refuse a callbackUrl that is not registered', async () => {
    const callbackUrl = 'https://evil.example/token-handler/clients/web/callback';
    const { location } = await browser.request(world.authUrl({ callbackUrl }));
    const shown = await browser.follow(await browser.request(location ?? ''));
    expect([shown.status, shown.location]).toEqual([400, undefined]);
  });

  it('accepts the tenant by name in any case, by name in kebab-case, and by URN', async () => {
    const realmOf = async (tenant: string) => {
      const { status, location } = await browser.request(world.authUrl({ tenant }));
      return status === 302 ? /\/realms\/([^/]+)\//.exec(location?.pathname ?? '')?.[1] : status;
    };
    for (const tenant of ['demo', 'DEMO', 'Demo', platform.tenant.id]) expect(await realmOf(tenant)).toBe('demo');
    for (const tenant of ['other-town', 'Other Town', 'OTHER-TOWN', platform.otherTenant.id])
      expect(await realmOf(tenant)).toBe('other');
    for (const tenant of ['othertown', 'Other', `${platform.tenant.id}x`, 'urn:example:x', ' '])
      expect(await realmOf(tenant)).toBe(404);
  });

  it('needs no tenant at the callback, because the session gets the tenant of the sign-in', async () => {
    const callback = await world.toCallback(browser, world.authUrl({ tenant: 'Other Town' }));
    expect(callback.searchParams.has('tenant')).toBe(false);
    expect((await browser.request(callback)).status).toBe(302);
    expect(JSON.parse((await world.sessions(browser)).text)[0].tenantId).toBe(platform.otherTenant.id);
  });

  it('does not need the original Host header if there is a callbackUrl', async () => {
    const url = new URL(world.authUrl());
    const head = `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: backend.internal\r\nConnection: close\r\n\r\n`;
    const { status, headers } = await sendRaw(Number(url.port), head);
    expect(status).toBe(302);
    const { searchParams } = new URL(headers.get('location') ?? '');
    expect(searchParams.get('redirect_uri')).toBe(url.searchParams.get('callbackUrl'));
  });

  it('reads the tenant from the header, which overrides the query', async () => {
    const header = { 'X-PLATFORM-TENANT': 'demo' };
    const url = world.authUrl({ tenant: 'Nowhere' });
    expect((await browser.request(url, { headers: header })).status).toBe(302);
    expect((await browser.request(world.authUrl({ tenant: '' }), { headers: header })).status).toBe(302);
    expect((await browser.request(world.authUrl(), { headers: { 'X-PLATFORM-TENANT': 'Nowhere' } })).status).toBe(404);
  });

  it('responds with 400 without a tenant, and with 404 to an unknown tenant or client', async () => {
    const url = new URL(world.authUrl());
    url.searchParams.delete('tenant');
    expect(errorOf((await browser.request(url)).text)).toMatchObject({
      status: 400,
      errors: [{ pointer: '/query/tenant' }],
    });
    expect((await browser.request(world.authUrl({ tenant: '' }))).status).toBe(400);
    expect((await browser.request(world.authUrl({ tenant: 'Nowhere' }))).status).toBe(404);
    expect((await browser.request(world.authUrl({}, { clientId: 'nothing' }))).status).toBe(404);
  });

  it('responds with 409 registration-required if the client is not registered', async () => {
    const { status, text } = await browser.request(world.authUrl({}, { clientId: 'unregistered' }));
    expect([status, errorOf(text).type]).toEqual([409, 'urn:formgate:problem:registration-required']);
  });

  it('accepts a callbackUrl in any spelling of its scheme and host', async () => {
    const callbackUrl = `${world.site.replace('http:', 'HTTP:')}/token-handler/clients/web/callback`;
    await world.signIn(browser, { start: world.authUrl({ callbackUrl }) });
    expect((await world.sessions(browser)).status).toBe(200);
  });

  it('without callbackUrl omits the default port, which some proxies add to the Host header', async () => {
    const url = new URL(world.authUrl({}, { clientId: 'old app' }));
    url.searchParams.delete('callbackUrl');
    const headers = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'app.example.org:443' };
    const { location } = await browser.request(url, { headers });
    expect(location?.searchParams.get('redirect_uri')).toBe(
      'https://app.example.org/token-handler/clients/old%20app/callback',
    );
  });

  it('without callbackUrl uses the path of authCallbackUrl on the host and protocol of the request', async () => {
    const url = new URL(world.authUrl({}, { clientId: 'old app' }));
    url.searchParams.delete('callbackUrl');
    const signedIn = await world.signIn(browser, { start: url.href });
    expect(signedIn.landed.location?.href).toBe(`${world.site}/`);
    const headers = { 'X-Forwarded-Proto': 'https' };
    const { location } = await browser.request(url, { headers });
    expect(location?.searchParams.get('redirect_uri')).toBe(
      `${world.site.replace('http:', 'https:')}/token-handler/clients/old%20app/callback`,
    );
    const without = new URL(world.authUrl());
    without.searchParams.delete('callbackUrl');
    expect((await browser.request(without)).status).toBe(400);
  });

  it('without callbackUrl uses any path of authCallbackUrl, which the frontend’s proxy forwards to the callback', async () => {
    const url = new URL(world.authUrl({}, { clientId: 'older app' }));
    url.searchParams.delete('callbackUrl');
    const callback = await world.toCallback(browser, url.href);
    expect(callback.href.startsWith(`${world.site}/signed-in/callback?`)).toBe(true);
    callback.pathname = '/token-handler/v1/clients/older%20app/callback';
    const landed = await browser.request(callback);
    expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}/`]);
    expect((await world.sessions(browser)).status).toBe(200);
  });

  it('is also available under the versioned prefix', async () => {
    const url = world.authUrl().replace('/token-handler/', '/token-handler/v1/');
    expect((await browser.request(url)).status).toBe(302);
  });

  it('changes the session id, so that an id known before the sign-in gives no session (session fixation)', async () => {
    await world.signIn(browser);
    const fixed = browser.cookie(world.site, cookieName);
    await world.signIn(browser, { email: 'admin@example.com' });
    const given = browser.cookie(world.site, cookieName);
    expect(given).not.toBe(fixed);
    const attacker = createSiteBrowser();
    attacker.setCookie(world.site, cookieName, fixed);
    expect((await world.sessions(attacker)).status).toBe(401);
  });

  it('ignores session cookies that are not signed by the service, and rejects two that are', async () => {
    await world.signIn(browser);
    const value = browser.cookie(world.site, cookieName) ?? '';
    const ask = async (...values: string[]) => {
      const cookie = values.map((one) => `${cookieName}=${one}`).join('; ');
      return (await createSiteBrowser().request(`${world.site}/token-handler/sessions`, { headers: { cookie } }))
        .status;
    };
    expect(await ask(value)).toBe(200);
    expect(await ask(value, value)).toBe(200);
    expect(await ask(value.slice(0, -2))).toBe(401);
    expect(await ask('%')).toBe(401);
    // Another host of the domain can set cookies of the same name, but it cannot sign them.
    expect(await ask(value, 's%3Atossed.x')).toBe(200);
    expect(await ask('s%3Atossed.x', '%', value)).toBe(200);
    expect(await ask('1', '2', '3', '4', value)).toBe(401);
    // Another host of the domain can, however, set the signed cookie of an attacker's session. The person must not act
    // in that session.
    const other = createSiteBrowser();
    await world.signIn(other);
    expect(await ask(value, other.cookie(world.site, cookieName) ?? '')).toBe(401);
  });

  it('logs out of the session beside a cookie that another host of the domain has set', async () => {
    await world.signIn(browser);
    const value = browser.cookie(world.site, cookieName) ?? '';
    const cookie = `${cookieName}=s%3Atossed.x; ${cookieName}=${value}`;
    await createSiteBrowser().request(world.clientUrl('logout'), { headers: { cookie } });
    expect((await world.sessions(browser)).status).toBe(401);
  });

  it('responds with 400 to a callback in a browser that did not start the sign-in (login CSRF), and opens no session', async () => {
    const callback = await world.toCallback(createSiteBrowser());
    const victim = browser;
    expect((await victim.request(callback)).status).toBe(400);
    await victim.request(world.authUrl());
    expect((await victim.request(callback)).status).toBe(400);
    expect((await world.sessions(victim)).status).toBe(401);
    await world.signIn(victim, { email: 'admin@example.com' });
    expect((await victim.request(callback)).status).toBe(400);
    expect(JSON.parse((await world.sessions(victim)).text)[0].email).toBe('admin@example.com');
  });

  it('responds with 400 to a callback with an unknown state, or without one', async () => {
    await browser.request(world.authUrl());
    expect((await browser.request(world.clientUrl('callback', { state: 'unknown', code: 'x' }))).status).toBe(400);
    expect((await browser.request(world.clientUrl('callback', { code: 'x' }))).status).toBe(400);
  });

  it('works in many tabs concurrently, in any order', async () => {
    await browser.request(world.authUrl());
    const paths = Array.from({ length: 8 }, (_, index) => `/tab-${index}`);
    const begun = await Promise.all(
      paths.map(async (returnTo) => ({ returnTo, visit: await browser.request(world.authUrl({ returnTo })) })),
    );
    const callbacks: { returnTo: string; url: URL }[] = [];
    for (const { returnTo, visit } of begun)
      callbacks.push({ returnTo, url: await world.toCallback(browser, visit.location?.href) });
    for (const { returnTo, url } of callbacks.reverse()) {
      const landed = await browser.request(url);
      expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}${returnTo}`]);
    }
    expect((await world.sessions(browser)).status).toBe(200);
  });

  it('lands again if the callback is reloaded, without redeeming its code again', async () => {
    const callback = await world.toCallback(browser);
    expect((await browser.request(callback)).status).toBe(302);
    const again = await browser.request(callback);
    expect([again.status, again.location?.href]).toEqual([302, `${world.site}/welcome`]);
    expect(again.setCookies).toEqual([]);
  });

  it('opens one session if a callback arrives twice concurrently', async () => {
    const callback = await world.toCallback(browser);
    const answers = await Promise.all([browser.copy().request(callback), browser.copy().request(callback)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([302, 400]);
  });

  it('starts again once after ten minutes, with the same tenant, callbackUrl and returnTo', async () => {
    const callback = await world.toCallback(browser, world.authUrl({ returnTo: '/kept' }));
    offset = 601_000;
    const again = await browser.request(callback);
    expect(again.status).toBe(302);
    expect(again.location?.pathname).toBe('/auth/realms/demo/protocol/openid-connect/auth');
    expect(again.location?.searchParams.get('state')).not.toBe(callback.searchParams.get('state'));
    const second = await browser.follow(again, (url) => url.pathname.endsWith('/callback'));
    const landed = await browser.request(second.location ?? '');
    expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}/kept`]);
  });

  it('responds with 400 to an attempt that is late a second time', async () => {
    const callback = await world.toCallback(browser);
    offset = 601_000;
    const again = await browser.follow(await browser.request(callback), (url) => url.pathname.endsWith('/callback'));
    offset = 1_210_000;
    expect((await browser.request(again.location ?? '')).status).toBe(400);
  });

  it('responds with 400 to an attempt that is older than an hour', async () => {
    const callback = await world.toCallback(browser);
    offset = 3_601_000;
    expect((await browser.request(callback)).status).toBe(400);
  });

  it('responds with 400 to a callback with another issuer or without one (RFC 9207), and opens no session', async () => {
    for (const iss of [world.handler.platform.access.issuer('other'), 'https://evil.example', undefined]) {
      const callback = await world.toCallback(browser);
      if (iss === undefined) callback.searchParams.delete('iss');
      else callback.searchParams.set('iss', iss);
      expect((await browser.request(callback)).status).toBe(400);
    }
    expect((await world.sessions(browser)).status).toBe(401);
  });

  it('refuses a code of another attempt (PKCE, nonce)', async () => {
    const first = await world.toCallback(browser);
    const second = await world.toCallback(browser);
    first.searchParams.set('code', second.searchParams.get('code') ?? '');
    expect((await browser.request(first)).status).toBe(400);
    expect((await world.sessions(browser)).status).toBe(401);
  });

  it('refuses the response for one client at the callback of another', async () => {
    const callback = await world.toCallback(browser);
    callback.pathname = callback.pathname.replace('/web/', '/hinted/');
    expect((await browser.request(callback)).status).toBe(400);
  });

  it('responds with 400 to repeated parameters', async () => {
    const callback = await world.toCallback(browser);
    callback.searchParams.append('code', 'another');
    expect((await browser.request(callback)).status).toBe(400);
  });

  it('lands at failureRedirectUrl with error=access_denied if the person cancels', async () => {
    const form = await browser.follow(await browser.request(world.authUrl()));
    const sent = await platform.access.cancelSignIn(browser, form);
    const { location } = await browser.follow(sent, (url) => url.pathname.endsWith('/callback'));
    const landed = await browser.request(location ?? '');
    expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}/sorry?error=access_denied`]);
  });

  it('responds with 400 to an error of another issuer, and does not redirect', async () => {
    const { location } = await browser.request(world.authUrl());
    const state = location?.searchParams.get('state') ?? '';
    const answer = { state, error: 'access_denied', iss: world.handler.platform.access.issuer('other') };
    expect((await browser.request(world.clientUrl('callback', answer))).status).toBe(400);
  });

  it('responds with 502 to an error of the identity provider, without its details', async () => {
    const { location } = await browser.request(world.authUrl());
    const state = location?.searchParams.get('state') ?? '';
    const answer = { state, error: 'server_error', error_description: 'secret detail' };
    const { status, text } = await browser.request(world.clientUrl('callback', answer));
    expect(status).toBe(502);
    expect(text).not.toContain('secret detail');
    const again = (await browser.request(world.authUrl())).location?.searchParams.get('state') ?? '';
    const named = { ...answer, state: again, iss: world.handler.platform.access.issuer('demo') };
    expect((await browser.request(world.clientUrl('callback', named))).status).toBe(502);
  });

  it('ends the session that the browser had before', async () => {
    await world.signIn(browser);
    const old = browser.copy();
    expect((await world.sessions(old)).status).toBe(200);
    await world.signIn(browser, { start: world.authUrl({}, { clientId: 'hinted' }) });
    expect((await world.sessions(old)).status).toBe(401);
  });
});
