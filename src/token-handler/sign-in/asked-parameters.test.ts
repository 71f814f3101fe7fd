// Tests silent sign-in, and the sign-in parameters that a frontend may pass on to the identity provider.
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser, type SiteBrowser } from '../../../test/support/site-browser.ts';

let offset = 0;
const clock = () => new Date(Date.now() + offset);
let platform: TestPlatform;
let world: SessionWorld;
let browser: SiteBrowser;
beforeAll(async () => {
  platform = await startTestPlatform();
  world = await startSessionWorld({ platform, clock });
  const client = (id: string, fields: object) => ({
    redirectUris: [world.clientUrl('callback', {}, { clientId: id })],
    ...fields,
  });
  await world.handler.configure({
    web: client('web', {}),
    strict: client('strict', { prompt: 'login', failureRedirectUrl: '/sorry' }),
    silent: client('silent', { prompt: 'none' }),
  });
  await world.handler.register('strict');
  await world.handler.register('silent');
});
afterAll(async () => {
  await world.close();
  await platform.close();
});
beforeEach(() => {
  browser = createSiteBrowser();
  offset = 0;
});

const asked = async (query: Record<string, string>, clientId = 'web') => {
  const { location } = await browser.request(world.authUrl(query, { clientId }));
  return Object.fromEntries(location?.searchParams ?? []);
};
/**
 * Completes a sign-in that needs no input from the person. Returns the page to which the callback redirects. If the
 * callback does not redirect, returns its status.
 */
const land = async (query: Record<string, string>, clientId = 'web') => {
  const begun = await browser.request(world.authUrl(query, { clientId }));
  const back = await browser.follow(begun, (url) => url.pathname.endsWith('/callback'));
  const landed = await browser.request(back.location ?? '');
  return landed.location?.href.replace(world.site, '') ?? landed.status;
};

describe('a sign-in', () => {
  it('passes on prompt, max_age, acr_values, ui_locales and login_hint', async () => {
    const query = {
      prompt: 'select_account',
      max_age: '3600',
      acr_values: 'urn:mace:incommon:iap:silver 2',
      ui_locales: 'fr-CA en',
      login_hint: 'ana+forms@example.org',
    };
    expect(await asked(query)).toMatchObject(query);
    for (const prompt of ['none', 'login']) expect(await asked({ prompt })).toMatchObject({ prompt });
    expect(await asked({ max_age: '0' })).toMatchObject({ max_age: '0' });
  });

  it('passes on nothing else', async () => {
    const names = 'client_id code_challenge code_challenge_method nonce redirect_uri response_type scope state'.split(
      ' ',
    );
    const more = {
      display: 'popup',
      claims: '{}',
      request: 'x',
      response_mode: 'fragment',
      scope: 'admin',
      id_token_hint: 'x',
    };
    const sent = await asked(more);
    expect(Object.keys(sent).sort()).toEqual(names);
    expect(sent.scope).toBe('openid');
  });

  it('has the prompt of the request, or else of the client', async () => {
    expect(await asked({}, 'strict')).toMatchObject({ prompt: 'login' });
    expect(await asked({ prompt: 'none' }, 'strict')).toMatchObject({ prompt: 'none' });
  });

  it.each([
    ['prompt', 'a value that is not allowed', 'consent'],
    ['prompt', 'several values', 'none login'],
    ['prompt', 'nothing', ''],
    ['prompt', 'capitals', 'NONE'],
    ['max_age', 'a negative number', '-1'],
    ['max_age', 'a fraction', '1.5'],
    ['max_age', 'an exponent', '1e3'],
    ['max_age', 'nothing', ''],
    ['max_age', 'too many digits', '123456789'],
    ['acr_values', 'nothing', ''],
    ['acr_values', 'two spaces', 'one  two'],
    ['acr_values', 'a new line', 'silver\nbullet'],
    ['acr_values', 'too much', 'x'.repeat(301)],
    ['ui_locales', 'other characters', 'en; fr'],
    ['ui_locales', 'too much', 'en '.repeat(40).trim()],
    ['login_hint', 'nothing', ''],
    ['login_hint', 'a new line', 'ana\r\nX-Evil: 1'],
    ['login_hint', 'too much', 'x'.repeat(255)],
  ])('refuses %s with %s: 400 that names it', async (name, _what, value) => {
    const { status, text } = await browser.request(world.authUrl({ [name]: value }));
    expect([status, JSON.parse(text).errors[0].pointer]).toEqual([400, `/query/${name}`]);
    if (value.length > 30) expect(text).not.toContain(value);
  });

  it('refuses repeated parameters with 400, and names them', async () => {
    for (const name of ['prompt', 'max_age', 'acr_values', 'ui_locales', 'login_hint']) {
      const { status, text } = await browser.request(`${world.authUrl({ [name]: '1' })}&${name}=1`);
      expect([status, JSON.parse(text).errors[0].pointer]).toEqual([400, `/query/${name}`]);
    }
  });

  it('with max_age requires an ID token that says when the person entered credentials (auth_time)', async () => {
    await world.signIn(browser, { start: world.authUrl({ max_age: '100' }) });
    expect((await world.sessions(browser)).status).toBe(200);
    const other = createSiteBrowser();
    const { location } = await other.request(world.authUrl({ max_age: '100' }));
    // Simulates a person who removes `max_age` from the authorization URL, so that the identity provider does not get
    // it.
    location?.searchParams.delete('max_age');
    const callback = await world.toCallback(other, location?.href);
    expect((await other.request(callback)).status).toBe(400);
    expect((await world.sessions(other)).status).toBe(401);
  });

  it('with max_age succeeds even if further pages of the identity provider take longer than max_age', async () => {
    const callback = await world.toCallback(browser, world.authUrl({ max_age: '1' }));
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 30_000 });
    expect((await browser.request(callback)).status).toBe(302);
    expect((await world.sessions(browser)).status).toBe(200);
  });
});

describe('a silent sign-in (prompt=none)', () => {
  it('opens a session without a page if the person is signed in at the identity provider', async () => {
    await world.signIn(browser);
    expect(await land({ prompt: 'none', returnTo: '/here' })).toBe('/here');
    expect((await world.sessions(browser)).status).toBe(200);
  });

  it('lands with login_required at returnTo, else at failureRedirectUrl, else at the root', async () => {
    expect(await land({ prompt: 'none', returnTo: '/here?x=1#part' })).toBe('/here?x=1&error=login_required#part');
    expect(await land({ prompt: 'none' }, 'strict')).toBe('/sorry?error=login_required');
    expect(await land({ prompt: 'none', returnTo: '/here' }, 'strict')).toBe('/here?error=login_required');
    expect(await land({ prompt: 'none' })).toBe('/?error=login_required');
    expect(await land({ returnTo: '/here' }, 'silent')).toBe('/here?error=login_required');
  });

  it('lands with the other errors of OpenID Connect Core 3.1.2.6, ends no session, and counts no failure', async () => {
    await world.signIn(browser);
    const failures = async () => {
      const text = await (await fetch(`${world.handler.metricsUrl}/metrics`)).text();
      return text.split('\n').filter((line) => line.startsWith('formgate_dependency_failures'));
    };
    const before = await failures();
    for (const error of ['login_required', 'interaction_required', 'consent_required', 'account_selection_required'])
      for (const iss of [platform.access.issuer('demo'), undefined]) {
        const { state = '' } = await asked({ prompt: 'none', returnTo: '/here' });
        const landed = await browser.request(world.clientUrl('callback', { state, error, ...(iss && { iss }) }));
        expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}/here?error=${error}`]);
      }
    expect((await world.sessions(browser)).status).toBe(200);
    expect(await failures()).toEqual(before);
    expect(world.handler.log.lines().filter(({ level }) => level === 'error' || level === 50)).toEqual([]);
  });

  it('stays silent, with its other parameters, if it starts again because it took too long', async () => {
    const begun = await browser.request(
      world.authUrl({ prompt: 'none', login_hint: 'ana', max_age: '60', returnTo: '/here' }),
    );
    const back = await browser.follow(begun, (url) => url.pathname.endsWith('/callback'));
    offset = 601_000;
    const again = await browser.request(back.location ?? '');
    const sent = Object.fromEntries(again.location?.searchParams ?? []);
    expect(sent).toMatchObject({ prompt: 'none', login_hint: 'ana', max_age: '60' });
    const second = await browser.follow(again, (url) => url.pathname.endsWith('/callback'));
    const landed = await browser.request(second.location ?? '');
    expect(landed.location?.href).toBe(`${world.site}/here?error=login_required`);
  });
});
