// Tests sessions whose tenant has got another identity provider (TENANT_ISSUERS) since the sign-in. Both identity
// providers are real, and know a client of the same id and a person of the same subject. Sessions are in Redis.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PlainProvider, startPlainProvider } from '../../../test/support/plain-provider.ts';
import { call } from '../../../test/support/platform.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { cookieName } from '../../../test/support/sessions.ts';
import { createSiteBrowser, type SiteBrowser } from '../../../test/support/site-browser.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';
import type { RunningService } from '../../service/operations/serve.ts';

const [clientId, clientSecret] = ['town-web', 'a-secret'];
let redis: TestRedis;
let [former, current]: PlainProvider[] = [];
let handler: TestTokenHandler;
/** A pod of the token handler to which the operator has given the new mapping. */
let changed: RunningService;
beforeAll(async () => {
  const authMethods = ['client_secret_basic' as const];
  [former, current] = await Promise.all(
    [2, 300].map((accessTokenLifetime) => startPlainProvider({ authMethods, accessTokenLifetime })),
  );
  redis = await startTestRedis();
  handler = await startTestTokenHandler({ env: { REDIS_URL: redis.url, TENANT_ISSUERS: `other=${former?.issuer}` } });
  changed = await handler.startReplica({ env: { TENANT_ISSUERS: `other=${current?.issuer}` } });
  const sites = [handler.url, changed.url];
  const redirectUris = sites.map((site) => `${site}/token-handler/clients/web/callback`);
  const metadata = { client_id: clientId, client_secret: clientSecret, redirect_uris: redirectUris };
  const grants = { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code' as const] };
  for (const provider of [former, current]) await provider?.setClients([{ ...metadata, ...grants }]);
  const web = { redirectUris, targets: ['form-service'] };
  await handler.configure({ web }, { tenant: handler.platform.otherTenant });
});
afterAll(async () => {
  await changed.close();
  await handler.close();
  await redis.close();
  await Promise.all([former?.close(), current?.close()]);
});

async function register(site: string): Promise<void> {
  const tenantId = encodeURIComponent(handler.platform.otherTenant.id);
  const url = `${site}/token-handler/v1/clients/web?tenantId=${tenantId}`;
  const token = await handler.adminToken('core');
  expect((await call(url, { method: 'POST', token, body: { clientId, clientSecret } })).status).toBe(200);
}

async function signIn(browser: SiteBrowser, site: string): Promise<void> {
  const callbackUrl = `${site}/token-handler/clients/web/callback`;
  const start = new URL(`${site}/token-handler/clients/web/auth`);
  start.search = new URLSearchParams({ tenant: 'other-town', callbackUrl }).toString();
  const isCallback = (url: URL) => url.pathname.endsWith('/callback');
  const { location } = await browser.follow(await browser.request(start), isCallback);
  expect((await browser.request(location ?? '')).status).toBe(302);
}

const statusOf = async (browser: SiteBrowser, site: string, path = 'sessions') =>
  (await browser.request(`${site}/token-handler/${path}`)).status;

it('end for the person, who can sign in at the new one, and their refresh tokens are not sent to it', async () => {
  await register(handler.url);
  const browser = createSiteBrowser();
  await signIn(browser, handler.url);
  // Both pods have the same public address, so the browser sends the cookie to each of them.
  browser.setCookie(changed.url, cookieName, browser.cookie(handler.url, cookieName));
  await register(changed.url);
  // The access token of the former identity provider expires after 2 s.
  await delay(2_500);
  expect(await statusOf(browser, changed.url, 'targets/form-service/x')).toBe(401);
  expect(await statusOf(browser, changed.url)).toBe(401);
  // The registration sends a code that does not exist, to check the credentials.
  expect(current?.calls.filter((line) => line === 'POST /token')).toHaveLength(1);
  await signIn(browser, changed.url);
  expect(await statusOf(browser, changed.url)).toBe(200);
});

it('are not shown to a person of the new one who has the same subject', async () => {
  const [ofFormer, ofCurrent] = [createSiteBrowser(), createSiteBrowser()];
  await register(handler.url);
  await signIn(ofFormer, handler.url);
  await register(changed.url);
  await signIn(ofCurrent, changed.url);
  const { text } = await ofFormer.request(`${handler.url}/token-handler/sessions`);
  const [own]: { id: string }[] = JSON.parse(text);
  const list = await ofCurrent.request(`${changed.url}/token-handler/sessions`);
  expect(list.text).not.toContain(own?.id);
  // A pod that has not got the new mapping yet still serves the session.
  expect(await statusOf(ofFormer, handler.url)).toBe(200);
});
