// Tests the pages of failed sign-ins and logouts over HTTP, with a real token handler and real failures.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FailedSignIns, startFailedSignIns } from '../../../test/support/failed-sign-ins.ts';
import { cookieName } from '../../../test/support/sessions.ts';
import { createSiteBrowser, type SiteBrowser, type Visit } from '../../../test/support/site-browser.ts';
import { type PageName, pageNames } from './catalogue.ts';
import { defaultTexts, type Language } from './texts.ts';

let failed: FailedSignIns;
beforeAll(async () => {
  failed = await startFailedSignIns();
});
afterAll(() => failed.close());

/** The Accept header that browsers send when a person opens a link. */
const navigation = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

const open = (url: string | URL, headers: Record<string, string> = {}, browser: SiteBrowser = signedIn(url)) =>
  browser.request(url, { headers: { accept: navigation, ...headers } });

/** Returns a browser with a session cookie, so that the token handler reads the session store. */
function signedIn(url: string | URL): SiteBrowser {
  const browser = createSiteBrowser();
  browser.setCookie(url, cookieName, failed.cookie);
  return browser;
}
const titleOf = ({ text }: Visit) => /<h1>([^<]*)<\/h1>/.exec(text)?.[1];
const linkOf = ({ text }: Visit) => /<p class="action"><a href="([^"]*)">([^<]*)<\/a>/.exec(text)?.slice(1);
const unescaped = (text = '') => text.replaceAll('&amp;', '&').replaceAll('&#39;', "'");

describe('a failed sign-in or logout', () => {
  const statuses: Record<PageName, number> = {
    'sign-in-expired': 400,
    'client-not-registered': 409,
    'unknown-tenant': 404,
    'unknown-client': 404,
    'identity-provider-down': 502,
    'service-unavailable': 503,
    'rate-limited': 429,
    'invalid-link': 400,
    'sign-out-failed': 503,
    general: 500,
  };

  it.each(pageNames)('is a page in English or French with the request id, and the problem’s status: %s', (name) =>
    failed.during(name, async (url) => {
      for (const [language, accepted] of [
        ['en', 'en-CA,fr;q=0.5'],
        ['fr', 'fr-CA,fr;q=0.9,en;q=0.8'],
      ] as const) {
        const visit = await open(url, { 'accept-language': accepted, 'x-request-id': 'r-7f3a' });
        expect([visit.status, titleOf(visit)]).toEqual([statuses[name], defaultTexts[name][language].title]);
        expect(visit.headers.get('content-type')).toBe('text/html; charset=utf-8');
        expect(visit.headers.get('content-language')).toBe(language);
        expect(visit.text).toContain(`<html lang="${language}">`);
        expect(visit.text).toContain('<code>r-7f3a</code>');
        expect(visit.headers.get('x-request-id')).toBe('r-7f3a');
        const other = language === 'en' ? 'fr' : 'en';
        expect(visit.text).toContain(`<details lang="${other}">`);
        expect(visit.text).toContain(defaultTexts[name][other].title);
      }
      const other = await open(url, { accept: '*/*' });
      expect([other.status, other.headers.get('content-type')]).toEqual([
        statuses[name],
        'application/problem+json; charset=utf-8',
      ]);
    }),
  );

  it.each(pageNames)('allows no script, is not stored and depends on Accept and Accept-Language: %s', (name) =>
    failed.during(name, async (url) => {
      const { headers, text } = await open(url);
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[^' ;]+'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
      );
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('vary')).toBe('Accept, Accept-Language');
      expect(text).not.toMatch(/<script|\son\w+=|javascript:|style="/i);
      expect((await open(url, { accept: 'application/json' })).headers.get('vary')).toBe('Accept, Accept-Language');
    }),
  );

  it('keeps Retry-After and the headers of the rate limit, and says how long to wait', () =>
    failed.during('rate-limited', async (url) => {
      const { headers, text } = await open(url);
      expect(headers.get('retry-after')).toBe('150');
      expect(headers.get('ratelimit')).toBe('limit=1, remaining=0, reset=150');
      expect(headers.get('ratelimit-policy')).toBe('1;w=300');
      expect(text).toContain('It will work again in 3 minutes.');
    }));

  it('has no body for HEAD', () =>
    failed.during('unknown-tenant', async (url) => {
      const response = await fetch(url, { method: 'HEAD', headers: { accept: navigation } });
      expect([response.status, response.headers.get('content-type')]).toEqual([405, 'text/html; charset=utf-8']);
      expect(await response.text()).toBe('');
    }));

  it('is a page under both roots, and before the router has found the route', async () => {
    const { site } = failed.world;
    for (const path of [
      '/token-handler/v1/clients/web/auth',
      '/token-handler/clients/web/auth/',
      '/token-handler/clients/%ff/callback',
      '/TOKEN-HANDLER/clients/web/logout?returnTo=//evil.example',
    ])
      expect(titleOf(await open(`${site}${path}`)), path).toBeDefined();
    const posted = await fetch(`${site}/token-handler/clients/web/callback`, {
      method: 'POST',
      headers: { accept: 'text/html' },
    });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, OPTIONS']);
    expect(await posted.text()).toContain(defaultTexts['invalid-link'].en.title);
  });

  it('stays problem+json on every other route', async () => {
    const { site } = failed.world;
    for (const path of [
      '/nothing',
      '/token-handler/sessions',
      '/token-handler/clients',
      '/token-handler/clients/web/x',
    ])
      expect((await open(`${site}${path}`, {}, createSiteBrowser())).headers.get('content-type'), path).toMatch(
        /^application\/problem\+json/,
      );
  });
});

describe('the representation', () => {
  const typeFor = (accept: string) =>
    failed.during('unknown-tenant', async (url) => {
      const { headers } = await open(url, { accept });
      return headers.get('content-type')?.split(';')[0];
    });

  it.each([
    'text/html',
    'text/*',
    'TEXT/HTML',
    'text/html;q=0.1',
    'application/json;q=0.8, text/html;q=0.9',
    '*/*, text/html',
    'image/png, text/html;q=0.2',
  ])('is a page for Accept: %s', async (accept) => {
    expect(await typeFor(accept)).toBe('text/html');
  });

  it.each([
    '*/*',
    'application/*',
    'application/json',
    'application/problem+json, text/html',
    'text/html;q=0.5, application/json',
    'text/html;q=0',
    'text/html;q=0, */*',
    'text/html;q=0.3, */*;q=0.4',
    'image/png',
    'nonsense',
    '',
  ])('is problem+json for Accept: %s', async (accept) => {
    expect(await typeFor(accept)).toBe('application/problem+json');
  });
});

describe('the language', () => {
  const languageFor = (accepted: string | undefined, query: Record<string, string> = {}) =>
    failed.during('unknown-tenant', async (url) => {
      const asked = new URL(url);
      for (const [name, value] of Object.entries(query)) asked.searchParams.set(name, value);
      const visit = await open(asked, accepted === undefined ? {} : { 'accept-language': accepted });
      return visit.headers.get('content-language');
    });

  it.each([
    ['fr', 'fr'],
    ['fr-CA', 'fr'],
    ['en;q=0.5, fr;q=0.6', 'fr'],
    ['de, fr;q=0.1', 'fr'],
    ['fr;q=0, *', 'en'],
    ['de', 'en'],
    ['*', 'en'],
    ['x-nonsense;;q', 'en'],
  ])('for Accept-Language: %s is %s', async (accepted, language) => {
    expect(await languageFor(accepted)).toBe(language);
  });

  it.each([
    ['fr-CA en', 'fr'],
    ['de FR', 'fr'],
    ['en-GB fr', 'en'],
    ['de es', 'fr'],
    ['<script>', 'fr'],
  ])('for ui_locales %j is %s, although the browser prefers French', async (uiLocales, language) => {
    expect(await languageFor('fr', { ui_locales: uiLocales })).toBe(language);
  });
});

describe('the link of the page', () => {
  const fresh = (name: PageName, language: Language = 'en') =>
    failed.during(name, async (url) => linkOf(await open(url, { 'accept-language': language })));

  it('repeats a request that may succeed later, without naming its address', async () => {
    for (const name of ['identity-provider-down', 'service-unavailable', 'rate-limited', 'general'] as const)
      expect(await fresh(name)).toEqual(['', 'Try again']);
    expect(await fresh('sign-out-failed', 'fr')).toEqual(['', 'Réessayer']);
  });

  it('leads to the start page if nothing is known about the sign-in', async () => {
    for (const name of ['sign-in-expired', 'unknown-tenant', 'invalid-link'] as const)
      expect(await fresh(name)).toEqual(['/', 'Go to the start page']);
  });

  it('starts the sign-in again, with the tenant, callbackUrl and returnTo of this browser’s attempt', async () => {
    const { world } = failed;
    const browser = createSiteBrowser();
    const start = world.authUrl({ returnTo: '/permits?from=a&to="b"' });
    const callback = await world.toCallback(browser, start);
    const wrong = new URL(callback);
    wrong.searchParams.set('iss', 'https://evil.example');
    const visit = await open(wrong, {}, browser);
    expect([visit.status, titleOf(visit)]).toEqual([400, defaultTexts['sign-in-expired'].en.title]);
    const [href, label] = linkOf(visit) ?? [];
    expect(label).toBe('Sign in again');
    const again = new URL(unescaped(href), visit.url);
    expect(again.pathname).toBe('/token-handler/clients/web/auth');
    expect(visit.text).not.toContain('evil.example');
    const landed = await world.signIn(browser, { start: again.href });
    expect(landed.landed.location?.href).toBe(`${world.site}/permits?from=a&to=%22b%22`);
  });

  it('does not start the sign-in of another browser or client again', async () => {
    const { world } = failed;
    const callback = await world.toCallback(createSiteBrowser());
    const foreign = await open(callback);
    expect([foreign.status, linkOf(foreign)]).toEqual([400, ['/', 'Go to the start page']]);
    const browser = createSiteBrowser();
    const own = await world.toCallback(browser);
    own.pathname = own.pathname.replace('/web/', '/unregistered/');
    expect(linkOf(await open(own, {}, browser))?.[0]).toBe('/');
  });

  it('contains nothing of the request', async () => {
    const { world } = failed;
    const hostile = '"><script>alert(1)</script>';
    for (const endpoint of ['auth', 'callback', 'logout'])
      for (const query of [
        { tenant: hostile, callbackUrl: `https://evil.example/${hostile}` },
        { tenant: 'demo', callbackUrl: 'javascript:alert(1)', ui_locales: hostile },
        { state: hostile, error: hostile, error_description: hostile, returnTo: '//evil.example' },
      ]) {
        const visit = await open(world.clientUrl(endpoint, query as Record<string, string>), {}, createSiteBrowser());
        // A request with an unknown state, or a valid logout, may redirect, but never to another origin.
        if (visit.location) expect(visit.location.origin).toBe(world.site);
        expect(visit.text).not.toMatch(/alert|evil|javascript/);
        expect(linkOf(visit)?.[0] ?? '/').toBe('/');
      }
  });
});

it('redirects that the specification fixes stay redirects for browsers: logout, and a sign-in that the person cancels', async () => {
  const { world } = failed;
  const { browser } = await world.signIn();
  const left = await open(world.clientUrl('logout'), {}, browser);
  expect([left.status, left.location?.href]).toEqual([302, `${world.site}/`]);
  const other = createSiteBrowser();
  const { location } = await open(world.authUrl(), {}, other);
  const state = location?.searchParams.get('state') ?? '';
  const denied = await open(world.clientUrl('callback', { state, error: 'access_denied' }), {}, other);
  expect([denied.status, denied.location?.href]).toEqual([302, `${world.site}/?error=access_denied`]);
});

it('names of clients and tenants are shown as text, shortened and isolated', async () => {
  const { text, status } = await open(failed.world.authUrl({}, { clientId: 'hostile' }));
  expect(status).toBe(409);
  expect(text).toContain('<dd><bdi>&lt;img src=x onerror=alert(1)&gt;&amp;\u202e&quot;&#39;xxx');
  expect(text).toContain('xxx…</bdi></dd>');
  expect(text).toContain('<dd><bdi>Demo</bdi></dd>');
  expect(text.length).toBeLessThan(8_000);
});
