// Tests that no response of the token handler to a browser contains a token. The one exception is the ID token in the
// redirect that ends the session at the identity provider.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { confirmLogout } from '../support/access-pages.ts';
import { cookieName } from '../support/sessions.ts';
import { createSiteBrowser, type SiteBrowser, type Visit } from '../support/site-browser.ts';
import { startTargetWorld, type TargetWorld, targetUrn } from '../support/targets.ts';

let world: TargetWorld;
beforeAll(async () => {
  const targets = [{ id: 'api', upstream: targetUrn('api:v1') }];
  world = await startTargetWorld({ store: 'redis', client: { keycloakLogout: true, targets } });
});
afterAll(() => world.close());

/** Creates a browser that records in `seen` the status, headers and body of every response of the site. */
function watched(seen: string[]): SiteBrowser {
  const browser = createSiteBrowser();
  const write = (visit: Visit) => {
    if (visit.url.origin === world.site) seen.push(JSON.stringify([visit.status, [...visit.headers], visit.text]));
    return visit;
  };
  const ask = browser.request;
  browser.request = async (url, init) => write(await ask(url, init));
  return browser;
}

it('no response of the token handler to a browser contains a token, from sign-in to logout', async () => {
  const seen: string[] = [];
  const browser = watched(seen);
  const { handle, csrf } = await world.signIn(browser);
  const { tokens, session } = await world.stored(handle);
  const protection = { 'X-XSRF-TOKEN': csrf };
  await world.sessions(browser);
  const target = `${world.site}/token-handler/targets/api/x`;
  expect((await browser.request(target)).status).toBe(200);
  expect((await browser.request(target, { method: 'POST', headers: protection, body: 'x' })).status).toBe(200);
  expect(world.upstream.last().headers.authorization).toBe(`Bearer ${tokens.accessToken}`);
  expect((await browser.request(target, { method: 'POST', body: 'x' })).status).toBe(403);
  const gone = await browser.request(world.clientUrl('logout'));
  await confirmLogout(browser, gone.location);
  await world.sessions(browser);

  const [logout, ...others] = [
    seen.find((one) => one.includes('id_token_hint')),
    ...seen.filter((one) => !one.includes('id_token_hint')),
  ];
  expect(others.length).toBeGreaterThan(7);
  const secrets = [tokens.accessToken, tokens.refreshToken, session.csrfSecret];
  for (const secret of secrets) for (const one of seen) expect(one.includes(secret ?? 'missing')).toBe(false);
  for (const one of others) expect(one.includes(tokens.idToken ?? 'missing')).toBe(false);
  // RP-Initiated Logout 1.0: the ID token tells the identity provider which session to end.
  expect(logout).toContain(tokens.idToken);
  expect(others.join('')).not.toMatch(/eyJ[\w-]+\.eyJ/);
  expect(browser.cookie(world.site, cookieName)).toBeUndefined();
});
