// Tests over HTTP that a browser can make many attempts to sign in concurrently, in any order and on any replica. Each
// attempt can be completed only once.
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { launchChromium } from '../../../test/support/chromium.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { cookieName, type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser, type SiteBrowser, type Visit } from '../../../test/support/site-browser.ts';

let offset = 0;
const clock = () => new Date(Date.now() + offset);
let platform: TestPlatform;
let world: SessionWorld;
let browser: SiteBrowser;
beforeAll(async () => {
  platform = await startTestPlatform();
  world = await startSessionWorld({ store: 'redis', clock, platform });
});
afterAll(async () => {
  await world.close();
  await platform.close();
});
beforeEach(() => {
  browser = createSiteBrowser();
  offset = 0;
});

const stateOf = (visit: { location: URL | undefined }) => visit.location?.searchParams.get('state') ?? '';
const begin = (returnTo: string) => browser.request(world.authUrl({ returnTo }));
const callbackUrl = () => world.clientUrl('callback');
/** Returns the cookies of open attempts that the browser sends to the callback. */
const open = () => browser.cookies(callbackUrl()).filter(({ name }) => name.startsWith(`${cookieName}.`));
/** Completes an attempt with the error `access_denied`, which needs no sign-in at the identity provider. */
const deny = (state: string) => {
  const iss = platform.access.issuer('demo');
  return browser.request(world.clientUrl('callback', { state, error: 'access_denied', iss }));
};

/** Starts sign-ins concurrently. Returns the callbacks to which the identity provider redirects the browser. */
async function startTogether(count: number): Promise<{ returnTo: string; url: URL }[]> {
  const paths = Array.from({ length: count }, (_, index) => `/tab-${index}`);
  const begun = await Promise.all(paths.map(begin));
  const callbacks: { returnTo: string; url: URL }[] = [];
  for (const [index, visit] of begun.entries())
    callbacks.push({ returnTo: paths[index] ?? '', url: await world.toCallback(browser, visit.location?.href) });
  return callbacks;
}

/** Returns the items at even positions in reverse order, followed by the items at odd positions. */
const shuffled = <T>(items: T[]) => [
  ...items.filter((_, index) => index % 2 === 0).reverse(),
  ...items.filter((_, index) => index % 2 === 1),
];

async function finishAll(callbacks: { returnTo: string; url: URL }[]): Promise<void> {
  for (const { returnTo, url } of shuffled(callbacks)) {
    const landed = await browser.request(url);
    expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}${returnTo}`]);
  }
  expect((await world.sessions(browser)).status).toBe(200);
  expect(open()).toEqual([]);
}

describe('sign-ins that a browser starts concurrently', () => {
  it.each([2, 5, 25])('all succeed without any cookie before, in any order: %i', async (count) => {
    await finishAll(await startTogether(count));
  });

  it('all succeed in a browser that has a session', async () => {
    await world.signIn(browser);
    await finishAll(await startTogether(5));
  });

  it('all succeed if their callbacks arrive concurrently', async () => {
    const callbacks = await startTogether(5);
    const landed = await Promise.all(callbacks.map(({ url }) => browser.request(url)));
    expect(landed.map(({ location }) => location?.pathname)).toEqual(callbacks.map(({ returnTo }) => returnTo));
    expect((await world.sessions(browser)).status).toBe(200);
  });

  it('all succeed in the tabs of a real browser', async () => {
    const chromium = await launchChromium();
    onTestFinished(() => chromium.close());
    const context = await chromium.newContext();
    const tabs = await Promise.all(
      [0, 1, 2].map(async (nth) => {
        const page = await context.newPage();
        const shown = await page.goto(world.authUrl({ returnTo: `/tab-${nth}` }));
        let request = shown?.request();
        while (request && !request.url().includes('code_challenge=')) request = request.redirectedFrom() ?? undefined;
        return { page, landing: `${world.site}/tab-${nth}`, authorization: request?.url() ?? '' };
      }),
    );
    const cookies = await context.cookies(callbackUrl());
    expect(cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite])).toEqual(tabs.map(() => [true, 'Lax']));
    for (const { page, landing, authorization } of tabs.reverse()) {
      // Loads the page again, because the tests' identity provider mixes up concurrent sign-in forms of a new browser.
      await page.goto(authorization);
      if (page.url() === landing) continue;
      await page.locator('[name=username]').fill('alice@example.com');
      await page.locator('[name=password]').fill('alice');
      await page.locator('[name=password]').press('Enter');
      await page.waitForURL(landing);
    }
    const names = (await context.cookies(callbackUrl())).map(({ name }) => name);
    expect(names.sort()).toEqual(['XSRF-TOKEN', cookieName]);
  });

  it('do not break each other if one of them is refused', async () => {
    const [first, second] = await startTogether(2);
    expect((await deny(first?.url.searchParams.get('state') ?? '')).status).toBe(302);
    expect((await browser.request(second?.url ?? '')).status).toBe(302);
  });
});

describe('an attempt to sign in', () => {
  it('survives the loss of everything in Redis, and is finished by any replica', async () => {
    const replica = await world.handler.startReplica({ clock });
    onTestFinished(() => replica.close());
    const callback = await world.toCallback(browser);
    await world.redis?.command('FLUSHALL');
    const headers = {
      cookie: open()
        .map(({ name, value }) => `${name}=${value}`)
        .join('; '),
    };
    const there = new URL(callback.pathname + callback.search, replica.url);
    const landed = await createSiteBrowser().request(there, { headers });
    expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}/`]);
  });

  it('stores nothing in Redis', async () => {
    await begin('/first');
    const keys = async () => (await world.redis?.command('DBSIZE')) as number;
    const before = await keys();
    for (let nth = 0; nth < 5; nth += 1) await createSiteBrowser().request(world.authUrl());
    // Allows one new key in Redis, because a new window of the rate limit may have begun.
    expect((await keys()) - before).toBeLessThanOrEqual(1);
  });

  it('has a cookie that is removed at the callback and opens nothing afterwards', async () => {
    const callback = await world.toCallback(browser);
    const copy = browser.copy();
    expect((await browser.request(callback)).status).toBe(302);
    expect(open()).toEqual([]);
    copy.setCookie(world.site, cookieName, undefined);
    expect((await copy.request(callback)).status).toBe(400);
  });

  it('cannot be finished with a changed cookie, or with the cookie of another attempt', async () => {
    const [first, second] = [await begin('/first'), await begin('/second')];
    const [one, two] = open();
    const ask = (cookie: string, visit: Visit) =>
      createSiteBrowser().request(
        world.clientUrl('callback', {
          state: stateOf(visit),
          error: 'access_denied',
          iss: platform.access.issuer('demo'),
        }),
        { headers: { cookie } },
      );
    const changed = `${one?.value.slice(0, -6)}AAAAAA`;
    expect((await ask(`${one?.name}=${changed}`, first)).status).toBe(400);
    expect((await ask(`${one?.name}=${two?.value}`, first)).status).toBe(400);
    expect((await ask(`${two?.name}=${two?.value}`, first)).status).toBe(400);
    expect((await ask(`${two?.name}=${two?.value}`, second)).status).toBe(302);
  });

  it('is found beside a cookie of the same name that another host of the domain has set', async () => {
    const visit = await begin('/first');
    const [own] = open();
    const cookie = `${own?.name}=tossed; ${own?.name}=${own?.value}`;
    const query = { state: stateOf(visit), error: 'access_denied', iss: platform.access.issuer('demo') };
    const url = world.clientUrl('callback', query);
    expect((await createSiteBrowser().request(url, { headers: { cookie } })).status).toBe(302);
  });

  it('hides its nonce, its addresses and the login hint in its cookie', async () => {
    const { location } = await browser.request(world.authUrl({ login_hint: 'ana@example.org', returnTo: '/kept' }));
    const [{ value = '' } = {}] = open();
    const text = value + value.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
    for (const secret of [location?.searchParams.get('nonce'), 'ana@example.org', '/kept', world.site])
      expect(text.includes(secret ?? '')).toBe(false);
  });
});

describe('the cookies of open attempts', () => {
  it('are at most 20, and the oldest goes first', async () => {
    const states: string[] = [];
    for (let nth = 0; nth < 22; nth += 1) {
      states.push(stateOf(await begin(`/${nth}`)));
      offset += 1_000;
    }
    expect(open()).toHaveLength(20);
    expect((await deny(states[1] ?? '')).status).toBe(400);
    expect((await deny(states[2] ?? '')).status).toBe(302);
    expect((await deny(states[21] ?? '')).status).toBe(302);
  });

  it('have a bounded total size', async () => {
    for (let nth = 0; nth < 12; nth += 1) {
      await begin(`/${nth}/${'x'.repeat(1_000)}`);
      offset += 1_000;
    }
    const size = open().reduce((sum, { name, value }) => sum + name.length + value.length + 3, 0);
    expect(size).toBeLessThanOrEqual(7_000);
    expect(open().length).toBeGreaterThan(2);
  });

  it('are each small enough for browsers: what does not fit is a 400 that names the field', async () => {
    const { status, text } = await begin(`/${'x'.repeat(1_990)}`);
    expect(status).toBe(302);
    const long = `${world.site}/${'y'.repeat(1_900)}/token-handler/clients/web/callback`;
    const both = await browser.request(world.authUrl({ callbackUrl: long, returnTo: `/${'x'.repeat(1_990)}` }));
    expect([both.status, text]).toEqual([400, expect.any(String)]);
    expect(JSON.parse(both.text).errors[0].pointer).toBe('/query/returnTo');
  });

  it('make way for new ones if they were not made here', async () => {
    browser.setCookie(world.site, `${cookieName}.${'A'.repeat(16)}`, 'tossed');
    browser.setCookie(world.site, `${cookieName}."(ä)`, 'tossed');
    const { status, setCookies } = await begin('/');
    expect(status).toBe(302);
    expect(setCookies.filter((line) => line.startsWith(`${cookieName}.AAAA`))).toHaveLength(1);
  });
});
