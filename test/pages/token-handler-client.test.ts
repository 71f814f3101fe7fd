// Tests the browser module for frontends in Chromium, in two tabs of a site, with a real token handler and identity
// provider.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  clientFile,
  events,
  type FrontendWorld,
  hasEvent,
  signIn,
  startFrontendWorld,
  until,
} from '../support/frontend-world.ts';

let frontend: FrontendWorld;
beforeAll(async () => {
  frontend = await startFrontendWorld();
});
afterAll(() => frontend?.close());

it('is smaller than 2 KB, minified and compressed', () => {
  expect(gzipSync(readFileSync(clientFile), { level: 9 }).length).toBeLessThan(2_048);
});

describe('sign-in', () => {
  it('returns to the same place with what was typed, and other tabs learn of it', async () => {
    const { open } = await frontend.newProfile();
    const [page, other] = [await open('/app/form?step=2#details'), await open()];
    expect([await events(page), await page.evaluate('client.session')]).toEqual([['signed-out'], null]);
    await page.fill('#typed', 'a <b>long</b> text');
    await other.fill('#typed', 'in another tab');
    await page.evaluate('client.signIn()');
    await page.fill('input[name=username]', 'alice@example.com');
    await page.fill('input[name=password]', 'alice');
    await page.press('input[name=password]', 'Enter');
    await page.waitForURL(`${frontend.site}/app/form?step=2#details`);
    await hasEvent(page, 'signed-in');
    expect(await page.inputValue('#typed')).toBe('a <b>long</b> text');
    expect(await page.evaluate('[client.restore(), sessionStorage.length]')).toEqual([undefined, 0]);
    await hasEvent(other, 'signed-in');
    expect(await other.evaluate('client.session.email')).toBe('alice@example.com');
    expect(await other.inputValue('#typed')).toBe('in another tab');
  });

  it('of another client or tenant on the same site does not count', async () => {
    const { context, open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    const own = await page.evaluate<Record<string, unknown>>('client.session');
    const changes = [{ clientId: 'other' }, { tenantId: 'urn:other', tenant: { name: 'Other', realm: 'other' } }];
    for (const change of changes) {
      await context.route('**/sessions', (route) => route.fulfill({ json: [{ ...own, ...change }] }));
      expect(await page.evaluate('client.read()')).toBeNull();
      expect(await page.evaluate('client.session')).toBeNull();
      await context.unroute('**/sessions');
      expect(await page.evaluate('client.read()')).toMatchObject({ clientId: 'web' });
    }
  });

  it('is not ended in other tabs by a tab of another client, and its end is noticed there', async () => {
    const { context, open } = await frontend.newProfile();
    const other = await open('/app?clientId=other&poll=50');
    const page = await open('/app?poll=50');
    await signIn(page);
    await other.evaluate('client.read()');
    expect(await other.evaluate('client.session')).toBeNull();
    expect(await events(page)).toEqual(['signed-in']);
    expect(await events(other)).toEqual(['signed-out']);
    // The tab of the other client holds the lock, and polls for all tabs.
    await context.clearCookies();
    await hasEvent(page, 'expired');
  });

  it('does not give what one person typed to another', async () => {
    const { open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    await page.fill('#typed', 'secret of Alice');
    await signIn(page, 'admin', { prompt: 'login' });
    expect(await page.inputValue('#typed')).toBe('');
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });

  it('does not give what one person typed to another of the same name', async () => {
    const { context, open } = await frontend.newProfile();
    await context.route('**/sessions', async (route) => {
      const response = await route.fetch();
      const list = response.ok() ? await response.json() : [];
      const json = list.map((session: object) => ({ ...session, name: 'Anna Meier', email: null }));
      await route.fulfill({ response, ...(response.ok() && { json }) });
    });
    const page = await open();
    await signIn(page);
    await page.fill('#typed', 'secret of Alice');
    await signIn(page, 'admin', { prompt: 'login' });
    expect(await page.inputValue('#typed')).toBe('');
    await page.fill('#typed', 'text of the administrator');
    await signIn(page, 'admin', { prompt: 'login' });
    expect(await page.inputValue('#typed')).toBe('text of the administrator');
  });

  it('without a page succeeds if the identity provider knows the person, and otherwise says why', async () => {
    const { context, open } = await frontend.newProfile();
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
    await page.waitForURL(`${frontend.site}/app?silent`);
    await until(page, 'client.session?.email === "alice@example.com"');
  });
});

describe('fetch', () => {
  const target = '/token-handler/targets/api/things';
  const send = (page: Page, init: string, url = target) =>
    page.evaluate<number>(`client.fetch('${url}', ${init}).then(({ status }) => status)`);

  it('sends the CSRF token to the token handler only, also after the browser has lost it', async () => {
    const { context, open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    expect(await send(page, `{ method: 'POST', body: 'x' }`)).toBe(200);
    expect(await send(page, `{ method: 'DELETE', headers: { 'X-Mine': 'kept' } }`)).toBe(200);
    expect(frontend.world.upstream.last()).toMatchObject({ method: 'DELETE', headers: { 'x-mine': 'kept' } });
    await context.clearCookies({ name: 'XSRF-TOKEN' });
    expect(await send(page, `{ method: 'PUT', body: 'x' }`)).toBe(200);
    await context.route('**/elsewhere', (route) => route.fulfill({ status: 401 }));
    const sent = page.waitForRequest('**/elsewhere');
    expect(await send(page, `{ method: 'POST' }`, '/elsewhere')).toBe(401);
    expect((await sent).headers()).not.toHaveProperty('x-xsrf-token');
    expect(await events(page)).toEqual(['signed-in']);
  });

  it('raises an event for a 401 and leaves the page as it is, in every tab', async () => {
    const { open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    const other = await open();
    await page.fill('#typed', 'not lost');
    await endElsewhere(page);
    expect(await send(page, '{}')).toBe(401);
    await hasEvent(page, 'expired');
    await hasEvent(other, 'expired');
    expect(await events(page)).toEqual(['signed-in', 'unauthorized', 'expired']);
    expect([page.url(), await page.inputValue('#typed')]).toEqual([`${frontend.site}/app`, 'not lost']);
    await signIn(page, 'alice', { prompt: 'login' });
    expect(await page.inputValue('#typed')).toBe('not lost');
  });

  it('tells the 401 of an upstream from the end of the session', async () => {
    const { open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    frontend.world.upstream.answer = (_request, response) => response.writeHead(401).end();
    const read = page.waitForResponse('**/sessions');
    expect(await send(page, '{}')).toBe(401);
    expect((await read).status()).toBe(200);
    expect(await events(page)).toEqual(['signed-in', 'unauthorized']);
  });
});

/** Ends the session of the page, as an administrator would. */
async function endElsewhere(page: Page): Promise<void> {
  const id = await page.evaluate<string>('client.session.id');
  const ended = await frontend.world.handler.api(`/sessions/${id}`, {
    method: 'DELETE',
    token: await frontend.world.handler.adminToken(),
  });
  expect(ended.status).toBe(200);
}

describe('two tabs', () => {
  it('sign out together, and the server ends the session', async () => {
    const { context, open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    const other = await open();
    const logouts: string[] = [];
    page.on('request', (request) => request.url().includes('/logout?') && logouts.push(request.url()));
    await page.route('**/logout?**', async (route) => {
      await sleep(300);
      await route.continue();
    });
    // A double click.
    await page.evaluate(`client.signOut('/app?bye'); setTimeout(() => client.signOut('/app?bye'), 150)`);
    await hasEvent(other, 'signed-out');
    await page.waitForURL(`${frontend.site}/app?bye`);
    expect(await other.evaluate('[client.session, events]')).toEqual([null, ['signed-in', 'signed-out']]);
    expect((await context.request.get(`${frontend.site}/token-handler/sessions`)).status()).toBe(401);
    expect(logouts).toHaveLength(1);
  });
});

it('sends nothing after it was closed', async () => {
  const { open } = await frontend.newProfile();
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
