// Tests over HTTP that sessions work while the tenant service does not respond, and that two replicas with the same
// Redis share sessions. Also checks that neither Redis nor the log contains secrets.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { listen } from '../../../dev/listen.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import {
  cookieName,
  type SessionWorld,
  type SignedInBrowser,
  startSessionWorld,
} from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';
import type { RunningService } from '../../service/operations/serve.ts';

let world: SessionWorld;
let replica: RunningService;
beforeAll(async () => {
  world = await startSessionWorld({ store: 'redis' });
  replica = await world.handler.startReplica();
});
afterAll(async () => {
  await replica.close();
  await world.close();
});

const list = (browser: SignedInBrowser['browser'], url = world.site) => {
  const cookie = `${cookieName}=${browser.cookie(world.site, cookieName)}`;
  return createSiteBrowser().request(`${url}/token-handler/sessions`, { headers: { cookie } });
};

it('a session is found while the tenant service does not respond; then the list does not name the tenant', async () => {
  const silent = await listen(() => undefined);
  onTestFinished(silent.close);
  const env = { DIRECTORY_URL: `http://127.0.0.1:${silent.port}` };
  const cutOff = await world.handler.startReplica({ env, log: captureLog() });
  onTestFinished(() => cutOff.close());
  const { browser } = await world.signIn();
  const tenantIn = ({ text }: { text: string }) => JSON.parse(text)[0].tenant;
  expect(tenantIn(await list(browser))).toEqual({ name: 'Demo', realm: 'demo' });
  const found = await list(browser, cutOff.url);
  expect([found.status, tenantIn(found)]).toEqual([200, null]);
});

describe('two replicas', () => {
  it('serve the same session, and a logout on one ends it on both', async () => {
    const { browser } = await world.signIn();
    expect([(await list(browser)).status, (await list(browser, replica.url)).status]).toEqual([200, 200]);
    const old = browser.copy();
    await browser.request(world.clientUrl('logout'));
    await expect.poll(async () => (await list(old, replica.url)).status).toBe(401);
    expect((await list(old)).status).toBe(401);
  });

  it('complete each other’s sign-ins', async () => {
    const browser = createSiteBrowser();
    const callback = await world.toCallback(browser);
    const cookie = browser
      .cookies(callback)
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
    const there = new URL(callback.pathname + callback.search, replica.url);
    const landed = await createSiteBrowser().request(there, { headers: { cookie } });
    expect([landed.status, landed.location?.href]).toEqual([302, `${world.site}/`]);
  });

  it('share the rate limit of sign-ins', async () => {
    const limited = await startSessionWorld({ store: 'redis', env: { SIGN_IN_LIMIT: '10' } });
    onTestFinished(() => limited.close());
    const second = await limited.handler.startReplica();
    onTestFinished(() => second.close());
    const statuses: number[] = [];
    await roomInWindow(300_000, 20_000);
    const left = () => 300 - (Math.floor(Date.now() / 1_000) % 300);
    for (let call = 0; call < 12; call += 1) {
      const origin = call % 2 ? second.url : limited.site;
      const url = new URL(limited.authUrl());
      const visit = await createSiteBrowser().request(new URL(url.pathname + url.search, origin));
      statuses.push(visit.status);
      if (call === 0) {
        expect(visit.headers.get('ratelimit-policy')).toBe('10;w=300');
        const [, reset] = /^limit=10, remaining=9, reset=(\d+)$/.exec(visit.headers.get('ratelimit') ?? '') ?? [];
        expect(Math.abs(Number(reset) - left())).toBeLessThan(5);
      }
      if (visit.status === 429) expect(Math.abs(Number(visit.headers.get('retry-after')) - left())).toBeLessThan(5);
    }
    expect(statuses).toEqual([...Array(10).fill(302), 429, 429]);
  });
});

describe('after a sign-in', () => {
  it('a dump of Redis contains no token, secret, code, state, cookie or email address', async () => {
    const { browser, csrf, handle } = await world.signIn();
    const { session, tokens } = await world.stored(handle);
    const open = createSiteBrowser();
    const { location } = await open.request(world.authUrl());
    const callback = await world.toCallback(createSiteBrowser());
    const dump = (await world.redis?.dump()) ?? '';
    expect(dump).toContain(handle);
    const id =
      decodeURIComponent(browser.cookie(world.site, cookieName) ?? '')
        .slice(2)
        .split('.')[0] ?? '';
    const query = location?.searchParams;
    const secrets = {
      accessToken: tokens.accessToken,
      signature: tokens.accessToken.split('.')[2],
      refreshToken: tokens.refreshToken,
      idToken: tokens.idToken,
      cookie: id,
      csrf,
      csrfSecret: session.csrfSecret,
      email: session.user.email,
      name: session.user.name,
      subject: session.user.id,
      sid: session.sid,
      state: query?.get('state'),
      nonce: query?.get('nonce'),
      challenge: query?.get('code_challenge'),
      code: callback.searchParams.get('code'),
      openCookie: open.cookies(world.clientUrl('callback'))[0]?.value,
    };
    for (const [what, secret] of Object.entries(secrets)) {
      expect(secret, what).toBeTruthy();
      expect(dump.includes(secret ?? ''), what).toBe(false);
    }
  });

  it('the log contains no token, cookie or email address', async () => {
    const { browser, csrf, handle } = await world.signIn();
    const { tokens } = await world.stored(handle);
    const log = JSON.stringify(world.handler.log.lines());
    const id = decodeURIComponent(browser.cookie(world.site, cookieName) ?? '').slice(2, 40);
    for (const secret of [tokens.accessToken, tokens.refreshToken, tokens.idToken, csrf, id, 'alice@example.com'])
      expect(log.includes(secret ?? '')).toBe(false);
  });
});
