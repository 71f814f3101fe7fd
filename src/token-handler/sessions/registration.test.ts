// Tests sessions whose client is registered again, or whose client gets other redirect URIs.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import type { SiteBrowser } from '../../../test/support/site-browser.ts';

let offset = 0;
const clock = () => new Date(Date.now() + offset);
let platform: TestPlatform;
let world: SessionWorld;
beforeAll(async () => {
  platform = await startTestPlatform();
  const client = { targets: [{ id: 'directory', upstream: 'urn:example:platform:directory-service:v2' }] };
  world = await startSessionWorld({ platform, clock, client, store: 'redis' });
});
afterAll(async () => {
  await world.close();
  await platform.close();
});

/** Sends a request to a target. If a refresh is due, the request begins it. */
const ask = async (browser: SiteBrowser) =>
  (await browser.request(`${world.site}/token-handler/targets/directory/namespaces/platform/entries`)).status;

describe('a session', () => {
  it('is refreshed as before after the redirect URIs of its client were updated', async () => {
    offset = 0;
    const { browser, handle } = await world.signIn();
    const before = await world.stored(handle);
    const token = await world.handler.adminToken();
    const body = { redirectUris: [`${world.site}/token-handler/clients/web/callback`, 'https://new.example.org/x'] };
    expect((await world.handler.api('/clients/web', { method: 'PUT', token, body })).status).toBe(200);
    offset = 275_000;
    expect(await ask(browser)).toBe(200);
    await expect.poll(async () => (await world.stored(handle)).tokens.accessToken).not.toBe(before.tokens.accessToken);
  });

  it('ends with its access token after its client was registered again', async () => {
    offset = 0;
    const { browser, handle } = await world.signIn();
    expect((await world.handler.register('web')).status).toBe(200);
    offset = 275_000;
    expect(await ask(browser)).toBe(200);
    await expect.poll(async () => (await world.stored(handle)).tokens.refreshToken).toBeUndefined();
    offset = 301_000;
    expect(await ask(browser)).toBe(401);
    offset = 0;
    await world.signIn();
  });
});
