// Tests the refreshes of one person's 100 sessions when all their access tokens expire together. A gateway forwards the
// refreshes, but responds to some of them with 504. The realm revokes used refresh tokens; a second use ends all
// sessions of the same sign-in. `npm run test:keycloak` uses a real Keycloak. `npm test` uses the embedded identity
// provider and fewer sessions.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { cookieName, type SessionWorld, startSessionWorld } from '../support/sessions.ts';
import type { SiteBrowser } from '../support/site-browser.ts';
import { startTokenDoor, type TokenDoor } from '../support/token-door.ts';
import { createAdminApi } from './admin-api.ts';
import { keycloakOfRun } from './keycloak-of-run.ts';

const keycloak = keycloakOfRun();
/**
 * Number of sign-ins at the identity provider, and number of sessions for each sign-in. A person has at most 100
 * sessions.
 */
const [signIns, sessionsOfEach] = keycloak ? [5, 20] : [3, 8];
/** Every tenth refresh gets 504. */
const failing = 10;

let platform: TestPlatform;
let door: TokenDoor;
let world: SessionWorld;
let replicas: string[];
let closeReplica: () => Promise<void>;
let offset = 0;

beforeAll(async () => {
  platform = await startTestPlatform();
  door = await startTokenDoor(platform.access.url);
  const clock = () => new Date(Date.now() + offset);
  world = await startSessionWorld({ platform, clock, accessUrl: door.url, store: 'redis' });
  await world.handler.configure({
    web: {
      redirectUris: [`${world.site}/token-handler/clients/web/callback`],
      targets: [{ id: 'directory', upstream: 'urn:example:platform:directory-service:v2' }],
    },
  });
  const replica = await world.handler.startReplica();
  closeReplica = () => replica.close();
  replicas = [world.site, replica.url];
});
afterAll(async () => {
  await closeReplica();
  await world.close();
  await door.close();
  await platform.close();
});

async function openSessions(): Promise<SiteBrowser[]> {
  return (await Promise.all(Array.from({ length: signIns }, openSessionsOfSignIn))).flat();
}

async function openSessionsOfSignIn(): Promise<SiteBrowser[]> {
  const { browser } = await world.signIn();
  const browsers = [browser];
  while (browsers.length < sessionsOfEach) {
    // The copied browser is still signed in at the identity provider, and opens another session at the token handler.
    const other = browser.copy();
    other.setCookie(world.site, cookieName, undefined);
    browsers.push((await world.signIn(other)).browser);
  }
  return browsers;
}

/** Calls a target until the response is not 503, and returns whether the session is alive. */
async function isAlive(browser: SiteBrowser, nth: number): Promise<boolean> {
  const cookie = `${cookieName}=${browser.cookie(world.site, cookieName)}`;
  const url = `${replicas[nth % 2]}/token-handler/v1/targets/directory/namespaces/platform/entries`;
  for (let tries = 0; tries < 60; tries += 1) {
    const { status } = await fetch(url, { headers: { cookie } });
    if (status !== 503) return status !== 401;
    await delay(500);
  }
  throw new Error('the session gets only 503');
}

const countAlive = async (browsers: SiteBrowser[]) => (await Promise.all(browsers.map(isAlive))).filter(Boolean).length;

it('sessions of one person that are refreshed together: no token is presented twice, and no other session ends', {
  timeout: 600_000,
}, async () => {
  if (keycloak) {
    const realm = await createAdminApi(keycloak).call('GET', '/demo');
    expect(realm).toMatchObject({ revokeRefreshToken: true, refreshTokenMaxReuse: 0 });
  }
  const browsers = await openSessions();
  expect(await countAlive(browsers)).toBe(browsers.length);
  door.set((nth) => (nth % failing === 0 ? { status: 504, isProcessed: true } : 0));
  offset += 310_000;
  const alive = await countAlive(browsers);
  const lost = Math.floor(browsers.length / failing);
  expect(door.presented).toHaveLength(browsers.length);
  expect(alive).toBe(browsers.length - lost);
  door.set(0);
  offset += 310_000;
  expect(await countAlive(browsers)).toBe(alive);
  expect(new Set(door.presented).size).toBe(door.presented.length);
  expect(door.presented).toHaveLength(browsers.length + alive);
});
