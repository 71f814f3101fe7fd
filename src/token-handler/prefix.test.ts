// Tests that URN_PREFIX changes every URN: those of the service, its role, the tenants and the platform's upstreams,
// and those of targets that are configured without a prefix.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestAccess } from '../../test/support/access.ts';
import { startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../../test/support/sessions.ts';
import { createSiteBrowser } from '../../test/support/site-browser.ts';

const latest = '/configuration/platform/token-handler/latest';
let platform: TestPlatform;
let world: SessionWorld;
beforeAll(async () => {
  const access = await startTestAccess({ urnPrefix: 'urn:ads' });
  await access.addRealm('other');
  platform = await startTestPlatform({ access });
  const client = {
    targets: ['directory-service', { id: 'configuration', upstream: 'urn:ads:platform:configuration-service:v2' }],
  };
  // The only allowed upstream host does not exist. Requests can therefore reach only upstreams of the platform.
  world = await startSessionWorld({ platform, client, env: { UPSTREAM_ALLOWED_DOMAINS: 'nobody.example' } });
});
afterAll(async () => {
  await world.close();
  await platform.close();
  await platform.access.close();
});

it('URN_PREFIX determines the URNs of the service, its role and its tenants', async () => {
  const { handler } = world;
  expect(platform.access.urns.service('token-handler')).toBe('urn:ads:platform:token-handler');
  expect((await handler.api('/clients', { token: await handler.adminToken() })).status).toBe(200);
  const foreign = { aud: 'urn:example:platform:token-handler' };
  const token = await platform.access.foreignToken({
    ...foreign,
    resource_access: { [foreign.aud]: { roles: ['token-handler-admin'] } },
  });
  expect((await handler.api('/clients', { token })).status).toBe(401);
  const begin = async (tenant: string) => (await createSiteBrowser().request(world.authUrl({ tenant }))).status;
  expect(platform.tenant.id).toMatch(/^urn:ads:platform:tenant-service:v2:\/tenants\//);
  expect(await begin(platform.tenant.id)).toBe(302);
  expect(await begin(platform.tenant.id.replace('urn:ads', 'urn:example'))).toBe(404);
});

it('URN_PREFIX determines the URN of a target without prefix, and the platform namespace, whose hosts are not checked', async () => {
  const { handler } = world;
  const { browser } = await world.signIn(createSiteBrowser(), { email: 'admin@example.com' });
  const target = `${world.site}/token-handler/targets/configuration${latest}`;
  expect((await browser.request(target)).status).toBe(200);
  const token = await handler.adminToken();
  const list = async () => (await handler.api('/clients', { token })).body as { id: string; targets: unknown[] }[];
  const [web] = await list();
  expect(web?.targets[0]).toEqual({ id: 'directory-service', upstream: 'urn:ads:platform:directory-service' });
  // The client `foreign` is invalid, because its target is a URN of another platform.
  const foreign = { targets: [{ id: 'x', upstream: 'urn:example:platform:configuration-service:v2' }] };
  await handler.configure({ web: {}, foreign });
  expect((await list()).map(({ id }) => id)).toEqual(['web']);
});
