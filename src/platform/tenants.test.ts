import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerJson, type FaultServer, startFaultServer } from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { createTenants, type TenantDirectory } from './tenants.ts';

const id = (name: string) => `urn:example:platform:tenant-service:v2:/tenants/${name}`;
const blueRiver = { id: id('1'), name: 'Blue River', realm: '0b7e2c51' };
const demo = { id: id('2'), name: 'Demo', realm: 'demo' };
const page = (...results: object[]) => answerJson({ results, page: { size: results.length } });

let server: FaultServer;
let calls: PlatformCalls;
let tenants: TenantDirectory;

beforeEach(async () => {
  calls = createPlatformCalls();
  server = await startFaultServer(page({ ...blueRiver, status: 'active', adminEmail: 'pat@example.org' }, demo));
  tenants = createTenants({ ...calls.options, client: calls.client('tenants', server.url) });
});

afterEach(async () => {
  await calls.close();
  await server.close();
});

describe('a tenant', () => {
  it('is found by realm and by id, and contains only id, name and realm', async () => {
    expect(await tenants.byRealm('0b7e2c51')).toEqual(blueRiver);
    expect(await tenants.byId(id('2'))).toEqual(demo);
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({ method: 'GET', target: '/tenants' });
  });

  it.each(['Blue River', 'blue river', 'BLUE RIVER', 'blue-river', 'Blue-River'])(
    'is found by name as "%s"',
    async (name) => {
      expect(await tenants.byName(name)).toEqual(blueRiver);
    },
  );

  it('is not found by a part of its name, id or realm', async () => {
    for (const name of ['Blue', 'blueriver', '', '.*', 'Blue  River'])
      expect(await tenants.byName(name)).toBeUndefined();
    expect(await tenants.byId('1')).toBeUndefined();
    expect(await tenants.byRealm('Demo')).toBeUndefined();
    expect(await tenants.byRealm('__proto__')).toBeUndefined();
  });

  it('never has realm core, even if the tenant service says so', async () => {
    server.behave(page({ id: id('9'), name: 'Evil', realm: 'core' }));
    expect(await tenants.byRealm('core')).toBeUndefined();
    expect(await tenants.byName('Evil')).toBeUndefined();
  });

  it('that is inactive is not found', async () => {
    server.behave(page({ ...demo, status: 'provisioning' }));
    expect(await tenants.byRealm('demo')).toBeUndefined();
  });
});

describe('the list of tenants', () => {
  it('is fetched once by many concurrent first lookups', async () => {
    await Promise.all(Array.from({ length: 50 }, () => tenants.byRealm('demo')));
    expect(server.requests).toHaveLength(1);
  });

  it('is fetched by preload before it is needed', async () => {
    await tenants.preload();
    expect(await tenants.byRealm('demo')).toEqual(demo);
    expect(server.requests).toHaveLength(1);
  });

  it('is fetched again for an unknown realm, so that a new tenant is found immediately', async () => {
    await tenants.byRealm('demo');
    server.behave(page(demo, { id: id('3'), name: 'New', realm: 'new' }));
    expect(await tenants.byRealm('new')).toMatchObject({ name: 'New' });
  });

  it('is fetched at most once a second for random realms', async () => {
    for (let realm = 0; realm < 500; realm += 1) {
      calls.advance(10);
      expect(await tenants.byRealm(`random-${realm}`)).toBeUndefined();
    }
    expect(server.requests.length).toBeLessThanOrEqual(6);
  });

  it('that cannot be fetched is an error, even for an unknown tenant', async () => {
    await tenants.preload();
    await server.close();
    calls.advance(6_000);
    await expect(tenants.byRealm('new')).rejects.toMatchObject({ service: 'tenants', kind: 'unreachable' });
    expect(await tenants.byRealm('demo')).toEqual(demo);
  });
});

it.each([400, 404, 421])('a list that a proxy refuses with %i still serves the tenants of before', async (status) => {
  expect(await tenants.byRealm('demo')).toEqual(demo);
  server.behave((response) => response.writeHead(status).end());
  calls.advance(3_600_000);
  expect(await tenants.byRealm('demo')).toEqual(demo);
  await expect.poll(() => server.requests.length).toBeGreaterThan(1);
  calls.advance(3_600_000);
  expect(await tenants.byRealm('demo')).toEqual(demo);
});
