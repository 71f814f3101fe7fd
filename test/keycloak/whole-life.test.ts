// Tests the whole life of a client and its sessions. `npm test` uses the embedded identity provider. `npm run
// test:keycloak` uses a real Keycloak.

import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../dev/ports.ts';
import { confirmLogout } from '../support/access-pages.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { cookieName, type SessionWorld, startSessionWorld } from '../support/sessions.ts';
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';
import { startTokenDoor, type TokenDoor } from '../support/token-door.ts';

const latest = '/configuration/platform/token-handler/latest';
let platform: TestPlatform;
let offset = 0;
const clock = () => new Date(Date.now() + offset);

beforeAll(async () => {
  platform = await startTestPlatform();
});
afterAll(() => platform.close());
beforeEach(() => {
  offset = 0;
});

/**
 * Starts a token handler with the clients `web` and `through`; `through` has keycloakLogout. Both have the
 * configuration service as a target.
 */
async function startWorld(env: Record<string, string>, accessUrl?: string): Promise<SessionWorld> {
  offset = 0;
  const world = await startSessionWorld({ platform, clock, env, ...(accessUrl !== undefined && { accessUrl }) });
  const client = (id: string) => ({
    redirectUris: [`${world.site}/token-handler/clients/${id}/callback`],
    targets: [{ id: 'configuration', upstream: 'urn:example:platform:configuration-service:v2' }],
  });
  await world.handler.configure({ web: client('web'), through: { ...client('through'), keycloakLogout: true } });
  await world.handler.register('through');
  return world;
}

const call = (world: SessionWorld, browser: SiteBrowser) =>
  browser.request(`${world.site}/token-handler/targets/configuration${latest}`);
const status = async (world: SessionWorld, browser: SiteBrowser) => (await call(world, browser)).status;

/** Returns a second browser of the same person, without a session at this site. */
function elsewhere(world: SessionWorld, browser: SiteBrowser): SiteBrowser {
  const other = browser.copy();
  other.setCookie(world.site, cookieName, undefined);
  return other;
}

describe('a session', () => {
  let world: SessionWorld;
  let door: TokenDoor;
  beforeAll(async () => {
    door = await startTokenDoor(platform.access.url);
    world = await startWorld({}, door.url);
  });
  afterAll(async () => {
    await world.close();
    await door.close();
  });

  it('has an access token that services behind targets accept, with the roles of the person', async () => {
    const { browser: administrator } = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    const response = await call(world, administrator);
    expect(response.status).toBe(200);
    expect(JSON.parse(response.text).clients).toHaveProperty('web');
    // The person has no role at the configuration service. The token handler forwards this service's 403 unchanged.
    const { browser } = await world.signIn(createSiteBrowser(), { email: 'alice@example.com' });
    expect(await status(world, browser)).toBe(403);
  });

  it('is refreshed by one token request for many concurrent calls, repeatedly', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    for (let round = 1; round <= 3; round += 1) {
      const before = door.presented.length;
      offset += 310_000;
      const statuses = await Promise.all(Array.from({ length: 20 }, () => status(world, browser)));
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(door.presented.length - before).toBe(1);
    }
    expect(new Set(door.presented).size).toBe(door.presented.length);
  });

  it('survives an update of its client’s redirect URIs, and can be refreshed afterwards', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    const redirectUris = [`${world.site}/token-handler/clients/web/callback`, 'https://more.example.org/cb'];
    for (const uris of [redirectUris, redirectUris.slice(0, 1), redirectUris]) {
      const token = await world.handler.adminToken();
      const updated = await world.handler.api('/clients/web', { method: 'PUT', token, body: { redirectUris: uris } });
      expect(updated.status).toBe(200);
    }
    expect(await status(world, browser)).toBe(200);
    offset += 310_000;
    expect(await status(world, browser)).toBe(200);
    // A new sign-in works with the updated client.
    await world.signIn();
  });

  it('of a client that was registered again ends with its access token, and a new sign-in works', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    expect((await world.handler.register('web')).status).toBe(200);
    expect(await status(world, browser)).toBe(200);
    offset += 310_000;
    expect(await status(world, browser)).toBe(401);
    offset = 0;
    const again = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    expect(await status(world, again.browser)).toBe(200);
  });

  it('ends with 401 when the identity provider rejects its refresh token', async () => {
    const { browser } = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
    const other = elsewhere(world, browser);
    await world.signIn(other, { start: world.authUrl({}, { clientId: 'through' }) });
    const { location } = await other.request(world.clientUrl('logout', {}, { clientId: 'through' }));
    await confirmLogout(other, location);
    // Without PUBLIC_URL, the token handler gets no back-channel logout.
    expect(await status(world, browser)).toBe(200);
    offset += 310_000;
    expect(await status(world, browser)).toBe(401);
    expect((await world.sessions(browser)).status).toBe(401);
  });
});

describe('a logout at the identity provider, with PUBLIC_URL', () => {
  let world: SessionWorld;
  beforeAll(async () => {
    const port = await findFreePort();
    world = await startWorld({ PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}` });
    // Register the client again, because its earlier registration has no back-channel logout address.
    await world.handler.register('web');
  });
  afterAll(() => world.close());

  it('ends the sessions of that browser with all clients, but no session of the person’s other browsers', async () => {
    const { browser } = await world.signIn();
    const other = elsewhere(world, browser);
    await world.signIn(other, { start: world.authUrl({}, { clientId: 'through' }) });
    const { browser: phone } = await world.signIn();
    const { location } = await other.request(world.clientUrl('logout', {}, { clientId: 'through' }));
    await confirmLogout(other, location);
    await expect.poll(async () => (await world.sessions(browser)).status).toBe(401);
    expect((await world.sessions(phone)).status).toBe(200);
  });
});

it('a client without redirect URIs can sign no one in until an update adds some', async () => {
  const world = await startWorld({});
  onTestFinished(() => world.close());
  await world.handler.configure({ bare: {} });
  expect((await world.handler.register('bare')).status).toBe(200);
  const place = { clientId: 'bare' };
  const browser = createSiteBrowser();
  const refused = await browser.follow(await browser.request(world.authUrl({}, place)));
  expect([refused.status, refused.url.origin]).toEqual([400, new URL(platform.access.url).origin]);
  const updated = await world.handler.api('/clients/bare', {
    method: 'PUT',
    token: await world.handler.adminToken(),
    body: { redirectUris: [world.clientUrl('callback', {}, place)] },
  });
  expect(updated.status).toBe(200);
  await world.signIn(browser, { start: world.authUrl({}, place) });
});
