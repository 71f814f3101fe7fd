// Tests back-channel logout with tokens of a real identity provider and with forged tokens. Tests each rule of OpenID
// Connect Back-Channel Logout 1.0, section 2.6, with both session stores.

import { randomUUID } from 'node:crypto';
import { decodeJwt, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../../dev/ports.ts';
import { confirmLogout } from '../../../test/support/access-pages.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { cookieName, type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';
import { startTokenDoor, type TokenDoor } from '../../../test/support/token-door.ts';

const eventName = 'http://schemas.openid.net/event/backchannel-logout';
/** Removes the claims that access tokens have but logout tokens do not have. */
const unsaid: Record<string, undefined> = { azp: undefined, sub: undefined };
let platform: TestPlatform;
beforeAll(async () => {
  platform = await startTestPlatform();
});
afterAll(() => platform.close());

describe('a sign-in at one pod and a logout of the person at another', () => {
  let world: SessionWorld;
  let door: TokenDoor;
  beforeAll(async () => {
    door = await startTokenDoor(platform.access.url);
    world = await startSessionWorld({ store: 'redis', platform, accessUrl: door.url });
  });
  afterAll(async () => {
    await world.close();
    await door.close();
  });

  /** Returns a function that sends a logout for `sub` to a pod whose clock differs by `skew` milliseconds. */
  async function logoutAt(skew: number) {
    const pod = await world.handler.startReplica({ clock: () => new Date(Date.now() + skew) });
    onTestFinished(() => pod.close());
    const [row] = await world.handler.rows<{ oidc_client_id: string }>(
      'SELECT oidc_client_id FROM client_registrations',
    );
    return async (sub: unknown) => {
      const claims = { typ: 'Logout', aud: row?.oidc_client_id, events: { [eventName]: {} }, ...unsaid, sub };
      const token = await platform.access.foreignToken(claims as JWTPayload);
      const url = `${pod.url}/token-handler/v1/clients/web/backchannel-logout`;
      const { status } = await fetch(url, { method: 'POST', body: new URLSearchParams({ logout_token: token }) });
      expect(status).toBe(200);
    };
  }
  const subjectOf = (answer: string) => decodeJwt(JSON.parse(answer).id_token).sub;

  it('opens no session if the person is logged out during the sign-in, although the clock of that pod is behind', async () => {
    const logOut = await logoutAt(-4_000);
    const browser = createSiteBrowser();
    const callback = await world.toCallback(browser);
    door.afterCodes((answer) => logOut(subjectOf(answer)));
    expect((await browser.request(callback)).status).toBe(401);
    expect((await world.sessions(browser)).status).toBe(401);
  });

  it('opens a session right after the logout, although the clock of that pod is ahead', async () => {
    const logOut = await logoutAt(30_000);
    let sub: unknown;
    door.afterCodes(async (answer) => {
      sub = subjectOf(answer);
    });
    await world.signIn();
    await logOut(sub);
    const { browser } = await world.signIn();
    expect((await world.sessions(browser)).status).toBe(200);
  });
});

describe.each(['redis', 'memory'] as const)('back-channel logout with sessions in %s', (store) => {
  let world: SessionWorld;
  let oidcClientId: string;
  let door: TokenDoor;
  /** The claims of the ID token of the last sign-in. */
  let idToken: JWTPayload;
  const remember = async (answer: string) => {
    const { id_token: token = '' }: { id_token?: string } = JSON.parse(answer);
    idToken = decodeJwt(token);
  };
  beforeAll(async () => {
    const port = await findFreePort();
    const env = { PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}` };
    door = await startTokenDoor(platform.access.url);
    door.afterCodes(remember);
    world = await startSessionWorld({ store, platform, accessUrl: door.url, env });
    const callback = (id: string) => `${world.site}/token-handler/clients/${id}/callback`;
    const clients = {
      web: { redirectUris: [callback('web')] },
      through: { redirectUris: [callback('through')], keycloakLogout: true },
    };
    await world.handler.configure(clients);
    await world.handler.configure({ web: clients.web }, { tenant: platform.otherTenant });
    await world.handler.register('through');
    await world.handler.register('web', { realm: 'other' });
    oidcClientId = await oidcId('web');
  });
  afterAll(async () => {
    await world.close();
    await door.close();
  });

  async function oidcId(clientId: string, tenantId = platform.tenant.id): Promise<string> {
    const sql = 'SELECT oidc_client_id FROM client_registrations WHERE tenant_id = $1 AND client_id = $2';
    const [row] = await world.handler.rows<{ oidc_client_id: string }>(sql, [tenantId, clientId]);
    return row?.oidc_client_id ?? '';
  }
  const signIn = async (start?: string) => {
    const { browser } = await world.signIn(createSiteBrowser(), start === undefined ? {} : { start });
    const isAlive = async () => (await world.sessions(browser)).status === 200;
    // `sub` and `sid` are the subject and the session id at the identity provider.
    return { isAlive, sub: String(idToken.sub), sid: String(idToken.sid) };
  };
  const logoutToken = (claims: Record<string, unknown>, options = {}) =>
    platform.access.foreignToken(
      { typ: 'Logout', aud: oidcClientId, events: { [eventName]: {} }, ...unsaid, ...claims } as JWTPayload,
      options,
    );
  const send = (
    token: string,
    clientId = 'web',
    body: string | URLSearchParams = new URLSearchParams({ logout_token: token }),
  ) => fetch(`${world.site}/token-handler/v1/clients/${clientId}/backchannel-logout`, { method: 'POST', body });

  it('by the identity provider ends the sessions of all clients of the person’s session there', async () => {
    const browser = createSiteBrowser();
    const two = await world.signIn(browser);
    // The two browsers share the session at the identity provider, but each has its own session at the token handler.
    const there = createSiteBrowser();
    there.setCookie(world.site, cookieName, browser.cookie(world.site, cookieName));
    browser.setCookie(world.site, cookieName, undefined);
    const one = await world.signIn(browser, { start: world.authUrl({}, { clientId: 'through' }) });
    const { location } = await browser.request(world.clientUrl('logout', {}, { clientId: 'through' }));
    expect((await world.sessions(there)).status).toBe(200);
    await confirmLogout(browser, location);
    await expect.poll(async () => (await world.sessions(there)).status).toBe(401);
    expect(one.handle).not.toBe(two.handle);
  });

  it('by sid ends that session only', async () => {
    const [one, two] = [await signIn(), await signIn()];
    const answer = await send(await logoutToken({ sid: one.sid }));
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect([await one.isAlive(), await two.isAlive()]).toEqual([false, true]);
  });

  it('by sub ends all sessions of the person with that client, and no others', async () => {
    const [one, two] = [await signIn(), await signIn()];
    const through = await signIn(world.authUrl({}, { clientId: 'through' }));
    expect((await send(await logoutToken({ sub: one.sub }))).status).toBe(200);
    expect([await one.isAlive(), await two.isAlive(), await through.isAlive()]).toEqual([false, false, true]);
  });

  it('by sid and sub ends that session only, if both match', async () => {
    const [one, two] = [await signIn(), await signIn()];
    const { sid, sub } = one;
    expect((await send(await logoutToken({ sid, sub: 'somebody else' }))).status).toBe(200);
    expect(await one.isAlive()).toBe(true);
    expect((await send(await logoutToken({ sid, sub }))).status).toBe(200);
    expect([await one.isAlive(), await two.isAlive()]).toEqual([false, true]);
  });

  it('for another tenant with the same sid or sub ends no session', async () => {
    const one = await signIn();
    const { sid, sub } = one;
    const aud = await oidcId('web', platform.otherTenant.id);
    expect((await send(await logoutToken({ sid, sub, aud }, { realm: 'other' }))).status).toBe(200);
    expect((await send(await logoutToken({ sub, aud }, { realm: 'other' }))).status).toBe(200);
    expect(await one.isAlive()).toBe(true);
  });

  it('for another client with the same sub does not end sessions of this one', async () => {
    const one = await signIn();
    const aud = await oidcId('through');
    expect((await send(await logoutToken({ sub: one.sub, aud }), 'through')).status).toBe(200);
    expect(await one.isAlive()).toBe(true);
  });

  it('accepts a jti once', async () => {
    const { sub } = await signIn();
    const token = await logoutToken({ sub });
    expect((await send(token)).status).toBe(200);
    const later = await signIn();
    expect((await send(token)).status).toBe(400);
    expect(await later.isAlive()).toBe(true);
  });

  it('responds with 200 if there is no such session', async () => {
    expect((await send(await logoutToken({ sid: randomUUID() }))).status).toBe(200);
  });

  describe('responds with 400 and ends no session for a token', () => {
    /** The session that all forged tokens name. */
    let one: Awaited<ReturnType<typeof signIn>>;
    beforeAll(async () => {
      one = await signIn();
    });
    const refused = async (token: string, clientId = 'web') => {
      const answer = await send(token, clientId);
      expect([answer.status, (await answer.json()) as unknown]).toMatchObject([400, { error: 'invalid_request' }]);
      expect(await one.isAlive()).toBe(true);
    };

    it('with an issuer of no tenant', async () => {
      await refused(await logoutToken({ sub: one.sub, iss: 'https://evil.example/realms/demo' }));
      await refused(await logoutToken({ sub: one.sub, iss: `${platform.access.issuer('demo')}/` }));
      await refused(await logoutToken({ sub: one.sub }, { realm: 'core' }));
    });

    it('signed by another realm, with an unpublished key, with a shared secret, or not at all', async () => {
      await refused(await logoutToken({ sub: one.sub, iss: platform.access.issuer('demo') }, { realm: 'other' }));
      for (const key of ['unknown', 'hmac', 'none']) await refused(await logoutToken({ sub: one.sub }, { key }));
    });

    it('with another audience than the tenant’s registered client', async () => {
      for (const aud of ['somebody', undefined, await oidcId('web', platform.otherTenant.id)])
        await refused(await logoutToken({ sub: one.sub, aud }));
      await refused(await logoutToken({ sub: one.sub }), 'through');
    });

    it('without the logout event', async () => {
      const wrong = [
        undefined,
        {},
        { [eventName]: 'x' },
        { [eventName]: null },
        { [eventName]: [] },
        { other: {} },
        'x',
      ];
      for (const events of wrong) await refused(await logoutToken({ sub: one.sub, events }));
    });

    it('with a nonce, like an ID token', async () => {
      await refused(await logoutToken({ sub: one.sub, nonce: 'x' }));
    });

    it('with neither sid nor sub', async () => {
      await refused(await logoutToken({}));
    });

    it('without jti, iat or exp, expired, or too old', async () => {
      for (const claim of ['jti', 'iat', 'exp']) await refused(await logoutToken({ sub: one.sub, [claim]: undefined }));
      const now = Math.floor(Date.now() / 1_000);
      await refused(await logoutToken({ sub: one.sub, exp: now - 60 }));
      await refused(await logoutToken({ sub: one.sub, iat: now - 3_600 }));
      await refused(await logoutToken({ sub: one.sub, iat: now + 3_600 }));
    });

    it('that is malformed, missing, repeated or outside a form', async () => {
      for (const token of ['', 'nonsense', 'a.b.c']) await refused(token);
      const token = await logoutToken({ sub: one.sub });
      for (const body of [
        new URLSearchParams(),
        new URLSearchParams([
          ['logout_token', token],
          ['logout_token', token],
        ]),
      ])
        expect((await send('', 'web', body)).status).toBe(400);
      expect((await send('', 'web', JSON.stringify({ logout_token: token }))).status).toBe(400);
    });

    it('for a client that is not registered', async () => {
      await refused(await logoutToken({ sub: one.sub }), 'nothing');
    });
  });

  it('prevents the session of a sign-in that is about to finish', async () => {
    const { sub } = await signIn();
    const browser = createSiteBrowser();
    const callback = await world.toCallback(browser);
    door.afterCodes(async () => void (await send(await logoutToken({ sub }))));
    expect((await browser.request(callback)).status).toBe(401);
    door.afterCodes(remember);
    expect((await world.sessions(browser)).status).toBe(401);
    expect(await (await signIn()).isAlive()).toBe(true);
  });

  describe('with a limit of sign-ins', () => {
    const start = async (limit: number) => {
      const limited = await startSessionWorld({ store, platform, env: { SIGN_IN_LIMIT: String(limit) } });
      onTestFinished(() => limited.close());
      await roomInWindow(300_000, 20_000);
      const sql = 'SELECT oidc_client_id FROM client_registrations';
      const [row] = await limited.handler.rows<{ oidc_client_id: string }>(sql);
      const url = `${limited.site}/token-handler/v1/clients/web/backchannel-logout`;
      const post = (token: string) =>
        fetch(url, { method: 'POST', body: new URLSearchParams({ logout_token: token }) });
      const valid = () => logoutToken({ sid: randomUUID(), aud: row?.oidc_client_id });
      return { post, logOut: async () => (await post(await valid())).status };
    };

    it('refuses further invalid tokens of an address, but ends sessions for valid ones', async () => {
      const { post, logOut } = await start(3);
      const statuses: number[] = [];
      for (let call = 0; call < 4; call += 1) {
        const answer = await post('x');
        statuses.push(answer.status);
        if (answer.status === 429) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      }
      expect(statuses).toEqual([400, 400, 400, 429]);
      for (let call = 0; call < 4; call += 1) expect(await logOut()).toBe(200);
    });

    it('ends the sessions of a hundred times as many logouts, for each tenant', async () => {
      const { post, logOut } = await start(1);
      for (let call = 0; call < 100; call += 1) expect(await logOut()).toBe(200);
      expect(await logOut()).toBe(429);
      // The other tenant has not registered the client, so its valid tokens get 400.
      const token = () => logoutToken({ sid: randomUUID() }, { realm: 'other' });
      for (let call = 0; call < 2; call += 1) expect((await post(await token())).status).toBe(400);
    });
  });
});
