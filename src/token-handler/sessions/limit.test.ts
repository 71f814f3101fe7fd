// Tests the rate limits of the routes that list and end sessions (per person or account, and per client address), and
// of sign-outs (per client address).
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { type SessionWorld, type SignedInBrowser, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';

const window = 60_000;
const needed = 20_000;

describe('the limits of the routes of sessions', () => {
  let platform: TestPlatform;
  let world: SessionWorld;
  beforeAll(async () => {
    platform = await startTestPlatform();
    return () => platform.close();
  });
  afterEach(() => world.close());

  async function start(env: Record<string, string>) {
    world = await startSessionWorld({ platform, env: { TRUSTED_PROXIES: '1', ...env } });
    await roomInWindow(window, needed);
  }
  const revoke = ({ browser, csrf }: SignedInBrowser, handle: string) =>
    browser.request(`${world.site}/token-handler/v1/sessions/${handle}`, {
      method: 'DELETE',
      headers: { 'X-XSRF-TOKEN': csrf },
    });

  it('a person over the limit gets 429 in all of their sessions, and other people do not', async () => {
    // Each `world.signIn` lists the person's sessions once, which counts toward the limit.
    await start({ SESSION_REQUEST_LIMIT: '6' });
    const [one, two] = [await world.signIn(), await world.signIn()];
    const other = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    const first = await world.sessions(one.browser);
    expect(first.headers.get('ratelimit-policy')).toBe('6;w=60');
    expect(first.headers.get('ratelimit')).toMatch(/^limit=6, remaining=3, reset=\d+$/);
    for (const { browser } of [one, two, one]) expect((await world.sessions(browser)).status).toBe(200);
    const refused = await world.sessions(two.browser);
    expect([refused.status, JSON.parse(refused.text).type]).toEqual([429, 'urn:formgate:problem:too-many-requests']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await revoke(one, two.handle)).status).toBe(429);
    expect((await world.sessions(other.browser)).status).toBe(200);
  });

  it('an administrator over the limit gets 429', async () => {
    await start({ SESSION_REQUEST_LIMIT: '2' });
    const token = await world.handler.adminToken();
    const statuses: number[] = [];
    for (let call = 0; call < 3; call += 1) statuses.push((await world.handler.api('/sessions', { token })).status);
    expect(statuses).toEqual([200, 200, 429]);
  });

  it('an address over the limit gets 429, with or without a session, and other addresses do not', async () => {
    await start({ TARGET_SESSION_LIMIT: '3', TARGET_ADDRESS_LIMIT: '3', TARGET_WINDOW: 'PT1M' });
    const { browser } = await world.signIn();
    const at = (address: string, by = browser) => world.sessions(by, { 'X-Forwarded-For': address });
    for (let call = 0; call < 3; call += 1) expect((await at('203.0.113.1', createSiteBrowser())).status).toBe(401);
    expect((await at('203.0.113.1', createSiteBrowser())).status).toBe(429);
    expect((await at('203.0.113.1')).status).toBe(429);
    expect((await at('203.0.113.2')).status).toBe(200);
  });

  it('an address over the limit of sign-outs gets 429, however often it lists sessions, and other addresses do not', async () => {
    await start({ TARGET_SESSION_LIMIT: '2', TARGET_ADDRESS_LIMIT: '2', TARGET_WINDOW: 'PT1M' });
    const { browser } = await world.signIn();
    const listOf = (address: string) => world.sessions(browser, { 'X-Forwarded-For': address });
    const signOut = async (address: string, by = createSiteBrowser()) =>
      (await by.request(world.clientUrl('logout'), { headers: { 'X-Forwarded-For': address } })).status;
    for (let call = 0; call < 3; call += 1) await listOf('203.0.113.1');
    expect(await Promise.all([signOut('203.0.113.1'), signOut('203.0.113.1')])).toEqual([302, 302]);
    expect(await signOut('203.0.113.1', browser)).toBe(429);
    expect((await listOf('203.0.113.2')).status).toBe(200);
    expect(await signOut('203.0.113.2', browser)).toBe(302);
    expect((await listOf('203.0.113.2')).status).toBe(401);
  });

  it('by default, leave room for three times as many reads as 100 tabs that each poll once a minute', async () => {
    // An empty value means the default.
    await start({ SESSION_REQUEST_LIMIT: '' });
    const { browser } = await world.signIn();
    const tabs = await Promise.all(Array.from({ length: 100 }, () => world.sessions(browser)));
    expect(new Set(tabs.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await world.sessions(browser)).headers.get('ratelimit')).toMatch(/^limit=300, remaining=198, /);
  });
});
