// A token handler whose operator has renamed the tenant header: it uses the new name everywhere, and ignores the
// default.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSiteBrowser } from '../support/site-browser.ts';
import { startTargetWorld, type TargetWorld } from '../support/targets.ts';

let world: TargetWorld;
beforeAll(async () => {
  world = await startTargetWorld({ env: { TENANT_HEADER: 'X-Town' } });
});
afterAll(() => world.close());

it('TENANT_HEADER names the header that chooses the tenant at sign-in, and takes precedence over the query', async () => {
  const begin = async (headers: Record<string, string>, tenant: string) =>
    (await createSiteBrowser().request(world.authUrl({ tenant }), { headers })).status;
  expect(await begin({ 'X-Town': 'demo' }, 'Nowhere')).toBe(302);
  expect(await begin({ 'x-town': 'Nowhere' }, 'demo')).toBe(404);
  expect(await begin({ 'X-PLATFORM-TENANT': 'Nowhere' }, 'demo')).toBe(302);
  expect(await begin({ 'X-PLATFORM-TENANT': 'demo' }, 'Nowhere')).toBe(404);
});

it('TENANT_HEADER names the header that restricts sessions and targets to a tenant, and is not forwarded', async () => {
  const { browser } = await world.signIn();
  const list = async (headers: Record<string, string>) => (await world.sessions(browser, headers)).status;
  expect(await list({ 'X-Town': 'Demo' })).toBe(200);
  expect(await list({ 'X-Town': 'Other Town' })).toBe(401);
  expect(await list({ 'X-PLATFORM-TENANT': 'Other Town' })).toBe(200);
  expect((await world.send({ headers: { 'X-Town': 'Other Town' } })).status).toBe(401);
  expect((await world.send({ headers: { 'X-Town': 'Demo', X_Town: 'Demo' } })).status).toBe(200);
  const names = Object.keys(world.upstream.last().headers);
  for (const name of ['x-town', 'x_town']) expect(names).not.toContain(name);
});
