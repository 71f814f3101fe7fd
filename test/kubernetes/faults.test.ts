// Tests a sync while the API server or the configuration service fails. The sync reports the failure in one clear line.
// It changes nothing that depends on data that it could not read, and still maintains the core client builder-preview.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiCall, ApiFault } from './api-proxy.ts';
import { reconcilerRules } from './chart-parts.ts';
import { installDefinition, removeDefinition } from './lab.ts';
import { type SyncWorld, startSyncWorld } from './sync-world.ts';

let world: SyncWorld;
beforeAll(async () => {
  world = await startSyncWorld();
});
afterAll(() => world?.close());
beforeEach(() => world.reset());

const spec = { redirectUris: ['https://permits.example.org/cb'] };
const builderUrl = 'https://builder.example.org';
const ids = async () => Object.keys(await world.clients()).sort();

const isList = ({ method }: ApiCall) => method === 'GET';
const isStatus = ({ method }: ApiCall) => method === 'PATCH';
const isEvent = ({ method }: ApiCall) => method === 'POST';

/** Breaks the first `times` calls that match. Returns a list to which each broken call is added. */
function breakCalls(matches: (call: ApiCall) => boolean, fault: ApiFault, times = Number.POSITIVE_INFINITY) {
  const broken: ApiCall[] = [];
  world.lab.proxy.breakWith((call) => {
    if (!matches(call) || broken.length >= times) return undefined;
    broken.push(call);
    return fault;
  });
  return broken;
}

describe('if the resources cannot be listed', () => {
  const list = 'cannot list coreclients.formgate.dev';

  it.each<{ title: string; fault: ApiFault; timeout?: number; failure: string; calls: number }>([
    {
      title: 'hangs',
      fault: 'hang',
      timeout: 500,
      failure: `${list}: the API server did not respond in time`,
      calls: 1,
    },
    {
      title: 'breaks every connection',
      fault: 'reset',
      failure: `${list}: the API server cannot be reached, ECONNRESET`,
      calls: 4,
    },
    {
      title: 'always responds with 429',
      fault: { status: 429, retryAfter: 0 },
      failure: `${list}: the API server is busy (429)`,
      calls: 4,
    },
    { title: 'responds with 500', fault: { status: 500 }, failure: `${list}: the API server failed (500)`, calls: 4 },
    {
      title: 'responds with 401',
      fault: { status: 401 },
      failure: `${list}: the API server does not accept the token of this account (401)`,
      calls: 1,
    },
  ])(
    'because the API server $title, the sync reports one failure and maintains builder-preview',
    async ({ fault, timeout, failure, calls }) => {
      for (const name of ['a', 'b']) await world.lab.create(name, spec);
      await world.sync();
      await world.lab.removeAll();
      const broken = breakCalls(isList, fault);
      const { failures, skipped, counts, writes } = await world.sync({
        allowPrune: true,
        builderUrl,
        ...(timeout !== undefined && { timeout }),
      });
      expect(failures).toEqual([failure]);
      expect(skipped).toBe('the resources cannot be read');
      expect(broken).toHaveLength(calls);
      expect(counts).toMatchObject({ pruned: 0, builderPreview: 1 });
      expect(writes).toEqual(['PATCH token-handler']);
      expect(await ids()).toEqual(['a', 'b', 'builder-preview']);
    },
  );

  it('because of a single 429 with Retry-After, the sync retries after that time', async () => {
    await world.lab.create('a', spec);
    const broken = breakCalls(isList, { status: 429, retryAfter: 1 }, 1);
    const { failures, milliseconds } = await world.sync();
    expect(failures).toEqual([]);
    expect(broken).toHaveLength(1);
    expect(milliseconds).toBeGreaterThan(700);
    expect(await ids()).toEqual(['a']);
  });
});

describe('a list in pages', () => {
  it('is read completely', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await world.lab.create(name, spec);
    world.lab.proxy.calls.length = 0;
    await world.sync({ pageSize: 2 });
    expect(world.lab.proxy.calls.filter(isList)).toHaveLength(3);
    expect(await ids()).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  const isFurther = (call: ApiCall) => isList(call) && call.url.includes('continue=');

  it('that expires between two pages (410) is read again from the beginning', async () => {
    for (const name of ['a', 'b', 'c']) await world.lab.create(name, spec);
    breakCalls(isFurther, { status: 410, reason: 'Expired' }, 1);
    world.lab.proxy.calls.length = 0;
    const { failures, counts } = await world.sync({ pageSize: 2 });
    expect(failures).toEqual([]);
    expect(counts).toMatchObject({ resources: 3 });
    const lists = world.lab.proxy.calls.filter(isList).map(({ url }) => url.includes('continue='));
    expect(lists).toEqual([false, true, false, true]);
  });

  it('that keeps expiring is a failure, and no client is removed', async () => {
    for (const name of ['a', 'b', 'c']) await world.lab.create(name, spec);
    await world.sync();
    breakCalls(isFurther, { status: 410, reason: 'Expired' });
    const { failures, writes } = await world.sync({ pageSize: 2, allowPrune: true });
    expect(failures).toEqual(['cannot list coreclients.formgate.dev: the list kept expiring while it was read (410)']);
    expect(writes).toEqual([]);
    expect(await ids()).toEqual(['a', 'b', 'c']);
  });
});

describe('a cluster without the CustomResourceDefinition', () => {
  it('is reported as a failure, and no client is removed', async () => {
    for (const name of ['a', 'b']) await world.lab.create(name, spec);
    await world.sync();
    await removeDefinition(world.lab.admin);
    try {
      const absent = 'cannot list coreclients.formgate.dev: the cluster has no such custom resource definition';
      await expect
        .poll(async () => (await world.sync({ allowPrune: false })).failures, { timeout: 60_000 })
        .toEqual([`${absent}: install the chart, or its CRD`]);
      const { skipped, writes } = await world.sync({ allowPrune: true });
      expect({ skipped, writes }).toEqual({ skipped: 'the resources cannot be read', writes: [] });
      expect(await ids()).toEqual(['a', 'b']);
    } finally {
      await installDefinition(world.lab.admin);
    }
  });
});

describe('a status that cannot be written', () => {
  const patch = 'cannot patch coreclients/status.formgate.dev';

  it.each<{ title: string; fault: ApiFault; timeout?: number; failure: string }>([
    { title: 'hangs', fault: 'hang', timeout: 5_000, failure: `${patch}: the API server did not respond in time` },
    {
      title: 'always responds with 429',
      fault: { status: 429, retryAfter: 0 },
      failure: `${patch}: the API server is busy (429)`,
    },
    { title: 'responds with 503', fault: { status: 503 }, failure: `${patch}: the API server failed (503)` },
    // Not tested here: if the API server rejects the status of a single resource (422), the resource is quarantined.
    // See reconciler/core-clients/refusals.test.ts.
    {
      title: 'denies it',
      fault: { status: 403 },
      failure: `${patch}: the Role of this account does not allow it (403)`,
    },
  ])('because the API server $title is one failure for all resources, and the clients are written', async (given) => {
    const names = Array.from({ length: 30 }, (_, n) => `c${n}`);
    for (const name of names) await world.lab.create(name, spec);
    const broken = breakCalls(isStatus, given.fault);
    const { failures, counts } = await world.sync(given.timeout === undefined ? {} : { timeout: given.timeout });
    expect(failures).toEqual([given.failure]);
    expect(counts).toMatchObject({ created: 30, statuses: 0, events: 0 });
    // After the first failure, only the calls that were already running are retried.
    expect(broken.length).toBeLessThanOrEqual(8 * 4);
    expect(await ids()).toHaveLength(30);
    world.lab.proxy.breakWith(undefined);
    const { counts: later, writes } = await world.sync();
    expect(writes).toEqual([]);
    expect(later).toMatchObject({ unchanged: 30, statuses: 30, events: 30 });
  });

  /** Returns a function that runs `work` once, after the clients were written and before any status is written. */
  function betweenWrites(work: () => Promise<unknown>): () => Promise<void> {
    let done: Promise<unknown> | undefined;
    const isWritten = (line: string) => line.startsWith('PATCH') && /\/token-handler(\?|$)/.test(line);
    return async () => {
      if (!done && world.configurationProxy.calls.some(isWritten)) done = work();
      await done;
    };
  }

  it('because its resource was deleted meanwhile is not a failure', async () => {
    await world.lab.create('a', spec);
    const renewLease = betweenWrites(() => world.lab.remove('a'));
    const { failures, counts, clusterWrites } = await world.sync({ renewLease });
    expect(clusterWrites).toEqual(['PATCH coreclients/a/status']);
    expect(failures).toEqual([]);
    expect(counts).toMatchObject({ created: 1, statuses: 0, events: 0 });
  });

  it('because its resource was changed meanwhile (409) is written by the next sync', async () => {
    await world.lab.create('a', spec);
    const renewLease = betweenWrites(() => world.lab.patch('a', { spec: { description: 'new' } }));
    const { failures, counts, clusterWrites } = await world.sync({ renewLease });
    expect(clusterWrites).toEqual(['PATCH coreclients/a/status']);
    expect(failures).toEqual([]);
    expect(counts).toMatchObject({ statuses: 0, events: 0 });
    await world.sync();
    expect((await world.lab.read('a')).status).toMatchObject({ observedGeneration: 2 });
    expect(await world.clients()).toMatchObject({ a: { description: 'new' } });
    expect(await world.lab.events('a')).toEqual(['Normal Synced']);
  });

  it('because its resource was replaced meanwhile (409) is not written to the new resource', async () => {
    await world.lab.create('a', spec);
    const renewLease = betweenWrites(async () => {
      await world.lab.remove('a');
      await world.lab.create('a', { ...spec, description: 'anew' });
    });
    const { failures, counts, clusterWrites } = await world.sync({ renewLease });
    expect(clusterWrites).toEqual(['PATCH coreclients/a/status']);
    expect(failures).toEqual([]);
    expect(counts).toMatchObject({ statuses: 0, events: 0 });
    expect((await world.lab.read('a')).status).toBeUndefined();
    await world.sync();
    expect((await world.lab.read('a')).status).toMatchObject({ observedGeneration: 1, clientId: 'a' });
    expect(await world.clients()).toMatchObject({ a: { description: 'anew' } });
  });
});

describe('a sync that is asked to stop', () => {
  it('writes no further status and reports no failure; the next sync writes the rest', async () => {
    for (let n = 0; n < 30; n += 1) await world.lab.create(`c${n}`, spec);
    const ending = new AbortController();
    world.lab.proxy.breakWith((call) => {
      if (isStatus(call)) ending.abort();
      return undefined;
    });
    const { failures, counts } = await world.sync({ signal: ending.signal });
    expect(failures).toEqual([]);
    expect(counts.created).toBe(30);
    expect(counts.statuses).toBeLessThanOrEqual(8);
    const { counts: later, conditions } = await world.sync();
    expect(later).toMatchObject({ unchanged: 30, statuses: 30 - (counts.statuses ?? 0) });
    expect(conditions).toMatchObject({ 'Ready=True': 30 });
  });
});

describe('an Event that cannot be created', () => {
  it('is one failure, and the statuses are still written', async () => {
    for (const name of ['a', 'b', 'c']) await world.lab.create(name, spec);
    breakCalls(isEvent, { status: 500 });
    const { failures, counts } = await world.sync();
    expect(failures).toEqual(['cannot create events.events.k8s.io: the API server failed (500)']);
    expect(counts).toMatchObject({ statuses: 3, events: 0 });
  });

  it('at first is retried, and created once', async () => {
    await world.lab.create('a', spec);
    breakCalls(isEvent, 'reset', 2);
    expect((await world.sync()).failures).toEqual([]);
    expect(await world.lab.events('a')).toEqual(['Normal Synced']);
  });
});

describe('an account that lacks a verb', () => {
  it.each([
    {
      lacks: 'list of coreclients',
      resource: 'coreclients',
      failure: 'cannot list coreclients.formgate.dev: the Role of this account does not allow it (403)',
      written: [],
    },
    {
      lacks: 'patch of coreclients/status',
      resource: 'coreclients/status',
      failure: 'cannot patch coreclients/status.formgate.dev: the Role of this account does not allow it (403)',
      written: ['a'],
    },
    {
      lacks: 'create of events',
      resource: 'events',
      failure: 'cannot create events.events.k8s.io: the Role of this account does not allow it (403)',
      written: ['a'],
    },
  ])('$lacks: one failure names it, and all other work is done', async ({ resource, failure, written }) => {
    await world.lab.create('a', spec);
    await world.sync();
    await world.lab.allow(reconcilerRules().filter(({ resources }) => !resources?.includes(resource)));
    try {
      // Retry, because the API server's authorizer needs a moment to read the changed Role. Before each attempt, empty
      // the configuration, so that the sync has to report a repair, or also change the resource, so that the sync has
      // to write a status. A changed resource is never reported as repaired.
      await expect
        .poll(async () => {
          if (resource !== 'events') await world.lab.patch('a', { spec: { description: String(Math.random()) } });
          await world.configure({});
          return (await world.sync({ builderUrl })).failures;
        })
        .toEqual([failure]);
      expect(await ids()).toEqual([...written, 'builder-preview']);
    } finally {
      await world.lab.allow(reconcilerRules());
      await expect.poll(async () => (await world.sync()).failures).toEqual([]);
    }
  });
});

describe('a failure of the configuration service', () => {
  it('on reading is reported, and no status is written', async () => {
    await world.lab.create('a', spec);
    await world.sync();
    await world.configurationProxy.break(500, { at: 1 });
    const { failures, clusterWrites } = await world.sync();
    expect(failures).toEqual(['core clients cannot be read: The configuration service failed.']);
    expect(clusterWrites).toEqual([]);
  });

  it('on writing is reported, and the status says that the sync retries', async () => {
    await world.lab.create('a', spec);
    await world.sync();
    await world.lab.patch('a', { spec: { description: 'new' } });
    await world.configurationProxy.break(500, { at: 3 });
    const { failures, clusterWrites } = await world.sync();
    expect(failures).toEqual(['core clients cannot be written: The configuration service failed.']);
    expect(clusterWrites).toEqual(['PATCH coreclients/a/status', 'POST events']);
    const { status } = await world.lab.read('a');
    const conditions = status?.conditions.map((condition) => [condition.type, condition.status, condition.reason]);
    expect(conditions).toEqual([
      ['Accepted', 'True', 'Accepted'],
      ['Synced', 'False', 'WriteFailed'],
      ['TargetsResolved', 'True', 'Resolved'],
      ['Shadows', 'False', 'NoTenantsAffected'],
      ['Ready', 'False', 'WriteFailed'],
    ]);
    await world.configurationProxy.heal();
    expect((await world.sync()).conditions).toMatchObject({ 'Ready=True': 1 });
    expect(await world.lab.events('a')).toEqual(['Normal Synced', 'Warning WriteFailed', 'Normal Synced']);
  });

  it('for a single client, which it rejects, affects no other client and does not fail the run', async () => {
    // The API server accepts the long description, but the platform rejects it, because the platform's definition is
    // stricter than the chart's.
    for (const name of ['a', 'b']) await world.lab.create(name, spec);
    await world.lab.create('long', { ...spec, description: 'x'.repeat(600) });
    await world.define({ maxDescription: 500 });
    try {
      const { failures, counts, conditions } = await world.sync();
      expect(failures).toEqual([]);
      expect(counts).toMatchObject({ created: 3, statuses: 3 });
      expect(conditions).toMatchObject({ 'Accepted=True': 3, 'Synced=True': 2, 'Synced=False': 1 });
      expect(await ids()).toEqual(['a', 'b']);
      expect(await world.lab.events('long')).toEqual(['Warning Refused']);
    } finally {
      await world.define({});
    }
  });
});
