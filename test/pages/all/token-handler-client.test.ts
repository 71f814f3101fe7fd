// Tests the functions that take seconds in the browser module for frontends: polling, expiry, and failed sign-outs.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  events,
  type FrontendWorld,
  hasEvent,
  signIn,
  startFrontendWorld,
  until,
} from '../../support/frontend-world.ts';

let frontend: FrontendWorld;
beforeAll(async () => {
  frontend = await startFrontendWorld();
});
afterAll(() => frontend?.close());

describe('the browser module', () => {
  it('are read by one of them, and by the other when that one is closed', async () => {
    const { open } = await frontend.newProfile();
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

  it('are signed in again if the logout of one of them did not reach the server', async () => {
    const { context, open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    const other = await open();
    await context.route('**/logout**', (route) => route.abort());
    await page.evaluate('client.signOut()');
    await hasEvent(other, 'signed-out');
    await until(other, `events.join() === 'signed-in,signed-out,signed-in'`);
  });

  it('is announced, postponed by requests to targets, and ends without a request of the page', async () => {
    const { open } = await frontend.newProfile();
    const page = await open('/app?warn=6000', frontend.short);
    await signIn(page);
    const other = await open('/app?warn=6000', frontend.short);
    await hasEvent(page, 'expiring');
    await page.evaluate(`client.fetch('/token-handler/targets/api/x')`);
    await until(page, `events.filter((type) => type === 'expiring').length === 2`);
    await hasEvent(page, 'expired');
    await hasEvent(other, 'expired');
    expect((await events(page)).join()).toMatch(/^signed-in(,expiring)+,expired$/);
    expect(page.url()).toContain('/app?warn=6000');
  });

  it('follows the server’s clock, not that of the computer', async () => {
    const { open } = await frontend.newProfile();
    const page = await open();
    await signIn(page);
    await page.clock.install({ time: Date.now() + 48 * 3_600_000 });
    await page.goto(`${frontend.site}/app?late`);
    await hasEvent(page, 'signed-in');
    const read = page.waitForResponse('**/sessions');
    await page.clock.fastForward(59 * 60_000);
    expect((await read).status()).toBe(200);
    expect(await events(page)).toEqual(['signed-in']);
  });

  it('hides the session when its time is over and the server cannot be reached', async () => {
    const { context, open } = await frontend.newProfile();
    const page = await open('/app?warn=6000', frontend.short);
    await signIn(page);
    await context.route('**/sessions', (route) => route.abort());
    await expect(page.evaluate('client.read()')).rejects.toThrow();
    expect(await page.evaluate('client.session.email')).toBe('alice@example.com');
    await hasEvent(page, 'expired');
    expect(await page.evaluate('client.session')).toBe(null);
  });
});
