// Tests sessions whose tenant has got another realm at the platform since the sign-in, and whose client was registered
// there with the same client id. Both realms exist at the identity provider.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type HttpTap, startHttpTap } from '../../../test/support/http-tap.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { type SessionWorld, type SignedInBrowser, startSessionWorld } from '../../../test/support/sessions.ts';

let offset = 0;
let platform: TestPlatform;
let tap: HttpTap;
let world: SessionWorld;
let signedIn: SignedInBrowser;
beforeAll(async () => {
  platform = await startTestPlatform();
  const { origin, pathname } = new URL(platform.access.url);
  tap = await startHttpTap(origin);
  world = await startSessionWorld({
    ...{ store: 'redis', platform, accessUrl: `${tap.url}${pathname}`, clock: () => new Date(Date.now() + offset) },
    client: { keycloakLogout: true, targets: ['directory-service'] },
  });
});
afterAll(async () => {
  await world.close();
  await tap.close();
  await platform.close();
});

beforeEach(async () => {
  offset = 0;
  await moveRegistration(platform.tenant.realm);
  signedIn = await world.signIn();
  await moveRegistration(platform.otherTenant.realm);
});

/** Makes the registration look as if the client had been registered in this realm. */
const moveRegistration = (realm: string) => world.handler.rows('UPDATE client_registrations SET realm = $1', [realm]);

const statusOfTarget = async () =>
  (await signedIn.browser.request(`${world.site}/token-handler/targets/directory-service/x`)).status;

it('end with their access token, and the new realm does not get their refresh token', async () => {
  offset = 275_000;
  await statusOfTarget();
  await expect.poll(async () => (await world.stored(signedIn.handle)).tokens.refreshToken).toBeUndefined();
  expect(tap.exchanges.filter(({ body }) => body.includes('grant_type=refresh_token'))).toEqual([]);
  offset = 301_000;
  expect(await statusOfTarget()).toBe(401);
});

it('end at a logout, and the new realm does not get their ID token', async () => {
  const { status, headers } = await signedIn.browser.request(world.clientUrl('logout'));
  expect([status, headers.get('location')]).toEqual([302, '/']);
  expect((await world.sessions(signedIn.browser)).status).toBe(401);
});
