// Tests the endpoints for clients, with a real identity provider, configuration service and Postgres.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { call, roleToken } from '../../../test/support/platform.ts';
import {
  registrationToken,
  startTestTokenHandler,
  type TestTokenHandler,
} from '../../../test/support/token-handler.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { openRegistration, registrationColumns, type StoredRegistration } from './registration.ts';

const callback = 'https://permits.example.org/token-handler/clients/permits-web/callback';
const other = 'https://permits.example.org/token-handler/clients/permits-web/other';
const permits = { redirectUris: [callback], targets: [{ id: 'forms', upstream: 'urn:example:platform:form-service' }] };

const tenantKey = (urn: string) => urn.slice(urn.lastIndexOf('/') + 1);

interface Shown {
  id: string;
  core: boolean;
  registered: boolean;
  registration: { clientId: string; registeredAt: string; redirectUris: string[] } | null;
}
interface ProblemBody {
  type: string;
  detail: string;
  errors?: { pointer: string; detail: string }[];
}

let handler: TestTokenHandler;
let token: string;
beforeAll(async () => {
  handler = await startTestTokenHandler({ env: { PUBLIC_URL: 'http://127.0.0.1:1' } });
  token = await handler.adminToken();
  await keepEvents();
});
afterAll(() => handler.close());

const list = async (query = '', bearer = token) =>
  (await handler.api(`/clients${query}`, { token: bearer })).body as Shown[];
const shown = async (id: string) => (await list()).find((client) => client.id === id);
const update = (id: string, body: unknown, bearer = token) =>
  handler.api(`/clients/${encodeURIComponent(id)}`, { method: 'PUT', token: bearer, body });
const register = (id: string, body: unknown, bearer = token) =>
  handler.api(`/clients/${encodeURIComponent(id)}`, { method: 'POST', token: bearer, body });

/** Reads a client at the identity provider. Uses the registration access token, which only the token handler has. */
async function atProvider(clientId: string) {
  const realm = handler.platform.access.issuer('demo');
  const { oidcClientId, registrationAccessToken: management } = await stored(clientId);
  const answer = await call(`${realm}/clients-registrations/openid-connect/${oidcClientId}`, { token: management });
  return { ...answer, metadata: answer.body as Record<string, unknown> };
}

async function stored(clientId: string): Promise<StoredRegistration> {
  const sql = `SELECT ${registrationColumns} FROM client_registrations WHERE client_id = $1`;
  const [row] = await handler.rows<StoredRegistration>(sql, [clientId]);
  if (!row) throw new Error(`${clientId} is not registered`);
  return openRegistration(createKeyRing(handler.config.KEY_RING), row);
}

/**
 * True if the client can authenticate. The status is then 400, because the refresh token is invalid. If the client
 * cannot authenticate, the status is 401.
 */
async function works({ oidcClientId, clientSecret }: StoredRegistration) {
  const answer = await fetch(`${handler.platform.access.issuer('demo')}/protocol/openid-connect/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${oidcClientId}:${clientSecret}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'nonsense' }),
  });
  return answer.status === 400;
}

describe('GET /clients', () => {
  beforeAll(async () => {
    await handler.configure({ 'core-app': { description: 'Of core' }, both: { name: 'Core wins' } }, { core: true });
    await handler.configure({ 'permits-web': permits, both: { name: 'Of the tenant' } });
  });

  it('lists the clients of the tenant and of core, each with exactly the documented fields', async () => {
    expect(await list()).toEqual([
      {
        id: 'both',
        name: 'Core wins',
        description: null,
        redirectUris: [],
        targets: [],
        keycloakLogout: false,
        core: true,
        registered: false,
        registration: null,
      },
      {
        id: 'core-app',
        name: 'core-app',
        description: 'Of core',
        redirectUris: [],
        targets: [],
        keycloakLogout: false,
        core: true,
        registered: false,
        registration: null,
      },
      {
        id: 'permits-web',
        name: 'permits-web',
        description: null,
        ...permits,
        keycloakLogout: false,
        core: false,
        registered: false,
        registration: null,
      },
    ]);
  });

  it('lists only core clients with core=true', async () => {
    expect((await list('?core=true')).map(({ id }) => id)).toEqual(['both', 'core-app']);
    expect((await list('?core=false')).length).toBe(3);
  });

  it('responds with 400 to any other value of core', async () => {
    const answer = await handler.api('/clients?core=yes', { token });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/core' }] } });
  });

  it('shows whether a client is registered, and no secret or token', async () => {
    await handler.register('permits-web');
    const client = await shown('permits-web');
    expect(client).toMatchObject({ registered: true, registration: { redirectUris: [callback] } });
    const { oidcClientId, clientSecret, registrationAccessToken: management } = await stored('permits-web');
    expect(client?.registration?.clientId).toBe(oidcClientId);
    expect(Date.parse(client?.registration?.registeredAt ?? '')).toBeGreaterThan(Date.now() - 60_000);
    const { text } = await handler.api('/clients', { token });
    const sql = 'SELECT client_secret, registration_access_token FROM client_registrations';
    const sealed = (await handler.rows<object>(sql)).flatMap((row) => Object.values(row));
    for (const secret of [clientSecret, management, ...sealed]) expect(text).not.toContain(secret);
  });

  it('shows another tenant its own clients and registrations, and the same core clients', async () => {
    const bearer = await handler.adminToken('other');
    await handler.configure({ 'other-web': {} }, { tenant: handler.platform.otherTenant });
    const clients = await list('', bearer);
    expect(clients.map(({ id }) => id)).toEqual(['both', 'core-app', 'other-web']);
    expect(clients.filter(({ registered }) => registered)).toEqual([]);
  });

  it('lists to a core user the clients of the tenant in tenantId, and responds with 400 without it', async () => {
    const core = await handler.adminToken('core');
    const query = `?tenantId=${encodeURIComponent(handler.tenant.id)}`;
    expect((await list(query, core)).map(({ id }) => id)).toContain('permits-web');
    expect((await handler.api('/clients', { token: core })).status).toBe(400);
    expect((await handler.api('/clients?tenantId=urn:example:nothing', { token: core })).status).toBe(400);
  });

  it('responds with 403 to a user who names another tenant', async () => {
    const query = `?tenantId=${encodeURIComponent(handler.platform.otherTenant.id)}`;
    expect((await handler.api(`/clients${query}`, { token })).status).toBe(403);
  });
});

describe('GET /clients/{clientId}', () => {
  it('returns a client of the tenant or of core as the list shows it, with its registration', async () => {
    await handler.configure({ 'permits-web': permits, both: { description: 'The tenant’s' } });
    await handler.configure({ both: { description: 'Core' } }, { core: true });
    await handler.register('permits-web');
    const { clientSecret, registrationAccessToken: management } = await stored('permits-web');
    const secrets = [clientSecret, management];
    for (const id of ['permits-web', 'both']) {
      const { status, body, text } = await handler.api(`/clients/${id}`, { token });
      expect(status).toBe(200);
      expect(body).toEqual(await shown(id));
      for (const secret of secrets) expect(text).not.toContain(secret);
    }
    expect(await shown('both')).toMatchObject({ core: true, description: 'Core' });
    const core = await handler.adminToken('core');
    const query = `?tenantId=${encodeURIComponent(handler.tenant.id)}`;
    expect((await handler.api(`/clients/permits-web${query}`, { token: core })).body).toMatchObject({
      registered: true,
    });
    expect((await handler.api('/clients/permits-web', { token: core })).status).toBe(400);
  });

  it.each(['unknown', 'constructor', '%2e%2e', 'a'.repeat(51), "x'--"])('responds with 404 to %j', async (id) => {
    const { status, body } = await handler.api(`/clients/${encodeURIComponent(id)}`, { token });
    expect([status, body]).toMatchObject([404, { type: expect.stringContaining('not-found') }]);
  });

  it('responds with 404 to a client of another tenant', async () => {
    await handler.configure({ 'other-web': {} }, { tenant: handler.platform.otherTenant });
    expect((await handler.api('/clients/other-web', { token })).status).toBe(404);
    const bearer = await handler.adminToken('other');
    expect((await handler.api('/clients/other-web', { token: bearer })).status).toBe(200);
  });
});

describe.each([
  ['GET', '/clients', undefined],
  ['GET', '/clients/permits-web', undefined],
  ['POST', '/clients/permits-web', { registrationToken }],
  ['PUT', '/clients/permits-web', { redirectUris: [] }],
  ['GET', '/clients/permits-web/leftovers', undefined],
])('%s %s', (method, path, body) => {
  it('responds with 401 without a token, and to a token for another service', async () => {
    const { access } = handler.platform;
    for (const bearer of [
      undefined,
      'nonsense',
      await roleToken(access, { 'form-service': ['token-handler-admin'] }, { realm: 'demo' }),
      await access.foreignToken({ aud: access.urns.service('token-handler') }, { key: 'unknown' }),
    ]) {
      const answer = await handler.api(path, { method, token: bearer, body });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
  });

  it('responds with 403 without the role token-handler-admin', async () => {
    const bearer = await roleToken(handler.platform.access, { 'token-handler': ['reader'] }, { realm: 'demo' });
    expect((await handler.api(path, { method, token: bearer, body })).status).toBe(403);
  });

  it('is also available under /token-handler, for proxies that do not rewrite', async () => {
    const answer = await call(`${handler.url}/token-handler${path}`, { method, body });
    expect(answer.status).toBe(401);
  });
});

describe('POST /clients/{clientId}', () => {
  beforeAll(() =>
    handler.configure({
      'permits-web': permits,
      bare: {},
      'with space_1': {},
      out: { ...permits, keycloakLogout: true },
    }),
  );

  it('creates a confidential client in the tenant’s realm, and responds with {registered: true}', async () => {
    const initial = await handler.platform.access.registrationToken('demo');
    expect(await register('permits-web', { registrationToken: initial })).toMatchObject({
      status: 200,
      body: { registered: true },
    });
    expect(await works(await stored('permits-web'))).toBe(true);
    expect((await atProvider('permits-web')).metadata).toMatchObject({
      client_name: expect.stringMatching(/^permits-web \(registration [0-9a-f-]{36}\)$/),
      redirect_uris: [callback],
      // Keycloak adds the response type `none` to `code`.
      response_types: expect.arrayContaining(['code']),
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_basic',
    });
  });

  it('registers no address for logout if keycloakLogout is false', async () => {
    await handler.register('permits-web');
    // Without registered logout URIs, Keycloak returns the redirect URIs as logout URIs.
    const { post_logout_redirect_uris: uris = [] } = (await atProvider('permits-web')).metadata;
    expect([callback]).toEqual(expect.arrayContaining(uris as string[]));
  });

  it('registers the client’s redirect URIs and authCallbackUrl, which is not stored in the configuration', async () => {
    await handler.register('permits-web', { authCallbackUrl: other });
    expect((await atProvider('permits-web')).metadata.redirect_uris).toEqual([callback, other]);
    expect(await shown('permits-web')).toMatchObject({
      redirectUris: [callback],
      registration: { redirectUris: [callback, other] },
    });
  });

  it('registers a client without redirect URIs if there are none and no authCallbackUrl is sent', async () => {
    expect((await handler.register('bare')).status).toBe(200);
    expect((await atProvider('bare')).metadata.redirect_uris).toEqual([]);
  });

  it('registers the roots of the redirect URIs’ hosts for logout if keycloakLogout is true', async () => {
    await handler.register('out', { authCallbackUrl: 'http://localhost:4200/token-handler/clients/out/callback' });
    expect((await atProvider('out')).metadata.post_logout_redirect_uris).toEqual([
      'https://permits.example.org/',
      'http://localhost:4200/',
    ]);
  });

  it('registers the address of back-channel logout if PUBLIC_URL is set', async () => {
    await handler.register('with space_1');
    const uri = 'http://127.0.0.1:1/token-handler/v1/clients/with%20space_1/backchannel-logout';
    expect((await atProvider('with space_1')).metadata.backchannel_logout_uri).toBe(uri);
  });

  it('replaces an earlier registration, and deletes its client at the identity provider', async () => {
    await handler.register('permits-web');
    const before = await stored('permits-web');
    await handler.register('permits-web');
    const after = await stored('permits-web');
    expect(after.oidcClientId).not.toBe(before.oidcClientId);
    expect(await works(after)).toBe(true);
    await expect.poll(() => works(before)).toBe(false);
    await expect.poll(() => handler.rows('SELECT FROM client_deletions')).toEqual([]);
  });

  it('registers a core client separately for each tenant, in that tenant’s realm', async () => {
    await handler.configure({ shared: { redirectUris: [callback] } }, { core: true });
    expect((await handler.register('shared')).status).toBe(200);
    expect((await list('', await handler.adminToken('other'))).find(({ id }) => id === 'shared')).toMatchObject({
      core: true,
      registered: false,
    });
    expect((await handler.register('shared', { realm: 'other' })).status).toBe(200);
    const rows = await handler.rows("SELECT realm FROM client_registrations WHERE client_id = 'shared' ORDER BY realm");
    expect(rows).toEqual([{ realm: 'demo' }, { realm: 'other' }]);
  });

  it('does not change a registered client if its configuration changes later', async () => {
    await handler.register('permits-web');
    await handler.configure({ 'permits-web': { ...permits, redirectUris: [other] }, bare: {} });
    expect((await atProvider('permits-web')).metadata.redirect_uris).toEqual([callback]);
    expect(await shown('permits-web')).toMatchObject({
      redirectUris: [other],
      registration: { redirectUris: [callback] },
    });
    await handler.configure({ 'permits-web': permits, bare: {} });
  });

  it('sends the event client-registered, with the client and who registered it', async () => {
    await handler.register('bare', { authCallbackUrl: other });
    const { oidcClientId, registeredAt } = await stored('bare');
    await expect.poll(() => handler.rows('SELECT FROM client_events')).toEqual([]);
    expect(await eventsAbout(oidcClientId)).toEqual([
      {
        namespace: 'token-handler',
        name: 'client-registered',
        tenant: tenantKey(handler.tenant.id),
        occurred: registeredAt,
        payload: {
          client: { id: 'bare', name: 'bare', clientId: oidcClientId, authCallbackUrl: other },
          registeredBy: { id: expect.any(String), name: 'Ada Admin' },
        },
      },
    ]);
  });

  it('responds with 404 to a client that the tenant does not have, such as another tenant’s', async () => {
    for (const id of ['nothing', 'other-web', 'a/b', 'x'.repeat(60)])
      expect((await register(id, { registrationToken })).status, id).toBe(404);
  });

  it('responds with 400 if the identity provider rejects the registration token, and the earlier registration stays', async () => {
    await handler.register('permits-web');
    const before = await stored('permits-web');
    const answer = await register('permits-web', { registrationToken: 'guessed' });
    expect(answer.status).toBe(400);
    expect((answer.body as ProblemBody).errors).toEqual([
      { pointer: '/registrationToken', detail: 'is not accepted by the identity provider (invalid_token)' },
    ]);
    expect((await stored('permits-web')).oidcClientId).toBe(before.oidcClientId);
    expect(await works(before)).toBe(true);
    expect(await handler.rows('SELECT FROM registration_attempts')).toEqual([]);
  });

  it.each([
    ['nothing', {}, '/registrationToken'],
    ['an empty token', { registrationToken: '' }, '/registrationToken'],
    ['a token too long', { registrationToken: 'x'.repeat(8193) }, '/registrationToken'],
    ['a token that would break the header', { registrationToken: 'a\r\nX: y' }, '/registrationToken'],
    ['a number for a token', { registrationToken: 1 }, '/registrationToken'],
    ['an unknown field', { registrationToken, redirectUris: [] }, '/redirectUris'],
    ['a relative URL', { registrationToken, authCallbackUrl: '/cb' }, '/authCallbackUrl'],
    ['an http URL', { registrationToken, authCallbackUrl: 'http://permits.example.org/cb' }, '/authCallbackUrl'],
    ['a fragment', { registrationToken, authCallbackUrl: `${callback}#x` }, '/authCallbackUrl'],
  ])('responds with 400 and a pointer to %s', async (_, body, pointer) => {
    const answer = await register('permits-web', body);
    expect(answer.status).toBe(400);
    expect((answer.body as ProblemBody).errors?.map((error) => error.pointer)).toEqual([pointer]);
  });

  it('responds with 400 to invalid JSON, and with 415 to another content type', async () => {
    expect((await register('permits-web', '{')).status).toBe(400);
    const answer = await handler.api('/clients/permits-web', {
      method: 'POST',
      token,
      body: 'registrationToken=x',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(answer.status).toBe(415);
  });
});

describe('PUT /clients/{clientId}', () => {
  beforeEach(async () => {
    if (!(await shown('permits-web'))) await handler.configure({ 'permits-web': permits, bare: {} });
    await handler.register('permits-web');
  });

  it('changes the redirect URIs of the registered client, and responds with {updated: true}', async () => {
    const before = await stored('permits-web');
    expect(await update('permits-web', { redirectUris: [other] })).toMatchObject({
      status: 200,
      body: { updated: true },
    });
    const after = await stored('permits-web');
    expect(after.oidcClientId).toBe(before.oidcClientId);
    expect(after.clientSecret).toBe(before.clientSecret);
    expect(await works(after)).toBe(true);
    expect((await atProvider('permits-web')).metadata.redirect_uris).toEqual([other]);
    expect(await shown('permits-web')).toMatchObject({ registration: { redirectUris: [other] } });
  });

  it('stores the new management token that the identity provider issues, so that updates can follow', async () => {
    const tokens = new Set<string>();
    for (const uri of [other, callback, other]) {
      expect((await update('permits-web', { redirectUris: [uri] })).status).toBe(200);
      tokens.add((await stored('permits-web')).registrationAccessToken);
    }
    expect(tokens.size).toBe(3);
  });

  it('changes nothing else in the registration', async () => {
    const { client_name } = (await atProvider('permits-web')).metadata;
    await update('permits-web', { redirectUris: [other] });
    expect((await atProvider('permits-web')).metadata).toMatchObject({
      client_name,
      response_types: expect.arrayContaining(['code']),
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_basic',
      backchannel_logout_uri: 'http://127.0.0.1:1/token-handler/v1/clients/permits-web/backchannel-logout',
    });
  });

  it('can remove all redirect URIs', async () => {
    expect((await update('permits-web', { redirectUris: [] })).status).toBe(200);
    expect((await atProvider('permits-web')).metadata.redirect_uris).toEqual([]);
  });

  it('registers and stores redirect URIs normalised, each once', async () => {
    const redirectUris = [callback.replace('https://permits', 'HTTPS://Permits'), callback];
    expect((await update('permits-web', { redirectUris })).status).toBe(200);
    expect((await atProvider('permits-web')).metadata.redirect_uris).toEqual([callback]);
    expect((await shown('permits-web'))?.registration?.redirectUris).toEqual([callback]);
  });

  it('refuses more redirect URIs than a client may have, so that they cannot fill the memory of a list', async () => {
    const redirectUris = Array.from({ length: 101 }, (_, index) => `${callback}?${index}`);
    expect(await update('permits-web', { redirectUris })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/redirectUris', detail: 'must have at most 100 items' }] },
    });
    const together = Array.from({ length: 9 }, (_, index) => `${callback}?${index}`.padEnd(2_000, 'x'));
    const detail = 'must be at most 100 redirect URIs of 16384 characters together';
    expect(await update('permits-web', { redirectUris: together })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/redirectUris', detail }] },
    });
    expect(await update('permits-web', { redirectUris: [callback.padEnd(2_001, 'x')] })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/redirectUris/0', detail: 'must have at most 2000 characters' }] },
    });
    expect((await update('permits-web', { redirectUris: redirectUris.slice(1) })).status).toBe(200);
  });

  it('runs concurrent updates one after another', async () => {
    const uris = Array.from({ length: 6 }, (_, index) => `${callback}-${index}`);
    const answers = await Promise.all(uris.map((uri) => update('permits-web', { redirectUris: [uri] })));
    expect(answers.map(({ status }) => status)).toEqual(uris.map(() => 200));
    const { metadata } = await atProvider('permits-web');
    expect((await shown('permits-web'))?.registration?.redirectUris).toEqual(metadata.redirect_uris);
    expect((await update('permits-web', { redirectUris: [callback] })).status).toBe(200);
  });

  it('leaves one client that works and can be updated if a registration runs concurrently', async () => {
    await Promise.all([
      update('permits-web', { redirectUris: [other] }),
      handler.register('permits-web'),
      update('permits-web', { redirectUris: [callback] }),
      handler.register('permits-web'),
    ]);
    expect((await update('permits-web', { redirectUris: [other] })).status).toBe(200);
    expect((await atProvider('permits-web')).metadata.redirect_uris).toEqual([other]);
  });

  it('responds with 409 registration-required if the client is not registered', async () => {
    await handler.configure({ 'permits-web': permits, fresh: {} });
    expect(await update('fresh', { redirectUris: [callback] })).toMatchObject({
      status: 409,
      body: { type: 'urn:formgate:problem:registration-required' },
    });
  });

  it('responds with 404 to a client that the tenant does not have', async () => {
    expect((await update('nothing', { redirectUris: [] })).status).toBe(404);
  });

  it('responds with 409 if the client was deleted at the identity provider, until it is registered again', async () => {
    const { registrationClientUri, registrationAccessToken } = await stored('permits-web');
    await call(registrationClientUri, { method: 'DELETE', token: registrationAccessToken });
    expect(await update('permits-web', { redirectUris: [other] })).toMatchObject({
      status: 409,
      body: { type: 'urn:formgate:problem:registration-required' },
    });
    expect((await handler.register('permits-web')).status).toBe(200);
    expect((await update('permits-web', { redirectUris: [other] })).status).toBe(200);
  });

  it.each([
    ['nothing', {}, '/redirectUris'],
    ['a text', { redirectUris: callback }, '/redirectUris'],
    ['an unknown field', { redirectUris: [], clientSecret: 'x' }, '/clientSecret'],
    ['http', { redirectUris: [callback, 'http://permits.example.org/cb'] }, '/redirectUris/1'],
    ['a fragment', { redirectUris: [`${callback}#x`] }, '/redirectUris/0'],
    ['credentials', { redirectUris: ['https://a:b@permits.example.org/cb'] }, '/redirectUris/0'],
    ['a relative URL', { redirectUris: ['/cb'] }, '/redirectUris/0'],
    ['a wildcard host', { redirectUris: [callback, 'https://*'] }, '/redirectUris/1'],
    ['a wildcard path', { redirectUris: ['https://permits.example.org/*'] }, '/redirectUris/0'],
    ['a dot segment', { redirectUris: ['https://a/../b'] }, '/redirectUris/0'],
  ])('responds with 400 and a pointer to %s, and changes nothing', async (_, body, pointer) => {
    const answer = await update('permits-web', body);
    expect(answer.status).toBe(400);
    expect((answer.body as ProblemBody).errors?.map((error) => error.pointer)).toEqual([pointer]);
    expect((await atProvider('permits-web')).metadata.redirect_uris).toEqual([callback]);
  });
});

it('a misspelt field of a client is refused when the tenant stores it, with a problem that names the field', async () => {
  await expect.poll(() => handler.log.text()).toContain('registration written');
  await expect(handler.configure({ a: { targts: [] } })).rejects.toThrow('/clients/a/targts');
  await handler.configure({ a: { disableVerifyHost: true } });
});

it('no log line and no row of the database contains a secret, a token or the registration token', async () => {
  await handler.register('permits-web');
  const { clientSecret, registrationAccessToken } = await stored('permits-web');
  const dump = JSON.stringify([
    await handler.rows('SELECT * FROM client_registrations'),
    await handler.rows('SELECT * FROM client_deletions'),
    await handler.rows('SELECT * FROM client_events'),
    await handler.rows('SELECT * FROM registration_attempts'),
  ]);
  for (const secret of [clientSecret, registrationAccessToken, registrationToken, token]) {
    expect(handler.log.text()).not.toContain(secret);
    expect(dump).not.toContain(secret);
  }
});

/** Creates a trigger that copies each event, because the platform server deletes an event when it has routed it. */
async function keepEvents(): Promise<void> {
  await platformRows(`
    CREATE TABLE seen_events (LIKE events);
    CREATE FUNCTION see_event() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO seen_events SELECT NEW.*; RETURN NULL; END $$;
    CREATE TRIGGER seen AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION see_event()`);
}

const eventsAbout = (oidcClientId: string) =>
  platformRows('SELECT namespace, name, tenant, occurred, payload FROM seen_events WHERE payload::text LIKE $1', [
    `%${oidcClientId}%`,
  ]);

async function platformRows(sql: string, parameters?: unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: handler.platform.databaseUrl });
  await client.connect();
  try {
    return (await client.query(sql, parameters)).rows;
  } finally {
    await client.end();
  }
}
