// Tests what the status of a CoreClient says about tenants and targets, and the Event of the pruning guard, with a real
// API server and a real configuration service.
import { EventsV1Api } from '@kubernetes/client-node';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Condition } from '../../reconciler/core-clients/resource.ts';
import { type SyncWorld, startSyncWorld } from './sync-world.ts';

let world: SyncWorld;
beforeAll(async () => {
  world = await startSyncWorld();
});
afterAll(() => world?.close());
beforeEach(() => world.reset());

const spec = { targets: [{ id: 'forms', upstream: 'form-service' }] };
const conditionOf = async (name: string, type: Condition['type']) =>
  (await world.lab.read(name)).status?.conditions.find((condition) => condition.type === type);

describe('a CoreClient with the id of a tenant’s own client', () => {
  it('lists the tenant in its status and in one Event, and is Ready', async () => {
    const { tenant } = world.test;
    await world.configure({ clients: { permits: { name: 'Own' }, other: { name: 'Other' } } }, tenant.id);
    await world.lab.create('permits', spec);
    const { conditions, counts, failures, log } = await world.sync();
    expect(failures).toEqual([]);
    expect(conditions).toMatchObject({ 'Shadows=True': 1, 'Ready=True': 1 });
    expect(counts).toMatchObject({ tenantsRead: 2, tenantsUnread: 0 });
    expect(await conditionOf('permits', 'Shadows')).toMatchObject({
      status: 'True',
      reason: 'TenantsAffected',
      message: expect.stringMatching(/ignores: Demo\.$/),
    });
    expect((await world.lab.read('permits')).status).toMatchObject({ shadowedTenants: [tenant.id] });
    expect(await world.lab.events('permits')).toEqual(['Normal Synced', 'Warning TenantsAffected']);
    expect(log.lines()).toContainEqual(expect.objectContaining({ client: 'permits', tenants: [tenant.id], count: 1 }));
    expect((await world.sync()).clusterWrites).toEqual([]);
  });

  it('reports another affected tenant, and when no tenant is affected any more, once each', async () => {
    const { tenant, otherTenant } = world.test;
    await world.configure({ permits: { name: 'Own, at the top level' } }, tenant.id);
    await world.lab.create('permits', spec);
    await world.sync();
    await world.configure({ clients: { permits: { name: 'Own' } } }, otherTenant.id);
    await world.sync();
    expect((await conditionOf('permits', 'Shadows'))?.message).toMatch(/Demo, Other Town\.$/);
    for (const { id } of [tenant, otherTenant]) await world.configure({}, id);
    await world.sync();
    expect(await conditionOf('permits', 'Shadows')).toMatchObject({ status: 'False', reason: 'NoTenantsAffected' });
    expect((await world.lab.read('permits')).status).not.toHaveProperty('shadowedTenants');
    expect(await world.lab.events('permits')).toEqual([
      'Normal Synced',
      'Warning TenantsAffected',
      'Warning TenantsAffected',
      'Normal NoTenantsAffected',
    ]);
  });
});

describe('a target whose upstream the directory does not know', () => {
  const unknown = { targets: [...spec.targets, { id: 'maps', upstream: 'map-service' }] };

  it('makes the CoreClient not Ready, with one Event, while the client is written', async () => {
    await world.lab.create('permits', unknown);
    expect((await world.sync()).failures).toEqual([]);
    expect(Object.keys(await world.clients())).toEqual(['permits']);
    expect(await conditionOf('permits', 'Synced')).toMatchObject({ status: 'True' });
    for (const type of ['TargetsResolved', 'Ready'] as const)
      expect(await conditionOf('permits', type)).toMatchObject({
        status: 'False',
        reason: 'UpstreamUnknown',
        message: expect.stringContaining('maps (urn:example:platform:map-service)'),
      });
    expect((await conditionOf('permits', 'Ready'))?.message).not.toContain('forms');
    expect((await world.sync()).clusterWrites).toEqual([]);
    expect(await world.lab.events('permits')).toEqual(['Normal Synced', 'Warning UpstreamUnknown']);
  });

  it('makes it Ready again when it is gone', async () => {
    await world.lab.create('permits', unknown);
    await world.sync();
    await world.lab.patch('permits', { spec });
    await world.sync();
    expect(await conditionOf('permits', 'Ready')).toMatchObject({ status: 'True' });
    expect((await world.lab.events('permits')).at(-1)).toBe('Normal Resolved');
  });
});

describe('the pruning guard', () => {
  async function heldEvents() {
    const { admin, namespace } = world.lab;
    const { items } = await admin
      .makeApiClient(EventsV1Api)
      .listNamespacedEvent({ namespace, fieldSelector: 'reason=PruneHeld' });
    return items.map(({ type, note, regarding }) => ({ type, note, kind: regarding?.kind, name: regarding?.name }));
  }

  it('writes one Event for the clients that it keeps, and another one only for other clients', async () => {
    for (const name of ['a', 'b', 'c']) await world.lab.create(name, { ...spec, clientId: `Client ${name}` });
    await world.sync();
    for (const name of ['a', 'b']) await world.lab.remove(name);
    expect((await world.sync()).counts).toMatchObject({ held: 2, events: 1 });
    const first = { type: 'Warning', note: expect.stringMatching(/: Client a, Client b\.$/), kind: 'CoreClient' };
    expect(await heldEvents()).toEqual([{ ...first, name: 'client-a' }]);
    expect((await world.sync()).counts).toMatchObject({ held: 2, events: 0 });
    await world.lab.remove('c');
    expect((await world.sync()).counts).toMatchObject({ held: 3, events: 1 });
    expect(await heldEvents()).toHaveLength(2);
  });
});
