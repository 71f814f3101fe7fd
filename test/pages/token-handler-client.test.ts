// Tests the browser module for frontends in Chromium, in two tabs of a site, with a real token handler and identity
// provider.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { buildPages } from '../../web/build.ts';
import { launchChromium } from '../support/chromium.ts';
import { type FrontendSite, startFrontendSite } from '../support/frontend-site.ts';
import { startTargetWorld, type TargetWorld } from '../support/targets.ts';

/** These wait for seconds, so they run in the full test of the pages only. */
const slow = it.runIf(process.env.FORMGATE_ALL_PAGES !== undefined);
const file = join(import.meta.dirname, '../../web/dist/token-handler-client/token-handler-client.js');
/** A frontend: it keeps what is typed into a field, and records events. The query of the page gives the options. */
const frontend =
  '<!doctype html><title>Frontend</title><input id="typed"><script type="module" src="/app.js"></script>';
const script = `
import { TokenHandlerClient } from '/client.js';
const { poll, warn } = Object.fromEntries(new URLSearchParams(location.search));
const typed = document.getElementById('typed');
window.events = [];
window.client = new TokenHandlerClient({
  clientId: 'web', tenant: 'demo', keep: () => typed.value,
  ...(poll && { poll: Number(poll) }), ...(warn && { warn: Number(warn) }),
});
client.on((event) => {
  events.push(event.type);
  if (event.type === 'signed-in') typed.value = client.restore() ?? typed.value;
});
`;

let world: TargetWorld;
let browser: Browser;
let site: FrontendSite;
/** Its token handler ends sessions after eight seconds without requests to targets. */
let short: FrontendSite;
let replica: RunningService;
beforeAll(async () => {
  await buildPages();
  const files = { '/app.js': script, '/app*': frontend, '/client.js': readFileSync(file, 'utf8') };
  [site, short] = await Promise.all([startFrontendSite(files), startFrontendSite(files)]);
  [world, browser] = await Promise.all([startTargetWorld({ sites: [site.url, short.url] }), launchChromium()]);
  site.forwardTo(world.site);
  replica = await world.replica({ SESSION_IDLE: 'PT8S' });
  short.forwardTo(replica.url);
});
afterAll(async () => {
  await browser?.close();
  await Promise.all([site, short, replica].map((one) => one?.close()));
  await world?.close();
});

let context: BrowserContext;
beforeEach(async () => {
  context = await browser.newContext();
  context.setDefaultTimeout(60_000);
  const served = context;
  onTestFinished(() => served.close());
});

async function open(path = '/app', origin = site.url): Promise<Page> {
  const page = await context.newPage();
  await page.goto(origin + path);
  await until(page, 'client.session !== undefined');
  return page;
}

/** Waits until an expression of the page is true. Before its script has run, `client` and `events` are missing. */
const until = (page: Page, expression: string) =>
  page.waitForFunction(`globalThis.client !== undefined && (${expression})`, undefined, { polling: 20 });
const events = (page: Page) => page.evaluate<string[]>('events');
const hasEvent = (page: Page, type: string) => until(page, `events.includes('${type}')`);

async function signIn(page: Page, person = 'alice', options = {}): Promise<void> {
  await page.evaluate(`client.signIn(${JSON.stringify(options)})`);
  await page.fill('input[name=username]', `${person}@example.com`);
  await page.fill('input[name=password]', person);
  await page.press('input[name=password]', 'Enter');
  await page.waitForURL((url) => url.pathname === '/app');
  await until(page, 'client.session');
}

it('is smaller than 2 KB, minified and compressed', () => {
  expect(gzipSync(readFileSync(file), { level: 9 }).length).toBeLessThan(2_048);
});

describe('sign-in', () => {
  it('returns to the same place with what was typed, and other tabs learn of it', async () => {
    const [page, other] = [await open('/app/form?step=2#details'), await open()];
    expect([await events(page), await page.evaluate('client.session')]).toEqual([['signed-out'], null]);
    await page.fill('#typed', 'a <b>long</b> text');
    await other.fill('#typed', 'in another tab');
    await page.evaluate('client.signIn()');
    await page.fill('input[name=username]', 'alice@example.com');
    await page.fill('input[name=password]', 'alice');
    await page.press('input[name=password]', 'Enter');
    await page.waitForURL(`${site.url}/app/form?step=2#details`);
    await hasEvent(page, 'signed-in');
    expect(await page.inputValue('#typed')).toBe('a <b>long</b> text');
    expect(await page.evaluate('[client.restore(), sessionStorage.length]')).toEqual([undefined, 0]);
    await hasEvent(other, 'signed-in');
    expect(await other.evaluate('client.session.email')).toBe('alice@example.com');
    expect(await other.inputValue('#typed')).toBe('in another tab');
  });

  it('does not give what one person typed to another', async () => {
    const page = await open();
    await signIn(page);
    await page.fill('#typed', 'secret of Alice');
    await signIn(page, 'admin', { prompt: 'login' });
    expect(await page.inputValue('#typed')).toBe('');
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });

  it('without a page succeeds if the identity provider knows the person, and otherwise says why', async () => {
    const page = await open('/app?x=1');
    await page.evaluate(`client.signIn({ prompt: 'none' })`);
    await page.waitForURL(/error=login_required/);
    await until(page, 'client.session === null');
    expect(await page.evaluate('[client.signInError(), client.signInError(), location.search]')).toEqual([
      'login_required',
      null,
      '?x=1',
    ]);
    await signIn(page);
    await context.clearCookies({ name: 'formgate_session' });
    await page.evaluate('client.read()');
    await page.evaluate(`client.signIn({ prompt: 'none', returnTo: '/app?silent' })`);
    await page.waitForURL(`${site.url}/app?silent`);
    await until(page, 'client.session?.email === "alice@example.com"');
  });
});

describe('fetch', () => {
  const target = '/token-handler/targets/api/things';
  const send = (page: Page, init: string, url = target) =>
    page.evaluate<number>(`client.fetch('${url}', ${init}).then(({ status }) => status)`);

  it('sends the CSRF token to the token handler only, also after the browser has lost it', async () => {
    const page = await open();
    await signIn(page);
    expect(await send(page, `{ method: 'POST', body: 'x' }`)).toBe(200);
    expect(await send(page, `{ method: 'DELETE', headers: { 'X-Mine': 'kept' } }`)).toBe(200);
    expect(world.upstream.last()).toMatchObject({ method: 'DELETE', headers: { 'x-mine': 'kept' } });
    await context.clearCookies({ name: 'XSRF-TOKEN' });
    expect(await send(page, `{ method: 'PUT', body: 'x' }`)).toBe(200);
    await context.route('**/elsewhere', (route) => route.fulfill({ status: 401 }));
    const sent = page.waitForRequest('**/elsewhere');
    expect(await send(page, `{ method: 'POST' }`, '/elsewhere')).toBe(401);
    expect((await sent).headers()).not.toHaveProperty('x-xsrf-token');
    expect(await events(page)).toEqual(['signed-in']);
  });

  it('raises an event for a 401 and leaves the page as it is, in every tab', async () => {
    const page = await open();
    await signIn(page);
    const other = await open();
    await page.fill('#typed', 'not lost');
    await endElsewhere(page);
    expect(await send(page, '{}')).toBe(401);
    await hasEvent(page, 'expired');
    await hasEvent(other, 'expired');
    expect(await events(page)).toEqual(['signed-in', 'unauthorized', 'expired']);
    expect([page.url(), await page.inputValue('#typed')]).toEqual([`${site.url}/app`, 'not lost']);
    await signIn(page, 'alice', { prompt: 'login' });
    expect(await page.inputValue('#typed')).toBe('not lost');
  });

  it('tells the 401 of an upstream from the end of the session', async () => {
    const page = await open();
    await signIn(page);
    world.upstream.answer = (_request, response) => response.writeHead(401).end();
    const read = page.waitForResponse('**/sessions');
    expect(await send(page, '{}')).toBe(401);
    expect((await read).status()).toBe(200);
    expect(await events(page)).toEqual(['signed-in', 'unauthorized']);
  });
});

/** An administrator ends the session of the page. */
async function endElsewhere(page: Page): Promise<void> {
  const id = await page.evaluate<string>('client.session.id');
  const ended = await world.handler.api(`/sessions/${id}`, {
    method: 'DELETE',
    token: await world.handler.adminToken(),
  });
  expect(ended.status).toBe(200);
}

describe('two tabs', () => {
  slow('are read by one of them, and by the other when that one is closed', async () => {
    const page = await open('/app?poll=50');
    await signIn(page);
    const other = await open('/app?poll=50');
    const reads = { page: 0, other: 0 };
    page.on('request', () => {
      reads.page += 1;
    });
    other.on('request', () => {
      reads.other += 1;
    });
    await expect.poll(() => reads.page + reads.other).toBeGreaterThan(5);
    expect(Math.min(reads.page, reads.other)).toBe(0);
    const [polling, waiting] = reads.page > 0 ? ([page, 'other'] as const) : ([other, 'page'] as const);
    await polling.close();
    await expect.poll(() => reads[waiting]).toBeGreaterThan(1);
  });

  it('sign out together, and the server ends the session', async () => {
    const page = await open();
    await signIn(page);
    const other = await open();
    await page.evaluate(`client.signOut('/app?bye')`);
    await hasEvent(other, 'signed-out');
    await page.waitForURL(`${site.url}/app?bye`);
    expect(await other.evaluate('[client.session, events]')).toEqual([null, ['signed-in', 'signed-out']]);
    expect((await context.request.get(`${site.url}/token-handler/sessions`)).status()).toBe(401);
  });

  slow('are signed in again if the logout of one of them did not reach the server', async () => {
    const page = await open();
    await signIn(page);
    const other = await open();
    await context.route('**/logout**', (route) => route.abort());
    await page.evaluate('client.signOut()');
    await hasEvent(other, 'signed-out');
    await until(other, `events.join() === 'signed-in,signed-out,signed-in'`);
  });
});

describe('expiry', () => {
  const openShort = () => open('/app?warn=6000', short.url);

  slow('is announced, postponed by requests to targets, and ends without a request of the page', async () => {
    const page = await openShort();
    await signIn(page);
    const other = await openShort();
    await hasEvent(page, 'expiring');
    await page.evaluate(`client.fetch('/token-handler/targets/api/x')`);
    await until(page, `events.filter((type) => type === 'expiring').length === 2`);
    await hasEvent(page, 'expired');
    await hasEvent(other, 'expired');
    expect((await events(page)).join()).toMatch(/^signed-in(,expiring)+,expired$/);
    expect(page.url()).toContain('/app?warn=6000');
  });

  slow('follows the server’s clock, not that of the computer', async () => {
    const page = await open();
    await signIn(page);
    await page.clock.install({ time: Date.now() + 48 * 3_600_000 });
    await page.goto(`${site.url}/app?late`);
    await hasEvent(page, 'signed-in');
    const read = page.waitForResponse('**/sessions');
    await page.clock.fastForward(59 * 60_000);
    expect((await read).status()).toBe(200);
    expect(await events(page)).toEqual(['signed-in']);
  });

  slow('hides the session when its time is over and the server cannot be reached', async () => {
    const page = await openShort();
    await signIn(page);
    await context.route('**/sessions', (route) => route.abort());
    await expect(page.evaluate('client.read()')).rejects.toThrow();
    expect(await page.evaluate('client.session.email')).toBe('alice@example.com');
    await hasEvent(page, 'expired');
    expect(await page.evaluate('client.session')).toBe(null);
  });
});

it('sends nothing after it was closed', async () => {
  const page = await open('/app?poll=50');
  await signIn(page);
  await page.evaluate('client.close()');
  const other = await open('/app?poll=50');
  let reads = 0;
  page.on('request', () => {
    reads += 1;
  });
  await expect(page.evaluate('client.read()')).rejects.toThrow();
  await other.evaluate('new Promise((resolve) => setTimeout(resolve, 200))');
  expect([reads, await events(page)]).toEqual([0, ['signed-in']]);
});
