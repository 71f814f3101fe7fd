// Tests the sync of CoreClients with a real API server and a real configuration service.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashEntry } from '../../reconciler/core-clients/core-client.ts';
import type { Condition } from '../../reconciler/core-clients/resource.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createClientCatalog } from '../../src/token-handler/clients/catalog.ts';
import { captureLog } from '../support/captured-log.ts';
import { coreClientExamples } from './chart-parts.ts';
import { type SyncWorld, startSyncWorld } from './sync-world.ts';

let world: SyncWorld;
beforeAll(async () => {
  world = await startSyncWorld();
});
afterAll(() => world?.close());
beforeEach(() => world.reset());

const redirectUris = ['https://permits.example.org/token-handler/clients/permits/callback'];
const spec = { redirectUris, targets: [{ id: 'forms', upstream: 'form-service' }], keycloakLogout: true };
const entry = {
  id: 'permits',
  name: 'permits',
  redirectUris,
  targets: [{ id: 'forms', upstream: 'urn:example:platform:form-service' }],
  keycloakLogout: true,
};

async function conditions(name: string): Promise<Record<string, string>> {
  const { status } = await world.lab.read(name);
  return Object.fromEntries((status?.conditions ?? []).map((item) => [item.type, `${item.status} ${item.reason}`]));
}
const conditionOf = async (name: string, type: Condition['type']) =>
  (await world.lab.read(name)).status?.conditions.find((condition) => condition.type === type);

describe('a new CoreClient', () => {
  it('is written to the core configuration, recorded as owned, and reported in its status by one sync', async () => {
    await world.lab.create('permits', spec);
    const { writes, clusterWrites, counts, conditions: counted, failures, skipped } = await world.sync();
    expect(await world.clients()).toEqual({ permits: entry });
    expect(await world.owned()).toEqual(['permits']);
    expect({ failures, skipped }).toEqual({ failures: [], skipped: undefined });
    expect(writes).toEqual(['PATCH token-handler-core-clients', 'PATCH token-handler']);
    expect(clusterWrites).toEqual(['PATCH coreclients/permits/status', 'POST events']);
    expect(counts).toMatchObject({ resources: 1, accepted: 1, created: 1, unchanged: 0, statuses: 1, events: 1 });
    expect(counted).toEqual({
      'Accepted=True': 1,
      'Synced=True': 1,
      'TargetsResolved=True': 1,
      'Shadows=False': 1,
      'Ready=True': 1,
    });
    const { status, metadata } = await world.lab.read('permits');
    expect(status).toMatchObject({
      observedGeneration: 1,
      clientId: 'permits',
      revision: 0,
      syncedHash: hashEntry(entry),
      conditions: ['Accepted', 'Synced', 'TargetsResolved', 'Shadows', 'Ready'].map((type) => ({
        type,
        status: type === 'Shadows' ? 'False' : 'True',
        observedGeneration: 1,
      })),
    });
    expect(metadata.managedFields).toContainEqual(
      expect.objectContaining({ manager: 'formgate-reconciler', operation: 'Apply', subresource: 'status' }),
    );
    expect(await world.lab.events('permits')).toEqual(['Normal Synced']);
  });

  it('appears in every tenant’s list of clients at the token handler', async () => {
    await world.lab.create('permits', spec);
    await world.sync();
    const { test, platform } = world;
    const catalog = createClientCatalog({
      configuration: platform.configuration,
      urns: test.access.urns,
      redirectUriRules: { allowInsecure: false, allowWildcardPaths: false },
      log: captureLog().log,
      metrics: createMetrics(),
    });
    for (const tenant of [test.tenant, test.otherTenant])
      expect(await catalog.list(tenant)).toMatchObject([{ ...entry, core: true }]);
  });

  it('does not change the other core clients', async () => {
    await world.configure({ clients: { other: { name: 'Other' } }, top: { name: 'Top' } });
    await world.lab.create('permits', spec);
    await world.sync();
    expect(await world.clients()).toEqual({ other: { name: 'Other' }, permits: entry });
  });

  it('can have a client id that differs from its name', async () => {
    await world.lab.create('permits', { ...spec, clientId: 'Permits of 2026' });
    await world.sync();
    const clients = await world.clients();
    expect(clients).toEqual({ 'Permits of 2026': { ...entry, id: 'Permits of 2026', name: 'Permits of 2026' } });
    expect((await world.lab.read('permits')).status).toMatchObject({ clientId: 'Permits of 2026' });
  });
});

describe('the examples of the chart', () => {
  it('are all accepted and ready', async () => {
    const examples = coreClientExamples();
    for (const { metadata, spec: given } of examples) await world.lab.create(metadata.name, given);
    const { conditions: counted, failures } = await world.sync();
    expect(failures).toEqual([]);
    expect(counted).toMatchObject({ 'Ready=True': examples.length });
    expect(Object.keys(await world.clients()).sort()).toEqual(['Public records', 'permits', 'portal']);
  });
});

describe('the API server', () => {
  it('is called over TLS, with the certificate authority of the kubeconfig', async () => {
    await world.lab.create('permits', spec);
    const { failures, counts } = await world.sync({ kubeconfig: world.lab.directKubeconfig });
    expect(failures).toEqual([]);
    expect(counts).toMatchObject({ statuses: 1, events: 1 });
    expect(await conditions('permits')).toMatchObject({ Ready: 'True Ready' });
  });

  it('is called on a few connections, however many resources exist', async () => {
    for (let n = 0; n < 40; n += 1) await world.lab.create(`c${n}`, spec);
    const before = world.lab.proxy.connections();
    expect((await world.sync()).clusterWrites).toHaveLength(80);
    // The sync sends its 81 requests over at most 20 connections.
    expect(world.lab.proxy.connections() - before).toBeLessThanOrEqual(20);
  });
});

describe('a sync writes nothing', () => {
  it('if nothing has changed', async () => {
    await world.lab.create('permits', spec);
    await world.lab.create('broken', { redirectUris: ['http://permits.example.org/'] });
    await world.sync();
    const { resourceVersion } = (await world.lab.read('permits')).metadata;
    const { writes, clusterWrites, counts } = await world.sync();
    expect({ writes, clusterWrites }).toEqual({ writes: [], clusterWrites: [] });
    expect(counts).toMatchObject({ resources: 2, accepted: 1, refused: 1, unchanged: 1, statuses: 0, events: 0 });
    expect((await world.lab.read('permits')).metadata.resourceVersion).toBe(resourceVersion);
  });

  it('in a dry run, which reports what it would do', async () => {
    await world.lab.create('permits', spec);
    const builderUrl = 'https://builder.example.org';
    const { writes, clusterWrites, counts, log } = await world.sync({ dryRun: true, builderUrl });
    expect({ writes, clusterWrites }).toEqual({ writes: [], clusterWrites: [] });
    expect(counts).toMatchObject({ created: 1, builderPreview: 1 });
    expect(await world.clients()).toEqual({});
    expect((await world.lab.read('permits')).status).toBeUndefined();
    const reported = log.lines().filter(({ dryRun }) => dryRun === true);
    expect(reported.map(({ client, change }) => [client, change])).toEqual([
      ['permits', 'created'],
      ['builder-preview', undefined],
    ]);
  });

  it.each([0, 1, 2, 3])(
    'after the lease is lost, here after %i of four writes; the next sync does the rest',
    async (allowed) => {
      await world.lab.create('permits', spec);
      const lost = new Error('the lease is lost');
      let renewals = 0;
      const renewLease = async () => {
        renewals += 1;
        if (renewals > allowed) throw lost;
      };
      const written = () =>
        world.configurationProxy.calls.filter((line) => !line.startsWith('GET')).length +
        world.lab.proxy.calls.filter(({ method }) => method !== 'GET').length;
      const before = written();
      await expect(world.sync({ renewLease })).rejects.toBe(lost);
      expect(written() - before).toBe(allowed);
      const { failures, counts } = await world.sync();
      expect(failures).toEqual([]);
      expect(counts).toMatchObject({ accepted: 1, repaired: 0 });
      expect(await world.clients()).toEqual({ permits: entry });
      expect(await conditions('permits')).toMatchObject({ Ready: 'True Ready' });
    },
  );
});

describe('a change of a CoreClient', () => {
  it('causes one write of the configuration and one of the status, without an Event', async () => {
    await world.lab.create('permits', spec);
    await world.lab.create('other', spec);
    await world.sync();
    const ready = await conditionOf('permits', 'Ready');
    await world.lab.patch('permits', { spec: { description: 'Permits' } });
    const { writes, clusterWrites, counts } = await world.sync();
    expect(writes).toEqual(['PATCH token-handler']);
    expect(clusterWrites).toEqual(['PATCH coreclients/permits/status']);
    expect(counts).toMatchObject({ updated: 1, unchanged: 1, repaired: 0 });
    expect(await world.clients()).toMatchObject({ permits: { ...entry, description: 'Permits' } });
    const { status } = await world.lab.read('permits');
    expect(status).toMatchObject({
      observedGeneration: 2,
      syncedHash: hashEntry({ ...entry, description: 'Permits' }),
    });
    expect(await conditionOf('permits', 'Ready')).toEqual({ ...ready, observedGeneration: 2 });
    expect(await world.lab.events('permits')).toEqual(['Normal Synced']);
  });

  it('that removes a field removes it from the configuration', async () => {
    await world.lab.create('permits', { ...spec, description: 'Permits' });
    await world.sync();
    await world.lab.patch('permits', { spec: { description: null, targets: null } });
    await world.sync();
    expect(await world.clients()).toEqual({ permits: { ...entry, targets: [] } });
  });

  it('that breaks a rule of the platform keeps the previous version, and the status says so', async () => {
    await world.lab.create('permits', spec);
    await world.sync();
    await world.lab.patch('permits', { spec: { targets: [{ id: 'forms', upstream: 'urn:other:platform:forms' }] } });
    const { failures, writes } = await world.sync();
    expect({ failures, writes }).toEqual({ failures: [], writes: [] });
    expect(await world.clients()).toEqual({ permits: entry });
    expect(await conditions('permits')).toEqual({
      Accepted: 'False Invalid',
      Synced: 'False NotAccepted',
      TargetsResolved: 'Unknown NotAccepted',
      // The last accepted version stays in the core configuration, so it may still shadow clients of tenants.
      Shadows: 'False NoTenantsAffected',
      Ready: 'False Invalid',
    });
    expect((await conditionOf('permits', 'Accepted'))?.message).toMatch(/^targets\[0\]\.upstream: must be/);
    expect((await conditionOf('permits', 'Synced'))?.message).toContain('stays in the core configuration');
    expect((await world.lab.read('permits')).status).toMatchObject({ syncedHash: hashEntry(entry) });
    await world.lab.patch('permits', { spec });
    await world.sync();
    expect(await world.lab.events('permits')).toEqual([
      'Normal Synced',
      'Warning Invalid',
      'Normal Accepted',
      'Normal Synced',
    ]);
  });

  it('of its status by others is repaired', async () => {
    await world.lab.create('permits', spec);
    await world.sync();
    const { status } = await world.lab.read('permits');
    const place = { group: 'formgate.dev', version: 'v1alpha1', plural: 'coreclients', namespace: world.lab.namespace };
    const body = [{ op: 'replace', path: '/status/syncedHash', value: 'x' }];
    await world.lab.objects.patchNamespacedCustomObjectStatus({ ...place, name: 'permits', body });
    const { writes, clusterWrites } = await world.sync();
    expect({ writes, clusterWrites }).toEqual({ writes: [], clusterWrites: ['PATCH coreclients/permits/status'] });
    expect((await world.lab.read('permits')).status).toEqual(status);
  });
});

describe('a CoreClient that is not accepted', () => {
  it('because of an insecure redirect URI is accepted if the platform allows these', async () => {
    await world.lab.create('permits', { redirectUris: ['http://permits.example.org/cb'] });
    const { failures, conditions: counted } = await world.sync();
    expect(failures).toEqual([]);
    expect(counted).toEqual({
      'Accepted=False': 1,
      'Synced=False': 1,
      'TargetsResolved=Unknown': 1,
      'Shadows=Unknown': 1,
      'Ready=False': 1,
    });
    expect(await conditionOf('permits', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'Invalid',
      message: 'redirectUris[0]: must be https, except for localhost, 127.0.0.1 and [::1]',
    });
    expect(await world.clients()).toEqual({});
    expect(await world.lab.events('permits')).toEqual(['Warning Invalid']);
    await world.sync({ allowInsecureRedirectUris: true });
    expect(await conditions('permits')).toMatchObject({ Ready: 'True Ready' });
  });

  it('because an older one has the same client id is accepted after the older one is deleted', async () => {
    await world.lab.create('z-older', { ...spec, clientId: 'permits' });
    // Creation times have a resolution of one second, so wait until the next CoreClient gets a later creation time.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await world.lab.create('a-newer', { ...spec, clientId: 'permits', keycloakLogout: false });
    const { failures } = await world.sync();
    expect(failures).toEqual([]);
    expect(await world.clients()).toEqual({ permits: entry });
    expect(await conditions('z-older')).toMatchObject({ Ready: 'True Ready' });
    expect(await conditionOf('a-newer', 'Accepted')).toMatchObject({
      status: 'False',
      reason: 'Duplicate',
      message: 'The older resource z-older has the same client id.',
    });
    expect(await world.lab.events('a-newer')).toEqual(['Warning Duplicate']);
    await world.lab.remove('z-older');
    await world.sync();
    expect(await world.clients()).toEqual({ permits: { ...entry, keycloakLogout: false } });
    expect(await conditions('a-newer')).toMatchObject({ Ready: 'True Ready' });
  });

  it.each([
    ['under clients', { clients: { permits: { name: 'by hand' } } }],
    ['at the top', { permits: { name: 'by hand' } }],
  ])('because its id already exists in the core configuration, %s, does not change it', async (_, configuration) => {
    await world.configure(configuration);
    await world.lab.create('permits', spec);
    const { failures, writes } = await world.sync();
    expect({ failures, writes }).toEqual({ failures: [], writes: [] });
    expect(await conditions('permits')).toMatchObject({ Accepted: 'False NotOwned', Ready: 'False NotOwned' });
    expect(await world.owned()).toEqual([]);
    await world.lab.remove('permits');
    expect((await world.sync({ allowPrune: true })).writes).toEqual([]);
    await world.lab.create('permits', spec);
    await world.configure({});
    await world.sync();
    expect(await conditions('permits')).toMatchObject({ Ready: 'True Ready' });
  });

  it('because it is named builder-preview is accepted if there is no builder', async () => {
    await world.lab.create('builder-preview', spec);
    await world.sync();
    expect(await conditions('builder-preview')).toMatchObject({ Ready: 'True Ready' });
    expect(await world.owned()).toEqual(['builder-preview']);
    await world.sync({ builderUrl: 'https://builder.example.org' });
    expect(await conditions('builder-preview')).toMatchObject({ Accepted: 'False Reserved' });
    expect(await world.owned()).toEqual([]);
    const preview = { redirectUris: ['https://builder.example.org/token-handler/clients/builder-preview/callback'] };
    expect(await world.clients()).toMatchObject({ 'builder-preview': preview });
    await world.lab.remove('builder-preview');
    await world.sync({ builderUrl: 'https://builder.example.org', allowPrune: true });
    expect(await world.clients()).toMatchObject({ 'builder-preview': preview });
  });

  it('of another namespace is not read', async () => {
    const elsewhere = await startElsewhere();
    try {
      await world.lab.create('permits', spec, elsewhere.namespace);
      expect((await world.sync()).counts).toMatchObject({ resources: 0 });
      expect(await world.clients()).toEqual({});
    } finally {
      await elsewhere.close();
    }
  });
});

describe('a manual change of the core configuration', () => {
  it.each([
    ['changed', { permits: { ...entry, targets: [{ id: 'all', upstream: 'configuration-service' }] } }],
    ['removed', {}],
  ])('is repaired if the client was %s, with an Event, one write and no new status', async (_, clients) => {
    await world.lab.create('permits', spec);
    await world.sync();
    await world.configure({ clients });
    const { writes, clusterWrites, counts, failures } = await world.sync();
    expect({ writes, clusterWrites, failures }).toEqual({
      writes: ['PATCH token-handler'],
      clusterWrites: ['POST events'],
      failures: [],
    });
    expect(counts).toMatchObject({ repaired: 1, events: 1 });
    expect(await world.clients()).toEqual({ permits: entry });
    expect(await world.lab.events('permits')).toEqual(['Normal Synced', 'Warning Repaired']);
    expect((await world.sync()).clusterWrites).toEqual([]);
  });

  it('of builder-preview is repaired, and the log contains both versions', async () => {
    const builderUrl = 'https://builder.example.org';
    await world.sync({ builderUrl });
    const before = { ...(await world.clients())['builder-preview'], targets: [] };
    await world.configure({ clients: { 'builder-preview': before } });
    const { writes, log, counts } = await world.sync({ builderUrl });
    expect(writes).toEqual(['PATCH token-handler']);
    expect(counts).toMatchObject({ builderPreview: 1 });
    expect((await world.clients())['builder-preview']).toMatchObject({
      targets: [{ id: 'form-service' }, expect.anything()],
    });
    expect(log.lines()).toContainEqual(
      expect.objectContaining({ msg: 'maintained core client change planned', before, after: expect.anything() }),
    );
    expect((await world.sync({ builderUrl })).writes).toEqual([]);
  });
});

describe('a core client without a CoreClient', () => {
  const create = async (...names: string[]) => {
    for (const name of names) await world.lab.create(name, spec);
    await world.sync();
  };

  it('is removed if the reconciler owns it, and other clients are not', async () => {
    await world.configure({ clients: { foreign: { name: 'Foreign' } } });
    await create('a', 'b', 'c');
    await world.lab.remove('a');
    const { writes, counts } = await world.sync();
    expect(Object.keys(await world.clients()).sort()).toEqual(['b', 'c', 'foreign']);
    expect(await world.owned()).toEqual(['b', 'c']);
    expect(writes).toEqual(['PATCH token-handler', 'PATCH token-handler-core-clients']);
    expect(counts).toMatchObject({ pruned: 1, held: 0 });
  });

  it('stays, with a warning, if more than half of the owned clients would be removed, unless that is allowed', async () => {
    await create('a', 'b', 'c');
    await world.lab.remove('a');
    await world.lab.remove('b');
    const { writes, counts, failures, log } = await world.sync();
    expect({ writes, failures }).toEqual({ writes: [], failures: [] });
    expect(counts).toMatchObject({ pruned: 0, held: 2 });
    expect(log.text()).toContain('--allow-prune');
    expect((await world.sync({ allowPrune: true, dryRun: true })).counts).toMatchObject({ pruned: 2 });
    expect(Object.keys(await world.clients())).toHaveLength(3);
    expect((await world.sync({ allowPrune: true })).counts).toMatchObject({ pruned: 2, held: 0 });
    expect(Object.keys(await world.clients())).toEqual(['c']);
  });

  it('stays if there is no CoreClient at all, unless its removal is allowed', async () => {
    await create('a');
    await world.lab.remove('a');
    expect((await world.sync()).counts).toMatchObject({ pruned: 0, held: 1 });
    expect(Object.keys(await world.clients())).toEqual(['a']);
    await world.sync({ allowPrune: true });
    expect(await world.clients()).toEqual({});
    expect(await world.owned()).toEqual([]);
  });

  it('stays if another owner wrote it', async () => {
    await create('a');
    await world.lab.remove('a');
    expect((await world.sync({ owner: 'another', allowPrune: true })).writes).toEqual([]);
    await world.lab.create('a', spec);
    await world.sync({ owner: 'another' });
    expect(await conditions('a')).toMatchObject({ Accepted: 'False NotOwned' });
    expect(await world.owned()).toEqual(['a']);
  });

  it('is removed from the record if it was already removed by hand', async () => {
    await create('a', 'b', 'c');
    await world.lab.remove('a');
    await world.configure({ clients: { b: (await world.clients()).b, c: (await world.clients()).c } });
    expect((await world.sync()).writes).toEqual(['PATCH token-handler-core-clients']);
    expect(await world.owned()).toEqual(['b', 'c']);
  });
});

/** Creates a second namespace in the same cluster. */
async function startElsewhere() {
  const { CoreV1Api } = await import('@kubernetes/client-node');
  const core = world.lab.admin.makeApiClient(CoreV1Api);
  const namespace = `${world.lab.namespace}-b`;
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  return { namespace, close: async () => void (await core.deleteNamespace({ name: namespace })) };
}
