// Tests the rate limit of sign-ins per IP address of the browser, with counters in Redis and in memory. Also tests the
// limit of a tenant's sessions.
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';

const most = 6;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await startTestPlatform();
});
afterAll(() => platform.close());

describe.each(['memory', 'redis'] as const)('the limit of sign-ins, counted in %s', (store) => {
  let world: SessionWorld;
  let nth = 0;
  let address: string;
  beforeAll(async () => {
    world = await startSessionWorld({ store, platform, env: { SIGN_IN_LIMIT: String(most), TRUSTED_PROXIES: '1' } });
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    await roomInWindow(300_000, 20_000);
    nth += 1;
    address = `203.0.113.${nth}`;
  });

  const ask = (url: string, forwardedFor: string) =>
    createSiteBrowser().request(url, { headers: { 'X-Forwarded-For': forwardedFor } });
  const begin = async (forwardedFor = address) => (await ask(world.authUrl(), forwardedFor)).status;
  const spend = async () => {
    for (let call = 0; call < most; call += 1) expect(await begin()).toBe(302);
  };

  it('sends draft 7 headers with each response, and responds with 429 and Retry-After beyond the limit', async () => {
    const first = await ask(world.authUrl(), address);
    expect(first.headers.get('ratelimit-policy')).toBe(`${most};w=300`);
    expect(first.headers.get('ratelimit')).toMatch(`limit=${most}, remaining=${most - 1}, reset=`);
    for (let call = 1; call < most; call += 1) await begin();
    const refused = await ask(world.authUrl(), address);
    expect([refused.status, JSON.parse(refused.text).type]).toEqual([429, 'urn:formgate:problem:too-many-requests']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.setCookies).toEqual([]);
  });

  it('applies to sign-in and callback together', async () => {
    const callback = world.clientUrl('callback', { state: 'unknown', code: 'x' });
    for (let call = 0; call < most / 2; call += 1) {
      expect(await begin()).toBe(302);
      expect((await ask(callback, address)).status).toBe(400);
    }
    expect(await begin()).toBe(429);
    expect((await ask(callback, address)).status).toBe(429);
  });

  it('applies to the client address that trusted proxies report, not to one that the client claims', async () => {
    await spend();
    for (const claimed of ['198.51.100.1', '127.0.0.1', 'unknown'])
      expect(await begin(`${claimed}, ${address}`)).toBe(429);
    expect(await begin(`203.0.113.${nth + 100}`)).toBe(302);
  });

  it('does not count what a page of another site embeds, so that one page cannot lock out an office', async () => {
    const headers = { 'X-Forwarded-For': address, 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'image' };
    const callback = world.clientUrl('callback', { state: 'unknown', code: 'x' });
    for (let call = 0; call < most; call += 1)
      for (const url of [world.authUrl(), callback]) {
        const refused = await createSiteBrowser().request(url, { headers });
        expect([refused.status, refused.headers.get('ratelimit')]).toEqual([403, null]);
      }
    expect(await begin()).toBe(302);
  });

  it('counts the addresses of one IPv6 /64 as one client', async () => {
    for (let call = 0; call < most; call += 1) expect(await begin(`2001:db8:0:${nth}::${call + 1}`)).toBe(302);
    expect(await begin(`2001:db8:0:${nth}:ffff::1`)).toBe(429);
    expect(await begin(`2001:db8:1:${nth}::1`)).toBe(302);
  });
});

it('a sign-in beyond the limit of its tenant ends the oldest session of the tenant', async () => {
  const world = await startSessionWorld({ store: 'redis', platform, env: { TENANT_SESSION_LIMIT: '1' } });
  onTestFinished(() => world.close());
  const first = await world.signIn();
  const second = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
  expect((await world.sessions(first.browser)).status).toBe(401);
  expect((await world.sessions(second.browser)).status).toBe(200);
  expect(await (await fetch(`${world.handler.metricsUrl}/metrics`)).text()).toContain(
    'formgate_replaced_sessions_total{cap="tenant"} 1',
  );
});
