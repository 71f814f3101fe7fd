// Tests reading clients from the configuration documents of a tenant and of core, with a real configuration service.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { testServiceSecret } from '../../../test/support/access.ts';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { createPlatform, type Platform } from '../../platform/platform.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { type ClientCatalog, createClientCatalog } from './catalog.ts';

let test: TestPlatform;
let proxy: FaultProxy;
let now: number;
let log: CapturedLog;
let metrics: Metrics;
let platform: Platform;
let catalog: ClientCatalog;

beforeAll(async () => {
  test = await startTestPlatform();
  proxy = await startFaultProxy(test.url);
});
afterAll(async () => {
  await proxy.close();
  await test.close();
});

beforeEach(async () => {
  await platform?.close();
  await proxy.heal();
  now = Date.now();
  log = captureLog();
  metrics = createMetrics();
  const { urns } = test.access;
  platform = createPlatform({
    config: {
      ACCESS_SERVICE_URL: test.access.url,
      DIRECTORY_URL: test.directoryUrl,
      CLIENT_SECRET: testServiceSecret(urns.service('token-handler')),
      PLATFORM_CACHE_TTL: 60_000,
      PLATFORM_TIMEOUT: 10_000,
    },
    service: 'token-handler',
    urns,
    metrics,
    log: log.log,
    clock: () => new Date(now),
    env: { DIR_PLATFORM_CONFIGURATION_SERVICE_V2: `${proxy.url}/configuration/v2` },
  });
  catalog = createClientCatalog({
    configuration: platform.configuration,
    urns,
    redirectUriRules: { allowInsecure: false, allowWildcardPaths: false },
    log: log.log,
    metrics,
  });
});
afterAll(() => platform.close());

/** Replaces the document directly at the configuration service, so the catalogue's cache is not updated. */
async function write(configuration: unknown, tenant?: string): Promise<void> {
  const query = tenant === undefined ? '' : `?tenantId=${encodeURIComponent(tenant)}`;
  const answer = await call(`${test.url}/configuration/v2/configuration/platform/token-handler${query}`, {
    method: 'PATCH',
    token: await roleToken(test.access, { 'configuration-service': ['configured-service'] }),
    body: { operation: 'REPLACE', configuration },
  });
  expect(answer.status).toBe(200);
}

const ids = async () => (await catalog.list(test.tenant)).map(({ id }) => id);
const invalid = async () => {
  const metric = await metrics.registry.getSingleMetric('formgate_invalid_clients_total')?.get();
  return metric?.values.map(({ labels, value }) => ({ ...labels, value })) ?? [];
};

describe('a new client', () => {
  it('works at once, although the documents were read just before it was configured', async () => {
    const tenant = test.tenant;
    await write({}, tenant.id);
    await write({});
    expect(await catalog.find(tenant, 'later')).toBeUndefined();
    await write({ clients: { later: { id: 'later', name: 'Later', targets: [] } } }, tenant.id);
    expect(await catalog.find(tenant, 'later')).toMatchObject({ id: 'later' });
    now += 1_000;
    await write({ clients: { core: { id: 'core', name: 'Core', targets: [] } } });
    expect(await catalog.find(tenant, 'core')).toMatchObject({ id: 'core' });
  });

  it('costs no call for clients that are known, and one a second for others', async () => {
    await write({ clients: { known: { id: 'known', name: 'Known', targets: [] } } }, test.tenant.id);
    await write({});
    await catalog.find(test.tenant, 'known');
    const reads = async () =>
      (await metrics.registry.getSingleMetricAsString('formgate_platform_miss_reads_total')).match(/\d+$/)?.[0];
    for (let time = 0; time < 50; time += 1) await catalog.find(test.tenant, 'known');
    expect(await reads()).toBeUndefined();
    for (let time = 0; time < 50; time += 1) await catalog.find(test.tenant, `unknown-${time}`);
    expect(await reads()).toBe('2');
  });
});

describe('the clients of a tenant', () => {
  it('do not exist if nothing is configured', async () => {
    await write({});
    await write({}, test.tenant.id);
    expect(await ids()).toEqual([]);
    expect(await catalog.find(test.tenant, 'a')).toBeUndefined();
  });

  it('are read from the property clients', async () => {
    await write({ clients: { b: { name: 'B' }, a: {} } }, test.tenant.id);
    expect(await ids()).toEqual(['a', 'b']);
    expect(await catalog.find(test.tenant, 'b')).toMatchObject({ id: 'b', name: 'B', core: false });
  });

  it('are also read from the top level, unless the property clients has the same id', async () => {
    await write({ a: { name: 'top' }, b: { name: 'top' }, clients: { a: { name: 'grouped' } } }, test.tenant.id);
    expect((await catalog.list(test.tenant)).map(({ name }) => name)).toEqual(['grouped', 'top']);
  });

  it('are not read from the top level if the property clients has an invalid entry with the same id', async () => {
    await write({ a: {}, clients: { a: { prompt: 'always' } } }, test.tenant.id);
    expect(await ids()).toEqual([]);
  });

  it('include the core clients, for every tenant', async () => {
    await write({ clients: { shared: {} } });
    await write({ clients: { own: {} } }, test.tenant.id);
    await write({}, test.otherTenant.id);
    expect(await ids()).toEqual(['own', 'shared']);
    expect((await catalog.list(test.otherTenant)).map(({ id }) => id)).toEqual(['shared']);
    expect(await catalog.find(test.otherTenant, 'shared')).toMatchObject({ core: true });
    expect(await catalog.find(test.otherTenant, 'own')).toBeUndefined();
  });

  it('cannot change or replace a core client with the same id', async () => {
    await write({ clients: { shared: { name: 'core', targets: [] } } });
    await write({ clients: { shared: { name: 'tenant', targets: ['form-service'] } } }, test.tenant.id);
    const expected = { name: 'core', targets: [], core: true };
    expect(await catalog.find(test.tenant, 'shared')).toMatchObject(expected);
    expect(await catalog.list(test.tenant)).toMatchObject([expected]);
  });

  it('cannot use the id of an invalid core client', async () => {
    await write({ clients: { shared: { prompt: 'always' } } });
    await write({ clients: { shared: {} } }, test.tenant.id);
    expect(await catalog.find(test.tenant, 'shared')).toBeUndefined();
    expect(await ids()).toEqual([]);
  });

  it.each(['constructor', 'toString', '__proto__', 'clients'])(
    'are not confused with properties of JavaScript objects: %s',
    async (name) => {
      await write({ clients: { a: {} } });
      await write({}, test.tenant.id);
      expect(await catalog.find(test.tenant, name)).toBeUndefined();
    },
  );

  it.each([
    ['a text', 'x'],
    ['a list', [{ id: 'a' }]],
    ['a list of clients', { clients: [{ id: 'a' }] }],
  ])('do not exist if the configuration is %s', async (_, configuration) => {
    await write({});
    await write(configuration, test.tenant.id);
    expect(await ids()).toEqual([]);
  });
});

it('a client with an unknown field works, and the log names the field once for each revision', async () => {
  await write({});
  const targets = [
    { id: 'files', upstream: 'file-service' },
    { id: 'forms', upstream: 'form-service', pth: 'secret' },
  ];
  await write({ clients: { a: { targts: [{ id: 'secret' }], name: 'A', targets } } }, test.tenant.id);
  expect(await ids()).toEqual(['a']);
  expect(await ids()).toEqual(['a']);
  const lines = log.lines().filter(({ msg }) => String(msg).startsWith('client has unknown fields'));
  expect(lines).toMatchObject([
    { level: 'warn', client: 'a', tenant: test.tenant.id, fields: ['targts', 'targets.forms.pth'] },
  ]);
  expect(log.text()).not.toContain('secret');
});

it('a client loses the redirect URIs that break a rule, which are logged and counted, and keeps the others', async () => {
  const good = 'https://permits.example.org/cb';
  await write({});
  await write({ clients: { a: { redirectUris: ['https://*', good, 'https://x/../secret-path'] } } }, test.tenant.id);
  expect((await catalog.find(test.tenant, 'a'))?.redirectUris).toEqual([good]);
  const lines = log.lines().filter(({ msg }) => msg === 'invalid redirect URIs left out');
  expect(lines).toMatchObject([
    { level: 'warn', client: 'a', place: 'tenant', tenant: test.tenant.id, reasons: { length: 2 } },
  ]);
  expect(log.text()).not.toContain('secret-path');
  expect(await invalid()).toEqual([]);
  expect(await metrics.registry.metrics()).toContain('formgate_invalid_redirect_uris_total{place="tenant"} 2');
});

describe('an invalid client', () => {
  const broken = { redirectUris: 'https://permits.example.org/secret-path', prompt: 'always', targets: [{ id: 'x' }] };

  it('is left out without affecting the others; the log has the reasons and no values', async () => {
    await write({});
    await write({ clients: { a: {}, broken, c: {} } }, test.tenant.id);
    expect(await ids()).toEqual(['a', 'c']);
    const lines = log.lines().filter(({ msg }) => msg === 'invalid client left out');
    expect(lines).toMatchObject([{ level: 'warn', client: 'broken', place: 'tenant', tenant: test.tenant.id }]);
    const reasons = lines[0]?.reasons as string[];
    expect(reasons.map((reason) => reason.split(':')[0]).sort()).toEqual(['prompt', 'redirectUris', 'targets']);
    expect(log.text()).not.toContain('secret-path');
  });

  it('is counted by place and field', async () => {
    await write({ clients: { broken: { prompt: 'x' } } });
    await write({ clients: { broken: {}, 'no/id': {}, other: { scope: 1, prompt: 'y' } } }, test.tenant.id);
    await catalog.list(test.tenant);
    expect((await invalid()).sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))).toEqual(
      [
        { place: 'core', field: 'prompt', value: 1 },
        { place: 'tenant', field: 'id', value: 1 },
        { place: 'tenant', field: 'prompt', value: 1 },
        { place: 'tenant', field: 'scope', value: 1 },
      ].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
    );
  });

  it('is logged and counted once for each revision', async () => {
    await write({});
    await write({ clients: { broken: { prompt: 'x' } } }, test.tenant.id);
    for (let read = 0; read < 5; read += 1) {
      await catalog.list(test.tenant);
      await catalog.find(test.tenant, 'broken');
      now += 61_000;
    }
    expect(await invalid()).toEqual([{ place: 'tenant', field: 'prompt', value: 1 }]);
  });
});

describe('the catalogue of clients', () => {
  const configurationCalls = () => proxy.calls.filter((line) => line.includes('token-handler')).length;

  it('reads core configuration once a minute, and the tenant’s unless the client is a core client', async () => {
    await write({ clients: { a: {} } });
    await write({ clients: { b: {} } }, test.tenant.id);
    for (let read = 0; read < 10; read += 1) await catalog.find(test.tenant, 'b');
    expect(configurationCalls()).toBe(2);
    await catalog.find(test.otherTenant, 'a');
    expect(configurationCalls()).toBe(2);
    now += 61_000;
    await catalog.find(test.tenant, 'b');
    await expect.poll(configurationCalls).toBe(4);
  });

  it('survives an outage of the configuration service for 5 minutes and no longer, because targets grant permission', async () => {
    await write({ clients: { a: {} } });
    await catalog.find(test.tenant, 'a');
    await proxy.break(500, { at: 1 });
    now += 4 * 60_000;
    expect(await catalog.find(test.tenant, 'a')).toMatchObject({ id: 'a' });
    now += 2 * 60_000;
    await expect(catalog.find(test.tenant, 'a')).rejects.toMatchObject({ name: 'PlatformError', status: 502 });
    await expect(catalog.list(test.tenant)).rejects.toMatchObject({ name: 'PlatformError' });
  });

  it('fails while one of the two configurations cannot be read, so that no core client is missed', async () => {
    await proxy.break(500, { at: 1, times: 3 });
    await expect(catalog.find(test.tenant, 'a')).rejects.toMatchObject({ name: 'PlatformError' });
  });
});
