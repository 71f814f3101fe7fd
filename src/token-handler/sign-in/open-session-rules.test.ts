// Tests how a session is opened and ended for a browser: its cookies, its record and its tokens. Also tests failures of
// the store, and a logout at the identity provider during the sign-in. Sessions are in memory; express-session is real.
import { SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { createMemorySessions, hour, type MemorySessions, requestWith } from '../../../test/support/memory-sessions.ts';
import { anonymous, route } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Client } from '../clients/client.ts';
import { createProviderLogouts, type ProviderLogouts } from '../logout/provider-logouts.ts';
import { csrfToken } from '../sessions/cookies.ts';
import type { FoundSession } from '../sessions/session.ts';
import { browserSession, endBrowserSession, saveSession } from './browser-session.ts';
import { createSessionOpener, type SignedIn } from './open-session.ts';

let world: MemorySessions;
let logouts: ProviderLogouts;
let signedIn: SignedIn;
let app: ListeningApp;
/** The facts that the route for opening a session adds to its log line and its audit event. */
let noted: { signedIn?: unknown; objectId?: unknown };

const get = (path: string, handle: Parameters<typeof route>[0]['handle'], name = 'formgate_session') =>
  route({
    ...{ method: 'get' as const, path, summary: '', responses: {}, audit: 'session.sign-in' as const },
    guards: [
      anonymous,
      {
        name: 'any',
        check: (...given) => browserSession({ ...world.sessions.cookie, name }, world.sessions.records).check(...given),
      },
    ],
    handle,
  });

beforeAll(async () => {
  const routes = [
    get('/open', async (_input, request, response) => {
      const clock = () => new Date(world.now);
      const open = createSessionOpener({ ...world, providerLogouts: logouts, clock, log: world.log.log });
      await open(signedIn, request, response);
      noted = { signedIn: response.locals.signedIn, objectId: response.locals.audit?.objectId };
      response.json({});
    }),
    get('/read', (_input, { session }, response) => void response.json({ ...session, cookie: undefined })),
    get('/end', async (_input, request, response) => {
      await endBrowserSession(request, response, 'formgate_session');
      response.json({});
    }),
    get('/save-again', async (_input, request, response) => {
      await saveSession(request);
      request.session.save();
      await saveSession(request);
      response.json({});
    }),
    get('/host', (_input, _request, response) => void response.json({}), '__Host-session'),
    get('/cookies', (_input, { headers }, response) => void response.json({ cookie: headers.cookie })),
    get('/slow', async (_input, { sessionStore, sessionID }, response) => {
      // Destroys the session in the middle of the request, as a concurrent logout would do.
      await new Promise((resolve) => sessionStore.destroy(sessionID, resolve));
      response.json({});
    }),
  ];
  app = await startApp(routes, { trustedProxies: ['loopback'] });
});
afterAll(() => app.close());

const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
beforeEach(async () => {
  world = createMemorySessions();
  logouts = createProviderLogouts({ ...world, clock: () => new Date(world.now), log: world.log.log });
  noted = {};
  const idToken = await new SignJWT({ sub: 'ana' }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.alloc(32, 1));
  signedIn = {
    tenant: { id: 'urn:tenant:demo', name: 'Demo', realm: 'demo' },
    client: { id: 'web', core: false } as Client,
    registration: { oidcClientId: 'oidc-web', issuer: null },
    callbackUrl: 'https://app.example.org/token-handler/clients/web/callback',
    redeemed: {
      claims: { sub: 'ana', name: 'Ana Ares', sid: 's1' },
      tokens: { access_token: jwt({ sub: 'ana' }), expires_in: 300, id_token: idToken },
    },
    begun: world.now,
    landing: { attempt: 'attempt 1', url: 'https://app.example.org/' },
  };
});

interface Visit {
  status: number;
  body: Record<string, unknown>;
  /** Set-Cookie lines, keyed by cookie name. */
  cookies: Record<string, string>;
}
async function visit(path: string, cookie?: string, scheme = 'http'): Promise<Visit> {
  const headers = { 'x-forwarded-proto': scheme, ...(cookie !== undefined && { cookie }) };
  const response = await fetch(`${app.url}${path}`, { headers });
  const lines = response.headers.getSetCookie();
  const cookies = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line]));
  return { status: response.status, body: (await response.json()) as Visit['body'], cookies };
}
const pairOf = ({ cookies }: Visit) => (cookies.formgate_session ?? '').split(';', 1)[0] ?? '';
const liveOf = async (cookie: string) => world.sessions.see(requestWith(cookie));

describe('a sign-in', () => {
  it('opens a session of the person, with both cookies', async () => {
    const opened = await visit('/open');
    expect(opened.status).toBe(200);
    expect(opened.cookies.formgate_session).toMatch(
      /^formgate_session=s%3A[\w-]{43}\.[^;]+; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    const live = await liveOf(pairOf(opened));
    const { csrfSecret, ...session } = (live as FoundSession).session;
    expect(session).toEqual({
      ...{ handle: expect.any(String), tenantId: 'urn:tenant:demo', tenantName: 'Demo', realm: 'demo' },
      ...{ clientId: 'web', core: false, oidcClientId: 'oidc-web', issuer: null, sid: 's1' },
      ...{ user: { id: 'ana', name: 'Ana Ares', roles: [] }, site: 'https://app.example.org' },
      ...{ callbackUrl: signedIn.callbackUrl, created: world.now, absoluteExpiry: world.now + 12 * hour },
    });
    expect(csrfSecret).toMatch(/^[\w-]{43}$/);
    expect(await live?.accessToken()).toBe(signedIn.redeemed.tokens.access_token);
    expect(opened.cookies['XSRF-TOKEN']).toBe(
      `XSRF-TOKEN=${csrfToken({ handle: session.handle, csrfSecret })}; Path=/; SameSite=Strict`,
    );
    expect(noted).toEqual({
      signedIn: { tenantId: 'urn:tenant:demo', clientId: 'web', subject: 'ana' },
      objectId: session.handle,
    });
  });

  it('sets Secure for both cookies if the browser uses https', async () => {
    const { cookies } = await visit('/open', undefined, 'https');
    expect(cookies.formgate_session).toMatch(/; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
    expect(cookies['XSRF-TOKEN']).toMatch(/; Path=\/; Secure; SameSite=Strict$/);
  });

  it.each<[string, object, object, string | undefined]>([
    ['of the ID token', { sid: 's1' }, { sid: 's2' }, 's1'],
    ['of the access token, if the ID token has none', {}, { sid: 's2' }, 's2'],
    ['of neither', { sid: '' }, { sid: 7 }, undefined],
  ])('has the session at the identity provider %s', async (_whose, claims, access, sid) => {
    signedIn.redeemed = {
      claims: { sub: 'ana', ...claims },
      tokens: { ...signedIn.redeemed.tokens, access_token: jwt(access) },
    };
    const live = await liveOf(pairOf(await visit('/open')));
    expect(live).toBeDefined();
    expect(live?.session.sid).toBe(sid);
    expect(live?.session && 'sid' in live.session).toBe(sid !== undefined);
  });

  it('gets a new id, and ends the session that the browser had before', async () => {
    const first = pairOf(await visit('/open'));
    const handle = (await liveOf(first))?.session.handle;
    const second = pairOf(await visit('/open', first));
    expect(second).not.toBe(first);
    expect(await liveOf(first)).toBeUndefined();
    const object = { type: 'session', id: handle };
    expect(world.log.lines()).toMatchObject([{ session: handle, audit: { action: 'session.replaced', object } }]);
    expect(await liveOf(second)).toBeDefined();
    expect(await world.sessions.ofUser('urn:tenant:demo', 'ana')).toHaveLength(1);
    expect((await visit('/read', first)).body).toEqual({});
  });

  it('writes its record once', async () => {
    let writes = 0;
    const { set } = world.store.records;
    world.store.records.set = (...given) => {
      writes += 1;
      return set(...given);
    };
    const cookie = pairOf(await visit('/open'));
    expect(writes).toBe(1);
    expect((await visit('/save-again', cookie)).status).toBe(200);
    expect(writes).toBe(2);
  });

  it('succeeds even if the tokens of the session before cannot be removed', async () => {
    const first = pairOf(await visit('/open'));
    world.store.tokens.end = () => Promise.reject(new Error('the store is away'));
    const second = await visit('/open', first);
    expect(second.status).toBe(200);
    expect(await liveOf(pairOf(second))).toBeDefined();
    expect(world.log.lines()).toMatchObject([
      { msg: 'former session not removed', err: { message: 'the store is away' } },
      { audit: { action: 'session.replaced' } },
    ]);
  });

  it('keeps the last five landings of the browser', async () => {
    let cookie: string | undefined;
    for (let nth = 1; nth <= 6; nth += 1) {
      signedIn.landing = { attempt: `attempt ${nth}`, url: '/' };
      cookie = pairOf(await visit('/open', cookie));
      if (nth === 1) expect((await visit('/read', cookie)).body.landings).toEqual([signedIn.landing]);
    }
    const { landings } = (await visit('/read', cookie)).body as { landings: { attempt: string }[] };
    expect(landings.map(({ attempt }) => attempt)).toEqual([2, 3, 4, 5, 6].map((nth) => `attempt ${nth}`));
  });

  it('of a person whom the identity provider has logged out meanwhile opens no session', async () => {
    const end = (changes: object) =>
      logouts.end({
        jti: String(Math.random()),
        tenantId: 'urn:tenant:demo',
        clientId: 'web',
        algorithm: 'ES256',
        ...changes,
      });
    await end({ sid: 's1' });
    const refused = await visit('/open');
    expect([refused.status, refused.cookies]).toEqual([401, {}]);
    expect(await world.sessions.ofUser('urn:tenant:demo', 'ana')).toEqual([]);
    signedIn.begun = world.now + 1;
    expect((await visit('/open')).status).toBe(200);
  });

  it('records the algorithm of its ID token, with which logout tokens must be signed', async () => {
    const kept: unknown[][] = [];
    const { keepAlgorithm } = logouts;
    logouts.keepAlgorithm = (...given) => {
      kept.push([given[0].clientId, given[1]]);
      return keepAlgorithm(...given);
    };
    await visit('/open');
    expect(kept).toEqual([['web', 'HS256']]);
  });

  const away = () => Promise.reject(new Problem('unavailable'));
  it.each<[string, () => void]>([
    ['its record', () => Object.assign(world.store.records, { set: away })],
    ['the algorithm of its ID token', () => Object.assign(world.store.marks, { raise: away })],
    ['its index entries', () => Object.assign(world.store.index, { enter: away })],
    ['its tokens', () => Object.assign(world.store.tokens, { start: away })],
  ])(
    'leaves no cookie, and neither the new session nor the one before, if %s cannot be stored',
    async (_what, fail) => {
      const stored = new Set<string>();
      const { set } = world.store.records;
      world.store.records.set = (key, ...given) => set(stored.add(key) && key, ...given);
      const cookie = pairOf(await visit('/open'));
      fail();
      const failed = await visit('/open', cookie);
      expect([failed.status, failed.cookies]).toEqual([503, {}]);
      expect(await world.sessions.ofUser('urn:tenant:demo', 'ana')).toEqual([]);
      expect(await Promise.all([...stored].map(world.store.records.get))).toEqual([...stored].map(() => null));
      expect(await world.store.tokens.count(world.now)).toBe(0);
    },
  );

  it('fails with the first error if the store also fails to remove the session', async () => {
    world.store.tokens.start = () => Promise.reject(new Problem('unavailable'));
    world.store.tokens.end = () => Promise.reject(new Error('the store is away'));
    const failed = await visit('/open');
    expect([failed.status, failed.cookies]).toEqual([503, {}]);
  });
});

describe('a browser', () => {
  it('without a session gets no cookie', async () => {
    expect(await visit('/read')).toEqual({ status: 200, body: {}, cookies: {} });
  });

  it('keeps its cookie while it only reads', async () => {
    const cookie = pairOf(await visit('/open'));
    const read = await visit('/read', cookie);
    expect(read.body.signedIn).toMatchObject({ clientId: 'web' });
    expect(read.cookies).toEqual({});
  });

  it('has its own session although another host of the domain has set cookies of the same name', async () => {
    const cookie = pairOf(await visit('/open'));
    for (const header of [`formgate_session=tossed; ${cookie}`, `a=b; ${cookie}; formgate_session=tossed; c=d`])
      expect((await visit('/read', header)).body.signedIn).toMatchObject({ clientId: 'web' });
    expect((await visit('/read', 'formgate_session=tossed')).body).toEqual({});
    const all = `a=b; ${cookie}; formgate_session=tossed; c=d`;
    expect((await visit('/cookies', all)).body.cookie).toBe(`a=b; ${cookie}; c=d`);
  });

  it('stays logged out if a request that reads its session ends after the logout', async () => {
    const cookie = pairOf(await visit('/open'));
    await visit('/slow', cookie);
    expect((await visit('/read', cookie)).body).toEqual({});
  });

  it('has no session if several cookies are signed', async () => {
    const [one, other] = [pairOf(await visit('/open')), pairOf(await visit('/open'))];
    expect((await visit('/read', `${one}; ${other}`)).body).toEqual({});
  });

  it('loses record and cookie at a logout', async () => {
    const cookie = pairOf(await visit('/open'));
    const ended = await visit('/end', cookie);
    expect(ended.cookies.formgate_session).toMatch(
      /^formgate_session=; Path=\/; Expires=Thu, 01 Jan 1970 .*; HttpOnly; SameSite=Lax$/,
    );
    expect(await liveOf(cookie)).toBeUndefined();
    expect((await visit('/read', cookie)).body).toEqual({});
  });

  it('keeps its cookie while the store fails, and gets 503', async () => {
    const cookie = pairOf(await visit('/open'));
    const { get: read, del } = world.store.records;
    world.store.records.get = () => Promise.reject(new Problem('unavailable'));
    expect(await visit('/read', cookie)).toMatchObject({ status: 503, cookies: {} });
    world.store.records.get = read;
    world.store.records.del = () => Promise.reject(new Problem('unavailable'));
    expect(await visit('/end', cookie)).toMatchObject({ status: 503, cookies: {} });
    world.store.records.del = del;
    expect((await visit('/read', cookie)).body.signedIn).toBeDefined();
  });

  it('that calls by http is told that a cookie with the prefix __Host- requires https', async () => {
    expect((await visit('/host')).status).toBe(400);
  });

  it('gets the problem that a store reports, and 503 if what it reports is no error', async () => {
    const cookie = pairOf(await visit('/open'));
    world.sessions.records.get = (_id, done) => done(new Problem('internal'));
    expect((await visit('/read', cookie)).status).toBe(500);
    world.sessions.records.get = (_id, done) => done('a text');
    expect((await visit('/read', cookie)).status).toBe(503);
  });
});

it('the guard has a name', () => {
  expect(browserSession(world.sessions.cookie, world.sessions.records).name).toBe('browserSession');
});
