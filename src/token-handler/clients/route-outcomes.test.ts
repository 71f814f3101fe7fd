// Tests what administrators get from the routes for clients. The catalogue, the registrations and the identity provider
// are scripted. Tests with an identity provider are in routes.test.ts.
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { ask, demo, other, type Reply, scriptedBearer, scriptedTenant } from '../../../test/support/session-routes.ts';
import type { Tenant } from '../../service/auth/identity.ts';
import { Problem } from '../../service/http/problem.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import type { Client } from './client.ts';
import type { LeftoverClient } from './leftover-clients.ts';
import type { RegistrationSummary } from './registration.ts';
import {
  type ClientRouteOptions,
  listClientsRoute,
  listLeftoversRoute,
  readClientRoute,
  registerClientRoute,
  updateClientRoute,
} from './routes.ts';

const unavailable = () => Promise.reject(new Problem('unavailable', 'The database cannot be reached.'));
const callback = 'https://app.example.org/token-handler/clients/web/callback';
const none = { redirectUris: [], targets: [], keycloakLogout: false, core: false, scope: ['openid', 'secret-scope'] };
const web: Client = {
  ...{ ...none, id: 'web', name: 'Web', description: 'For people', redirectUris: [callback], keycloakLogout: true },
  targets: [{ id: 'forms', upstream: 'urn:example:platform:form-service' }],
};
const core: Client = { ...none, id: 'core', name: 'Core', core: true };
const shownCore = {
  ...{ id: 'core', name: 'Core', description: null, redirectUris: [], targets: [], keycloakLogout: false, core: true },
  ...{ registered: false, registration: null },
};
const summary: RegistrationSummary = {
  ...{ clientId: 'oidc-web', redirectUris: [callback], management: 'kept' },
  registeredAt: new Date('2026-08-20T17:00:00Z'),
};
const shownWeb = {
  ...{ id: 'web', name: 'Web', description: 'For people', redirectUris: [callback], targets: web.targets },
  ...{ keycloakLogout: true, core: false, registered: true },
  registration: { ...summary, registeredAt: '2026-08-20T17:00:00.000Z' },
};
const leftover: LeftoverClient = {
  ...{ clientName: 'Web (registration 1)', clientId: null, realm: 'demo', reason: 'response-lost' },
  created: new Date('2026-08-20T17:00:00Z'),
};

/** The calls of the scripted modules, in order. */
let calls: unknown[][];
let options: ClientRouteOptions;
let app: ListeningApp;
beforeEach(async () => {
  calls = [];
  const record = async (...call: unknown[]) => void calls.push(call);
  const own = (tenant: Pick<Tenant, 'id'>) => (tenant.id === demo.id ? [core, web] : [core]);
  options = {
    ...{ bearer: scriptedBearer, tenant: scriptedTenant, metrics: createMetrics() },
    redirectUriRules: { allowInsecure: false, allowWildcardPaths: false },
    catalog: {
      list: async (tenant) => own(tenant),
      find: async (tenant, id) => own(tenant).find((client) => client.id === id),
    },
    registrations: {
      summaries: async ({ id }, clients) =>
        new Map(id === demo.id && clients.includes('web') ? [['web', summary]] : []),
    },
    leftovers: { list: async (id, client) => (id === demo.id && client === 'web' ? [leftover] : []) },
    registrar: { register: (given) => record('register', given), update: (given) => record('update', given) },
    provided: { register: (given) => record('provide', given) },
  };
  app = await startApp([
    ...[listClientsRoute(options), readClientRoute(options), registerClientRoute(options)],
    ...[updateClientRoute(options), listLeftoversRoute(options)],
  ]);
});
afterEach(() => app.close());

const send = (method: string, path: string, body?: unknown, token = 'admin'): Promise<Reply> =>
  ask(`${app.url}/token-handler/v1/clients${path}`, {
    ...{ method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
const read = async (path: string, token?: string) => {
  const { status, body } = await send('GET', path, undefined, token);
  return [status, body];
};
const registration = { registrationToken: 'initial-token' };
const update = { redirectUris: [callback] };
const by = expect.objectContaining({ subject: 'admin', name: 'admin' });

describe('the list of clients', () => {
  it('has the clients of the tenant and of core, each with its registration and without inner settings', async () => {
    expect(await read('')).toEqual([200, [shownCore, shownWeb]]);
    expect(await read('?core=false')).toEqual([200, [shownCore, shownWeb]]);
    expect(await read('', 'stranger')).toEqual([200, [shownCore]]);
  });

  it('has only the core clients if the administrator asks for them', async () => {
    expect(await read('?core=true')).toEqual([200, [shownCore]]);
  });

  it('is that of the tenant which an administrator of core names', async () => {
    expect(await read(`?tenantId=${demo.id}`, 'core')).toEqual([200, [shownCore, shownWeb]]);
    expect((await read('', 'core'))[0]).toBe(400);
  });

  it('is 503 while the configuration or the database cannot be read', async () => {
    const { summaries } = options.registrations;
    options.registrations.summaries = unavailable;
    expect((await read(''))[0]).toBe(503);
    options.registrations.summaries = summaries;
    options.catalog.list = unavailable;
    expect((await read(''))[0]).toBe(503);
  });
});

describe('a client', () => {
  it('is shown as in the list', async () => {
    expect(await read('/web')).toEqual([200, shownWeb]);
    expect(await read('/core')).toEqual([200, shownCore]);
  });

  it('of another tenant is 404, also for changes, which have no effect', async () => {
    const replies = [
      await send('GET', '/web', undefined, 'stranger'),
      await send('POST', '/web', registration, 'stranger'),
      await send('PUT', '/web', update, 'stranger'),
    ];
    for (const { status, body } of replies)
      expect([status, body.type]).toEqual([404, expect.stringContaining('not-found')]);
    expect(calls).toEqual([]);
  });

  it('has leftovers of its own, and none in another tenant', async () => {
    expect(await read('/web/leftovers')).toEqual([200, [{ ...leftover, created: '2026-08-20T17:00:00.000Z' }]]);
    expect(await read('/web/leftovers', 'stranger')).toEqual([200, []]);
    expect(await read('/core/leftovers')).toEqual([200, []]);
  });
});

describe('a registration', () => {
  it('with a registration token creates the client, and is audited', async () => {
    const { status, body } = await send('POST', '/web', { ...registration, authCallbackUrl: callback });
    expect([status, body]).toEqual([200, { registered: true }]);
    expect(calls).toEqual([
      ['register', { tenant: demo, client: web, by, ...registration, authCallbackUrl: callback }],
    ]);
    const object = { type: 'client', id: 'web' };
    expect(await app.requestLines(1)).toMatchObject([{ audit: { action: 'client.register', object } }]);
  });

  it('with credentials takes over the client, and does not create one', async () => {
    const credentials = { clientId: 'oidc-web', clientSecret: 'a secret' };
    const { status, body } = await send('POST', '/web', credentials);
    expect([status, body]).toEqual([200, { registered: true }]);
    expect(calls).toEqual([['provide', { tenant: demo, client: web, by, ...credentials }]]);
  });

  it('that the identity provider refuses is answered with its problem', async () => {
    options.registrar.register = () => Promise.reject(new Problem('conflict', 'The client is another one.'));
    expect((await send('POST', '/web', registration)).status).toBe(409);
    options.provided.register = unavailable;
    expect((await send('POST', '/web', { clientId: 'one', clientSecret: 'two' })).status).toBe(503);
  });
});

describe('an update', () => {
  it('replaces the redirect URIs, each once, and is audited', async () => {
    const second = 'https://app.example.org/second';
    const { status, body } = await send('PUT', '/web', { redirectUris: [callback, second, callback] });
    expect([status, body]).toEqual([200, { updated: true }]);
    expect(calls).toEqual([['update', { tenant: demo, client: web, redirectUris: [callback, second] }]]);
    const object = { type: 'client', id: 'web' };
    expect(await app.requestLines(1)).toMatchObject([{ audit: { action: 'client.update', object } }]);
  });

  it('of a client that is not registered is 409', async () => {
    options.registrar.update = () => Promise.reject(new Problem('registration-required', 'Register the client.'));
    const { status, body } = await send('PUT', '/web', update);
    expect([status, body.type]).toEqual([409, expect.stringContaining('registration-required')]);
  });
});

describe.each([
  ['GET', '', undefined],
  ['GET', '/web', undefined],
  ['POST', '/web', registration],
  ['PUT', '/web', update],
  ['GET', '/web/leftovers', undefined],
])('%s /clients%s', (method, path, body) => {
  it('needs the token of an administrator', async () => {
    expect((await send(method, path, body, 'nonsense')).status).toBe(401);
    expect((await send(method, path, body, 'reader')).status).toBe(403);
    expect(calls).toEqual([]);
  });

  it('refuses the name of another tenant, and two names', async () => {
    expect((await send(method, `${path}?tenantId=${other.id}`, body)).status).toBe(403);
    const { status, body: problem } = await send(method, `${path}?tenantId=a&tenantId=b`, body);
    expect([status, problem.errors]).toMatchObject([400, [{ pointer: '/query/tenantId' }]]);
    expect(calls).toEqual([]);
  });
});

it.each([
  ['GET', '?core=yes', undefined, '/query/core'],
  ['POST', '/web', {}, '/registrationToken'],
  ['POST', '/web', { ...registration, authCallbackUrl: 'http://app.example.org/' }, '/authCallbackUrl'],
  ['PUT', '/web', { redirectUris: ['nonsense'] }, '/redirectUris/0'],
])('%s %s with the invalid input %j names the field', async (method, path, body, pointer) => {
  const reply = await send(method, path, body);
  expect([reply.status, reply.body.errors]).toMatchObject([400, [{ pointer }]]);
  expect(calls).toEqual([]);
});

describe.each([
  ['POST', 'client-registrations', registration],
  ['PUT', 'client-updates', update],
])('%s while other changes are running', (method, queue, body) => {
  it('waits for two changes of the client, but not for those of another client; too many get 503', async () => {
    const gate = Promise.withResolvers<void>();
    onTestFinished(() => gate.resolve());
    let running = 0;
    const slow = async ({ client }: { client: Client }) => {
      if (client.id !== 'web') return;
      running += 1;
      await gate.promise;
    };
    Object.assign(options.registrar, { register: slow, update: slow });
    const changes = Array.from({ length: 13 }, () => send(method, '/web', body));
    const refused = await Promise.race(changes);
    expect([refused.status, refused.headers.get('retry-after'), running]).toEqual([503, '5', 2]);
    expect((await send(method, '/core', body)).status).toBe(200);
    const { values } = await options.metrics.queueRefusals.get();
    expect(values).toMatchObject([{ labels: { queue, reason: 'full' }, value: 1 }]);
    gate.resolve();
    expect((await Promise.all(changes)).filter(({ status }) => status === 200)).toHaveLength(12);
  });
});

it('each refusal of a route is documented', () => {
  const described = { description: expect.stringMatching(/./) };
  const outages = { 400: described, 401: described, 403: described, 502: described, 503: described };
  for (const route of [listClientsRoute, listLeftoversRoute]) expect(route(options).responses).toMatchObject(outages);
  for (const route of [readClientRoute, registerClientRoute, updateClientRoute])
    expect(route(options).responses).toMatchObject({ ...outages, 404: described });
});
