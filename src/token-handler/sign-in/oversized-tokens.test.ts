// Tests over HTTP that a sign-in whose tokens are too large opens no session. A proxy in front of a real identity
// provider enlarges the access token.
import { decodeJwt } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import { startTestPlatform } from '../../../test/support/platform.ts';
import { cookieName, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';
import { startTokenDoor } from '../../../test/support/token-door.ts';

it('a sign-in with 8,000 roles in the access token shows the failure page, and opens no session', async () => {
  const platform = await startTestPlatform();
  onTestFinished(() => platform.close());
  const door = await startTokenDoor(platform.access.url);
  onTestFinished(() => door.close());
  const world = await startSessionWorld({ platform, accessUrl: door.url });
  onTestFinished(() => world.close());
  const roles = Array.from({ length: 8_000 }, (_, nth) => `role-of-a-department-with-a-long-name-${nth}`);
  // By default, `foreignToken` adds an `azp` that names another client.
  const own = { azp: undefined };
  door.editCodes(async (members) => ({
    ...members,
    access_token: await platform.access.foreignToken({ realm_access: { roles } }),
    // Removes `at_hash`, because it is the hash of the original access token.
    id_token: await platform.access.foreignToken({
      ...own,
      ...decodeJwt(String(members.id_token)),
      at_hash: undefined,
    }),
  }));

  const browser = createSiteBrowser();
  const headers = { accept: 'text/html' };
  const landed = await browser.request(await world.toCallback(browser), { headers });
  expect([landed.status, /<h1>([^<]*)<\/h1>/.exec(landed.text)?.[1]]).toEqual([502, 'Sign-in does not work right now']);
  expect(browser.cookie(world.site, cookieName)).toBeUndefined();
  const token = await world.handler.adminToken();
  expect((await world.handler.api('/sessions', { token })).body).toEqual([]);
  expect(await (await fetch(`${world.handler.metricsUrl}/metrics`)).text()).toContain(
    'formgate_sign_ins_total{outcome="failed",reason="identity-provider-down"} 1',
  );

  expect(JSON.stringify(world.handler.log.lines())).toContain('TokensTooLarge');

  door.editCodes((members) => members);
  expect((await world.signIn()).handle).not.toBe('');
});
