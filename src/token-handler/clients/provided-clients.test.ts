// Tests clients that an administrator provides, at the platform's own identity provider and at a mapped identity
// provider (TENANT_ISSUERS). The mapped identity provider has no dynamic registration, no end-session endpoint and no
// back-channel logout.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PlainProvider, startPlainProvider } from '../../../test/support/plain-provider.ts';
import { call } from '../../../test/support/platform.ts';
import { createSiteBrowser, type SiteBrowser } from '../../../test/support/site-browser.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';
import { startUpstream, type Upstream } from '../../../test/support/upstream.ts';

const secret = 'a-secret:with/special+characters %41';

let provider: PlainProvider;
let upstream: Upstream;
let handler: TestTokenHandler;
/** Token of a user of the realm `core`. Users of this realm administer tenants that use another identity provider. */
let token: string;
let callbackUrl: string;

beforeAll(async () => {
  provider = await startPlainProvider({ authMethods: ['client_secret_post'], accessTokenLifetime: 2 });
  upstream = await startUpstream();
  handler = await startTestTokenHandler({
    env: { TENANT_ISSUERS: `other=${provider.issuer}` },
    directory: { DIR_PLATFORM_FORM_SERVICE: upstream.url },
  });
  callbackUrl = `${handler.url}/token-handler/clients/web/callback`;
  await provider.setClients([client('town-web')]);
  token = await handler.adminToken('core');
  const web = { redirectUris: [callbackUrl], targets: ['form-service'], scope: 'profile', keycloakLogout: true };
  await handler.configure({ web }, { tenant: handler.platform.otherTenant });
  await handler.configure({ 'permits-web': { redirectUris: ['https://permits.example.org/cb'] } });
});
afterAll(async () => {
  await handler.close();
  await upstream.close();
  await provider.close();
});

const client = (id: string) => ({
  client_id: id,
  client_secret: secret,
  redirect_uris: [callbackUrl],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code' as const],
  token_endpoint_auth_method: 'client_secret_post' as const,
});

const tenantQuery = () => `?tenantId=${encodeURIComponent(handler.platform.otherTenant.id)}`;
const api = (path: string, method = 'GET', body?: unknown) =>
  handler.api(`${path}${tenantQuery()}`, { method, token, body });
const register = (body: unknown) => api('/clients/web', 'POST', body);
const shown = async () => ((await api('/clients')).body as { registered: boolean; registration: unknown }[])[0];
const pointers = (body: unknown) => (body as { errors?: { pointer: string }[] }).errors?.map(({ pointer }) => pointer);

async function signIn(browser: SiteBrowser) {
  const start = new URL(`${handler.url}/token-handler/clients/web/auth`);
  start.search = new URLSearchParams({ tenant: 'other-town', callbackUrl }).toString();
  const isCallback = (url: URL) => url.pathname.endsWith('/callback');
  const { location, status, text } = await browser.follow(await browser.request(start), isCallback);
  if (!location) throw new Error(`no callback: ${status} ${text}`);
  return browser.request(location);
}

describe('a client of another identity provider', () => {
  it('is not registered with a registration token, because there is no dynamic registration', async () => {
    const answer = await register({ registrationToken: 'x' });
    expect([answer.status, pointers(answer.body)]).toEqual([400, ['/registrationToken']]);
    expect(answer.text).toContain('no dynamic registration');
    expect(await handler.rows('SELECT FROM registration_attempts')).toEqual([]);
  });

  it.each([
    ['a wrong secret', { clientId: 'town-web', clientSecret: 'canary-wrong' }, '/clientSecret'],
    ['an unknown client', { clientId: 'nothing', clientSecret: secret }, '/clientSecret'],
    ['no secret', { clientId: 'town-web' }, '/clientSecret'],
    ['no id', { clientSecret: secret }, '/clientId'],
    ['an empty secret', { clientId: 'town-web', clientSecret: '' }, '/clientSecret'],
    ['an issuer', { clientId: 'town-web', clientSecret: secret, issuer: 'https://evil.example' }, '/issuer'],
    ['both forms', { clientId: 'town-web', clientSecret: secret, registrationToken: 'x' }, '/registrationToken'],
    ['half of both forms', { registrationToken: 'x', clientSecret: secret }, '/registrationToken'],
    [
      'a redirect URI',
      { clientId: 'town-web', clientSecret: secret, authCallbackUrl: 'https://a.example/' },
      '/authCallbackUrl',
    ],
  ])('is refused with 400 and a pointer if the body has %s, and nothing is stored', async (_, body, pointer) => {
    const answer = await register(body);
    expect(answer.status).toBe(400);
    expect(pointers(answer.body)?.[0]).toBe(pointer);
    expect(await handler.rows('SELECT FROM client_registrations')).toEqual([]);
    expect(answer.text).not.toContain(secret);
    expect(handler.log.text()).not.toContain('canary-wrong');
  });

  it('is stored after the token endpoint has accepted its credentials, which appear nowhere in clear', async () => {
    expect(await register({ clientId: 'town-web', clientSecret: secret })).toMatchObject({
      status: 200,
      body: { registered: true },
    });
    expect(await shown()).toMatchObject({
      registered: true,
      registration: { clientId: 'town-web', management: 'provided', redirectUris: [] },
    });
    const tables = ['client_registrations', 'client_events', 'registration_attempts', 'client_leftovers'];
    const rows = await Promise.all(tables.map((table) => handler.rows(`SELECT * FROM ${table}`)));
    for (const text of [JSON.stringify(rows), handler.log.text()]) expect(text).not.toContain(secret);
  });

  it('is verified by a request without side effects: a code that does not exist', async () => {
    const before = provider.calls.length;
    await register({ clientId: 'town-web', clientSecret: secret });
    expect(provider.calls.slice(before)).toEqual(['GET /.well-known/openid-configuration', 'POST /token']);
  });

  it('signs people in, and the log says once which features are missing', async () => {
    const landed = await signIn(createSiteBrowser());
    expect([landed.status, landed.location?.pathname]).toEqual([302, '/']);
    await signIn(createSiteBrowser());
    for (const feature of ['end-session endpoint', 'back-channel logout', 'dynamic registration']) {
      const lines = handler.log
        .lines()
        .filter(({ msg }) => String(msg).startsWith(`identity provider has no ${feature}`));
      expect(lines).toMatchObject([{ level: 'warn', realm: 'other' }]);
    }
  });

  it('has sessions whose tokens are refreshed and reach the upstream', async () => {
    const browser = createSiteBrowser();
    await signIn(browser);
    const send = async () => {
      const { status } = await browser.request(`${handler.url}/token-handler/targets/form-service/x`);
      return status === 200 ? String(upstream.last().headers.authorization) : `status ${status}`;
    };
    const first = await send();
    expect(first).toMatch(/^Bearer /);
    await expect.poll(send).not.toBe(first);
    expect(await send()).toMatch(/^Bearer /);
  });

  it('ends only the session of the token handler at a logout, although keycloakLogout is on', async () => {
    const browser = createSiteBrowser();
    await signIn(browser);
    const { status, location } = await browser.request(`${handler.url}/token-handler/clients/web/logout`);
    expect([status, location?.href]).toEqual([302, `${handler.url}/`]);
    expect((await browser.request(`${handler.url}/token-handler/sessions`)).status).toBe(401);
  });

  it('is never changed: an update responds with 409 and says where to change it', async () => {
    const before = provider.calls.length;
    const answer = await api('/clients/web', 'PUT', { redirectUris: [callbackUrl] });
    expect(answer).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:conflict' } });
    expect(answer.text).toContain('only changed at the identity provider');
    expect(provider.calls.slice(before)).toEqual([]);
  });

  it('is never deleted: another client replaces it, and nothing is left to do', async () => {
    await provider.setClients([client('town-web'), client('town-web-2')]);
    expect((await register({ clientId: 'town-web-2', clientSecret: secret })).status).toBe(200);
    expect(await shown()).toMatchObject({ registration: { clientId: 'town-web-2' } });
    expect(await handler.rows('SELECT FROM client_deletions')).toEqual([]);
    expect((await api('/clients/web/leftovers')).body).toEqual([]);
    expect(provider.calls.filter((line) => !/^(GET|POST) /.test(line))).toEqual([]);
    expect((await signIn(createSiteBrowser())).status).toBe(302);
  });

  it('does not count as registered if the operator maps another issuer, so that its secret is sent nowhere else', async () => {
    const replica = await handler.startReplica({ env: { TENANT_ISSUERS: '' } });
    const url = `${replica.url}/token-handler/v1/clients${tenantQuery()}`;
    expect((await call(url, { token })).body).toMatchObject([{ id: 'web', registered: false, registration: null }]);
    await replica.close();
  });

  it('is refused if the discovery document names another issuer, even if only a slash differs', async () => {
    const replica = await handler.startReplica({ env: { TENANT_ISSUERS: `other=${provider.issuer}/` } });
    const url = `${replica.url}/token-handler/v1/clients/web${tenantQuery()}`;
    const body = { clientId: 'town-web', clientSecret: secret };
    expect((await call(url, { method: 'POST', token, body })).status).toBe(502);
    await replica.close();
  });

  it('belongs to a tenant whose tokens from the platform’s identity provider are no longer accepted', async () => {
    const own = await handler.adminToken('other');
    expect((await handler.api('/clients', { token: own })).status).toBe(401);
  });
});

it('a client whose identity provider issues no management token works, cannot be updated, and is listed when it is replaced', async () => {
  const plain = await startPlainProvider({
    ...{ authMethods: ['client_secret_basic'], accessTokenLifetime: 300 },
    registrationToken: 'plain-registration-token',
  });
  const replica = await handler.startReplica({ env: { TENANT_ISSUERS: `other=${plain.issuer}` } });
  const ask = (path: string, method = 'GET', body?: unknown) =>
    call(`${replica.url}/token-handler/v1${path}${tenantQuery()}`, { method, token, body });
  const registration = { registrationToken: 'plain-registration-token' };
  expect(await ask('/clients/web', 'POST', registration)).toMatchObject({ status: 200 });
  const list = (await ask('/clients')).body as { registration: { clientId: string } }[];
  expect(list).toMatchObject([{ registered: true, registration: { management: 'unsupported' } }]);
  expect(handler.log.text()).toContain('identity provider issued no registration access token (RFC 7592)');
  expect(await ask('/clients/web', 'PUT', { redirectUris: [] })).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining('RFC 7592') },
  });
  expect(await ask('/clients/web', 'POST', registration)).toMatchObject({ status: 200 });
  const clientId = list[0]?.registration.clientId;
  expect((await ask('/clients/web/leftovers')).body).toMatchObject([{ clientId, reason: 'no-token' }]);
  await replica.close();
  await plain.close();
});

describe('a client of the platform’s identity provider', () => {
  const body = { clientId: 'provided-web', clientSecret: 'provided-secret-of-tests' };
  const send = async (registration: unknown) =>
    handler.api('/clients/permits-web', { method: 'POST', token: await handler.adminToken(), body: registration });
  const works = async () => (await send(body)).status === 200;
  const registered = () =>
    handler.rows("SELECT oidc_client_id, management FROM client_registrations WHERE client_id = 'permits-web'");

  beforeAll(() =>
    handler.platform.access.addClient('demo', {
      clientId: body.clientId,
      secret: body.clientSecret,
      grants: ['authorization_code', 'refresh_token'],
      redirectUris: ['https://permits.example.org/cb'],
    }),
  );

  it('is verified too, and replaces a registered client, which is deleted', async () => {
    expect((await handler.register('permits-web')).status).toBe(200);
    expect((await send({ ...body, clientSecret: 'wrong' })).status).toBe(400);
    expect(await registered()).toMatchObject([{ management: 'kept' }]);
    expect((await send(body)).status).toBe(200);
    expect(await registered()).toEqual([{ oidc_client_id: body.clientId, management: 'provided' }]);
    await expect.poll(() => handler.rows('SELECT FROM client_deletions')).toEqual([]);
  });

  it('is not deleted when a registered client replaces it', async () => {
    expect((await send(body)).status).toBe(200);
    expect((await handler.register('permits-web')).status).toBe(200);
    expect(await registered()).toMatchObject([{ management: 'kept' }]);
    expect(await handler.rows('SELECT FROM client_deletions')).toEqual([]);
    expect(await works()).toBe(true);
  });

  it('is not deleted even if the token handler registered it earlier', async () => {
    expect((await handler.register('permits-web')).status).toBe(200);
    const [row] = await handler.rows<{ oidc_client_id: string }>(
      "SELECT oidc_client_id FROM client_registrations WHERE client_id = 'permits-web'",
    );
    await handler.rows(
      `INSERT INTO client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token,
         registration_client_uri, created, not_before)
       SELECT tenant_id, client_id, realm, $1, registration_access_token, registration_client_uri, now(), 'infinity'
       FROM client_registrations WHERE oidc_client_id = $2`,
      [body.clientId, row?.oidc_client_id],
    );
    expect(await works()).toBe(true);
    const left = () => handler.rows('SELECT oidc_client_id FROM client_deletions');
    await expect.poll(left).toEqual([]);
    expect(await works()).toBe(true);
  });
});
