// Tests how the route that starts a sign-in presents the outcomes of the modules that it calls, which are scripted.
// Tests with an identity provider are in sign-in-flow.test.ts and asked-parameters.test.ts.
import * as oidc from 'openid-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sendRaw } from '../../../test/support/raw-http.ts';
import {
  authPath,
  oidcRegistration,
  type SignInRoutes,
  signInCallback,
  signInTenant,
  startSignInRoutes,
} from '../../../test/support/sign-in-routes.ts';
import { Problem } from '../../service/http/problem.ts';

const unavailable = () => Promise.reject(new Problem('unavailable', 'The store cannot be reached.'));

let world: SignInRoutes;
beforeEach(async () => {
  world = await startSignInRoutes();
});
afterEach(() => world.app.close());

const start = (query: Record<string, string> = {}, headers?: Record<string, string>) =>
  world.visit(`web/${authPath(query)}`, headers);
/** Starts a sign-in without some of the parameters. */
const startWithout = (names: string[], headers?: Record<string, string>) => {
  const url = new URL(authPath({}), 'https://x.example');
  for (const name of names) url.searchParams.delete(name);
  return world.visit(`web/auth${url.search}`, headers);
};
/** Expects that no attempt was begun. */
const expectNothingBegun = ({ setCookies }: { setCookies: string[] }) => {
  expect([setCookies, world.calls.begun, world.calls.authorizations]).toEqual([[], [], []]);
};

describe('a sign-in', () => {
  it('redirects to the identity provider, and keeps its attempt in a cookie of the browser', async () => {
    world.client.idpHint = 'goa';
    const answered = await start({ returnTo: '/here' });
    const [[registration, request] = []] = world.calls.authorizations;
    expect(registration).toBe(oidcRegistration);
    expect(request).toEqual({
      ...{ redirectUri: signInCallback, scope: ['openid', 'email'], idpHint: 'goa', asked: {} },
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      codeVerifier: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(answered).toMatchObject({ status: 302, location: `https://id.example.org/auth?state=${request?.state}` });
    const [cookie = '', ...others] = answered.setCookies;
    expect(others).toEqual([]);
    expect(cookie).toMatch(/^session\.[\w-]{16}=[\w.%-]+; Max-Age=3600; Path=\/token-handler\/clients\/web; /);
    expect(cookie).toMatch(/; HttpOnly; SameSite=Lax$/);
    const attempt = world.options.attemptCookies.find(
      { headers: { cookie: cookie.split(';', 1)[0] } } as never,
      request?.state ?? '',
    );
    expect(attempt).toMatchObject({
      ...{ nonce: request?.nonce, codeVerifier: request?.codeVerifier, begun: world.now },
      signIn: { tenantId: signInTenant.id, clientId: 'web', callbackUrl: signInCallback, returnTo: '/here' },
    });
  });

  it('has no audit event, and HEAD does not start it', async () => {
    await start();
    const [line] = await world.app.requestLines(1);
    expect(line).not.toHaveProperty('audit');
    const head = await fetch(`${world.app.url}/token-handler/v1/clients/web/${authPath({})}`, { method: 'HEAD' });
    expect(head.status).toBe(405);
    expect(world.calls.begun).toHaveLength(1);
  });

  it('checks its rate limit and its scheme first, and stops if one refuses', async () => {
    await start();
    expect(world.calls.guards).toEqual(['notEmbedded', 'signInLimit', 'cookieScheme']);
    world.options.cookieScheme.check = () => Promise.reject(new Problem('invalid-request', 'needs https'));
    expect((await start()).status).toBe(400);
    world.options.signInLimit.check = () => Promise.reject(new Problem('too-many-requests', 'too many'));
    expect((await start()).status).toBe(429);
    expect(world.calls.begun).toHaveLength(1);
  });

  it('keeps no parameters in the cookie if the frontend passes none, and else those for the identity provider', async () => {
    const asked = { prompt: 'login', max_age: '60', acr_values: 'silver', ui_locales: 'fr', login_hint: 'ana' };
    await start({ utm_source: 'mail' });
    await start(asked);
    const about = { tenantId: signInTenant.id, clientId: 'web', callbackUrl: signInCallback };
    expect(world.calls.begun).toStrictEqual([
      { ...about, returnTo: undefined },
      { ...about, returnTo: undefined, asked },
    ]);
    expect(world.calls.authorizations.map(([, { asked: sent }]) => sent)).toEqual([{ prompt: undefined }, asked]);
  });

  it('has the prompt of the request, or else of the client', async () => {
    world.client.prompt = 'select_account';
    await start({ login_hint: 'ana' });
    await start({ prompt: 'none' });
    const sent = world.calls.authorizations.map(([, { asked }]) => asked);
    expect(sent).toEqual([{ prompt: 'select_account', login_hint: 'ana' }, { prompt: 'none' }]);
    expect(world.calls.begun[0]?.asked).toEqual({ login_hint: 'ana' });
  });
});

describe('the tenant of a sign-in', () => {
  it.each(['demo', 'Demo', signInTenant.id])('may be named as %s', async (tenant) => {
    expect((await start({ tenant })).status).toBe(302);
    expect(world.calls.begun[0]?.tenantId).toBe(signInTenant.id);
  });

  it('is that of the header, if a reverse proxy sets one', async () => {
    expect((await start({ tenant: 'nobody' }, { 'X-Tenant': 'demo' })).status).toBe(302);
    expect((await startWithout(['tenant'], { 'X-Tenant': signInTenant.id })).status).toBe(302);
    expect((await start({}, { 'X-Tenant': 'nobody' })).status).toBe(404);
    expect((await start({ tenant: 'nobody' }, { 'X-Other': 'demo' })).status).toBe(404);
  });

  it.each([
    ['is missing', () => startWithout(['tenant'])],
    ['is empty', () => start({ tenant: '' })],
  ])('gets 400 that names the field if it %s', async (_what, request) => {
    const answered = await request();
    expect(answered).toMatchObject({ status: 400, pointer: '/query/tenant', detail: 'is required' });
    expectNothingBegun(answered);
    expect(world.facts).toBeUndefined();
  });

  it('gets 404 if there is no such tenant, and the page then names nothing', async () => {
    const answered = await start({ tenant: 'nobody' });
    expect(answered).toMatchObject({ status: 404, detail: 'There is no such tenant.' });
    expectNothingBegun(answered);
    expect(world.facts).toBeUndefined();
  });
});

describe('a sign-in of a client', () => {
  it('that the tenant does not have gets 404, and the page names the tenant', async () => {
    const answered = await world.visit(`nobody/${authPath({})}`);
    expect(answered.status).toBe(404);
    expectNothingBegun(answered);
    expect(world.facts).toEqual({ tenant: 'Demo' });
  });

  it('whose id is invalid gets 400 that names it', async () => {
    expect(await world.visit(`no%3Asuch/${authPath({})}`)).toMatchObject({ status: 400, pointer: '/params/clientId' });
  });

  it('that is not registered gets 409, and the page names both', async () => {
    world.options.registrations.find = async () => undefined;
    const answered = await start();
    expect(answered).toMatchObject({ status: 409, detail: expect.stringContaining('is not registered') });
    expectNothingBegun(answered);
    const checked = { tenantId: signInTenant.id, clientId: 'web' };
    expect(world.facts).toEqual({ tenant: 'Demo', client: 'Web', checked });
  });

  it('looks its registration up by tenant and client', async () => {
    const asked: unknown[] = [];
    world.options.registrations.find = async (...given): Promise<undefined> => void asked.push(given);
    await start();
    expect(asked).toEqual([[signInTenant.id, 'web']]);
  });
});

describe('a callbackUrl', () => {
  it.each([
    ['is no URL', 'nowhere', 'must be an absolute http or https URL'],
    ['belongs to another client', signInCallback.replace('web', 'other'), 'must end in /clients/web/callback'],
    ['is another page', 'https://evil.example/', 'must end in /clients/web/callback'],
  ])('that %s gets 400 that names it, before the registration is read', async (_what, callbackUrl, detail) => {
    world.options.registrations.find = unavailable;
    const answered = await start({ callbackUrl });
    expect(answered).toMatchObject({ status: 400, pointer: '/query/callbackUrl', detail });
    expectNothingBegun(answered);
  });

  it('is required if the client has no authCallbackUrl', async () => {
    const answered = await startWithout(['callbackUrl']);
    expect(answered).toMatchObject({ status: 400, pointer: '/query/callbackUrl', detail: 'is required' });
    expectNothingBegun(answered);
  });

  it('that is missing is any path of authCallbackUrl, on the host and with the scheme of the request', async () => {
    world.client.authCallbackUrl = 'https://old.example.org/signed-in?x=1';
    expect((await startWithout(['callbackUrl'])).status).toBe(302);
    await startWithout(['callbackUrl'], { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'app.example.org' });
    const begun = world.calls.begun.map(({ callbackUrl }) => callbackUrl);
    expect(begun).toEqual([`${world.app.url}/signed-in`, 'https://app.example.org/signed-in']);
  });

  it('that is missing gets 400 if the host of the request is missing too, or makes no valid URL', async () => {
    world.client.authCallbackUrl = 'https://old.example.org/signed-in';
    const request = 'GET /token-handler/v1/clients/web/auth?tenant=demo HTTP/1.0\r\n\r\n';
    expect(JSON.parse((await sendRaw(world.app.port, request)).body).errors).toEqual([
      { pointer: '/query/callbackUrl', detail: 'is required' },
    ]);
    const answered = await startWithout(['callbackUrl'], { 'X-Forwarded-Host': 'ana@evil.example' });
    expect(answered).toMatchObject({ pointer: '/query/callbackUrl', detail: 'must not contain credentials' });
    expectNothingBegun(answered);
  });
});

describe('an outage during a sign-in', () => {
  it.each<[string, () => void]>([
    ['the tenants cannot be read', () => (world.options.tenants.byName = unavailable)],
    ['the clients cannot be read', () => (world.options.catalog.find = unavailable)],
    ['the registrations cannot be read', () => (world.options.registrations.find = unavailable)],
    ['the identity provider is unavailable', () => (world.options.relyingParty.authorizationUrl = unavailable)],
  ])('gets 503 without a cookie if %s', async (_what, change) => {
    change();
    expect(await start()).toMatchObject({ status: 503, setCookies: [], location: null });
  });

  it.each<[string, number, string, Error]>([
    ['does not respond', 504, 'in time', Object.assign(new oidc.ClientError('slow'), { code: 'OAUTH_TIMEOUT' })],
    ['fails', 502, 'The identity provider failed.', new Error('secret address')],
  ])('gets a status without details if the identity provider %s', async (_what, status, detail, error) => {
    world.options.relyingParty.authorizationUrl = () => Promise.reject(error);
    const answered = await start();
    expect(answered).toMatchObject({ status, detail: expect.stringContaining(detail), setCookies: [] });
  });
});
