// Tests the route guards bearer, role and tenant over real HTTP. A key server publishes the keys that sign the tokens.
import type { JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type KeyServer, type RealmKey, signToken, startKeyServer } from '../../../test/support/key-server.ts';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { anonymous, type Guard, type Route, route } from '../http/http-app.ts';
import { Problem } from '../http/problem.ts';
import { callerOf, tenantOf } from '../http/request-context.ts';
import { createMetrics } from '../operations/metrics.ts';
import { bearer, callTenant, ifBearer, role } from './bearer-guards.ts';
import { createBearerVerifier, type Tenant } from './identity.ts';
import { createSigningKeys } from './signing-keys.ts';
import { createKeysUrl } from './tenant-issuers.ts';

const audience = 'urn:example:platform:form-service';
const tenantUrn = (id: string) => `urn:example:platform:tenant-service:v2:/tenants/${id}`;
const known: Tenant[] = ['demo', 'other'].map((realm) => ({ id: tenantUrn(realm), name: realm, realm }));
const tenants = {
  byRealm: async (realm: string) => known.find((tenant) => tenant.realm === realm),
  byId: async (id: string) => known.find((tenant) => tenant.id === id),
};

let server: KeyServer;
let keys: Map<string, RealmKey>;
let app: ListeningApp;
let access: TestAccess;
let appOfProvider: ListeningApp;

const key: Guard = {
  name: 'key',
  check(request) {
    if (request.headers['x-key'] !== 'right') throw new Problem('unauthenticated', 'The key is wrong.');
  },
};

function routes(accessUrl: string): Route[] {
  const { log } = captureLog();
  const signingKeys = createSigningKeys({ urlOf: createKeysUrl(accessUrl), log, metrics: createMetrics() });
  const verifier = createBearerVerifier({ signingKeys, accessPublicUrl: accessUrl, clientId: audience, tenants });
  const guards = [
    bearer(verifier, [audience]),
    role('form-admin', 'urn:example:platform:configuration-service:configuration-admin'),
  ];
  const handle: Route['handle'] = (_input, _request, response) =>
    void response.json({ tenant: response.locals.tenant && tenantOf(response).id, caller: callerOf(response).subject });
  const responses = { 200: { description: 'Who called' } };
  return [
    route({
      method: 'get',
      path: '/tenant',
      summary: 'Tenant of the call',
      guards: [...guards, callTenant(tenants)],
      responses,
      handle,
    }),
    route({ method: 'get', path: '/roles', summary: 'Roles', guards, responses, handle }),
    route({ method: 'get', path: '/any', summary: 'Any caller', guards: [bearer(verifier, 'any')], responses, handle }),
    route({
      method: 'get',
      path: '/bearer-or-key',
      summary: 'A bearer token, or the header X-Key',
      guards: [ifBearer([bearer(verifier, [audience])], [anonymous, key])],
      responses,
      handle: (_input, _request, response) => void response.json({ caller: response.locals.caller?.subject ?? null }),
    }),
  ];
}

beforeAll(async () => {
  server = await startKeyServer();
  keys = new Map(
    await Promise.all(['demo', 'other', 'core'].map(async (realm) => [realm, await server.addKey(realm)] as const)),
  );
  app = await startApp(routes(server.url));
  access = await startTestAccess();
  appOfProvider = await startApp(routes(access.url));
});
afterAll(async () => {
  await Promise.all([app.close(), server.close(), appOfProvider.close(), access.close()]);
});

async function call(path: string, realm: string, changes: JWTPayload = {}) {
  const key = keys.get(realm);
  if (!key) throw new Error(`there is no key of ${realm}`);
  const exp = Math.floor(Date.now() / 1000) + 60;
  const access = { resource_access: { [audience]: { roles: ['form-admin'] } } };
  const jwt = await signToken(key, {
    iss: server.issuer(realm),
    sub: `user of ${realm}`,
    aud: audience,
    exp,
    ...access,
    ...changes,
  });
  const response = await fetch(app.url + path, { headers: { Authorization: `Bearer ${jwt}` } });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

describe('the tenant of a call', () => {
  it('is that of the realm of the token', async () => {
    expect(await call('/tenant', 'demo')).toMatchObject({ status: 200, body: { tenant: tenantUrn('demo') } });
    expect(await call('/tenant', 'other')).toMatchObject({ status: 200, body: { tenant: tenantUrn('other') } });
  });

  it('may be named by its users, by its exact URN', async () => {
    const own = encodeURIComponent(tenantUrn('demo'));
    expect(await call(`/tenant?tenantId=${own}`, 'demo')).toMatchObject({
      status: 200,
      body: { tenant: tenantUrn('demo') },
    });
    expect(await call('/tenant?tenantId=', 'demo')).toMatchObject({ status: 200, body: { tenant: tenantUrn('demo') } });
  });

  it('of another tenant gets 403 for a tenant user, whether it exists or not', async () => {
    for (const id of [tenantUrn('other'), tenantUrn('nowhere'), 'demo', 'x'])
      expect((await call(`/tenant?tenantId=${encodeURIComponent(id)}`, 'demo')).status).toBe(403);
  });

  it('is named by a core user with tenantId', async () => {
    const answer = await call(`/tenant?tenantId=${encodeURIComponent(tenantUrn('other'))}`, 'core');
    expect(answer).toMatchObject({ status: 200, body: { tenant: tenantUrn('other') } });
  });

  it('that a core user does not name gets 400 with the pointer /query/tenantId', async () => {
    for (const path of ['/tenant', '/tenant?tenantId='])
      expect(await call(path, 'core')).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/query/tenantId', detail: 'is required for core users' }] },
      });
  });

  it('that is unknown gets 400 with the pointer /query/tenantId for a core user', async () => {
    for (const id of [tenantUrn('nowhere'), 'demo', '../demo'])
      expect(await call(`/tenant?tenantId=${encodeURIComponent(id)}`, 'core')).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/query/tenantId', detail: 'is not the id of a tenant' }] },
      });
  });

  it('that is named twice gets 400, even if both are the own tenant', async () => {
    const own = encodeURIComponent(tenantUrn('demo'));
    expect((await call(`/tenant?tenantId=${own}&tenantId=${own}`, 'demo')).status).toBe(400);
  });
});

describe('a role', () => {
  it('of several accepted ones is enough', async () => {
    expect((await call('/roles', 'demo')).status).toBe(200);
    const other = { 'urn:example:platform:configuration-service': { roles: ['configuration-admin'] } };
    expect((await call('/roles', 'demo', { resource_access: other })).status).toBe(200);
  });

  it('that is missing gets 403', async () => {
    for (const changes of [
      { resource_access: undefined },
      { resource_access: { [audience]: { roles: ['intake-application'] } } },
      { resource_access: { 'urn:example:platform:other-service': { roles: ['form-admin'] } } },
      { resource_access: undefined, realm_access: { roles: ['configuration-admin', 'Form-Admin', 'form-admin '] } },
    ])
      expect(await call('/roles', 'demo', changes as JWTPayload)).toMatchObject({
        status: 403,
        body: { type: 'urn:formgate:problem:forbidden' },
      });
  });

  it('is checked after the token and before the tenant: 401, then 403, then 400', async () => {
    expect((await call('/tenant', 'core', { aud: 'elsewhere', resource_access: undefined })).status).toBe(401);
    expect((await call('/tenant', 'core', { resource_access: undefined })).status).toBe(403);
    expect((await call('/tenant', 'core')).status).toBe(400);
  });
});

describe('a caller without a valid token', () => {
  it('gets 401 with a bearer challenge', async () => {
    const response = await fetch(`${app.url}/roles`);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer error="invalid_token"/);
    expect(await response.json()).toMatchObject({ type: 'urn:formgate:problem:unauthenticated', status: 401 });
  });
});

describe('ifBearer', () => {
  const path = '/bearer-or-key';

  it('applies the first guards to a request with an Authorization header, and the others to one without', async () => {
    expect(await call(path, 'demo')).toMatchObject({ status: 200, body: { caller: 'user of demo' } });
    const withKey = await fetch(app.url + path, { headers: { 'X-Key': 'right' } });
    expect([withKey.status, await withKey.json()]).toEqual([200, { caller: null }]);
    const both = { 'X-Key': 'right', Authorization: 'Bearer nonsense' };
    expect((await fetch(app.url + path, { headers: both })).status).toBe(401);
  });

  it('rejects a request without either with 401 and a bearer challenge', async () => {
    const response = await fetch(app.url + path);
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });

  it('admits the credentials of both lists, and names all guards', () => {
    expect(ifBearer([{ ...key, admits: ['bearer'] }], [anonymous])).toMatchObject({
      name: 'ifBearer(key; else anonymous)',
      admits: ['bearer', 'none'],
    });
  });

  it('throws for a list that admits no callers', () => {
    expect(() => ifBearer([key], [anonymous])).toThrow('no guard admits callers');
    expect(() => ifBearer([anonymous], [key])).toThrow('no guard admits callers');
  });
});

describe('with a real OpenID provider', () => {
  const ask = async (path: string, jwt: string) =>
    (await fetch(appOfProvider.url + path, { headers: { Authorization: `Bearer ${jwt}` } })).status;

  it('a service account and a person of a tenant are callers with their roles', async () => {
    expect(await ask('/roles', await access.serviceToken('demo', 'demo-admin'))).toBe(200);
    expect(await ask('/roles', await access.userToken('demo', 'admin@example.com'))).toBe(200);
    expect(await ask('/any', await access.userToken('demo', 'alice@example.com'))).toBe(200);
  });

  it('a token that is expired, unsigned, or signed by HMAC or an unknown key gets 401', async () => {
    for (const key of ['unknown', 'hmac', 'none'] as const)
      expect([key, await ask('/any', await access.foreignToken({}, { key }))]).toEqual([key, 401]);
    expect(await ask('/any', await access.foreignToken({}, { now: new Date(Date.now() - 86_400_000) }))).toBe(401);
  });
});
