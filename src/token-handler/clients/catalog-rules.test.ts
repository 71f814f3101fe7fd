// Tests which clients a tenant has, and how the client documents of the tenant and of core are read. The test keeps the
// stored documents and the cached copies in memory. A cached copy may be outdated.
import { beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { turnsOf } from '../../../test/support/stopwatch.ts';
import type { Lookup, Owner } from '../../platform/configuration.ts';
import type { Revision } from '../../platform/configuration-responses.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import { type ClientCatalog, createClientCatalog, requireClient } from './catalog.ts';

const demo = { id: 'urn:example:tenants/demo', name: 'Demo', realm: 'demo' };
const place = ({ core, tenantId }: Owner) => (core ? 'core' : tenantId);

let stored: Map<string, Revision>;
let cached: Map<string, Revision>;
/** Number of calls of `configuration.latest`, each of which makes the catalogue wait for a promise. */
let waits: number;
/** Owners (`core` or a tenant's id) of the documents that were read instead of taken from the cache. */
let reads: string[];
let asked: unknown[];
let log: CapturedLog;
let metrics: Metrics;
let catalog: ClientCatalog;

const configuration = {
  async latest(namespace: string, name: string, owner: Owner, read: Lookup = {}) {
    waits += 1;
    asked.push([namespace, name, read.permission]);
    const known = cached.get(place(owner));
    if (known && !read.lacks?.(known)) return known;
    reads.push(place(owner));
    const found = stored.get(place(owner));
    if (found) cached.set(place(owner), found);
    return found;
  },
  peekLatest(namespace: string, name: string, owner: Owner, read: Pick<Lookup, 'permission'> = {}) {
    asked.push([namespace, name, read.permission]);
    return cached.get(place(owner));
  },
};
function write(where: 'core' | 'demo', clients: Record<string, unknown>): void {
  stored.set(where === 'core' ? 'core' : demo.id, { revision: stored.size, configuration: { clients } });
}

beforeEach(() => {
  stored = new Map();
  cached = new Map();
  waits = 0;
  reads = [];
  asked = [];
  log = captureLog();
  metrics = createMetrics();
  const redirectUriRules = { allowInsecure: false, allowWildcardPaths: false };
  catalog = createClientCatalog({
    configuration,
    urns: createUrns('urn:example'),
    redirectUriRules,
    log: log.log,
    metrics,
  });
});

describe('the clients of a tenant', () => {
  it('are an empty list if there are no documents', async () => {
    expect([await catalog.list(demo), await catalog.find(demo, 'web')]).toEqual([[], undefined]);
  });

  it('are its own and the core clients, sorted by id', async () => {
    write('core', { b: { targets: ['form-service'] }, d: {} });
    write('demo', { c: { targets: ['form-service'] }, a: {}, e: {} });
    const clients = await catalog.list(demo);
    expect(clients.map(({ id, core }) => [id, core])).toEqual([
      ['a', false],
      ['b', true],
      ['c', false],
      ['d', true],
      ['e', false],
    ]);
    const targets = [{ id: 'form-service', upstream: 'urn:example:platform:form-service' }];
    expect([clients[1]?.targets, clients[2]?.targets]).toEqual([targets, targets]);
  });

  it('cannot replace a core client, even an invalid one', async () => {
    write('core', { web: { name: 'core' }, broken: { prompt: 'always' } });
    write('demo', { web: { name: 'tenant' }, broken: {}, own: {} });
    expect((await catalog.list(demo)).map(({ id, name }) => [id, name])).toEqual([
      ['own', 'own'],
      ['web', 'core'],
    ]);
    for (let time = 0; time < 2; time += 1) {
      expect(await catalog.find(demo, 'web')).toMatchObject({ name: 'core', core: true });
      expect(await catalog.find(demo, 'broken')).toBeUndefined();
    }
  });

  it('are those of their own document, not of another tenant', async () => {
    write('demo', { web: {} });
    expect(await catalog.find({ id: 'urn:example:tenants/other' }, 'web')).toBeUndefined();
    expect(await catalog.find(demo, 'web')).toMatchObject({ id: 'web', core: false });
  });

  it('are read from the document token-handler as permissions, which are cached for a short time only', async () => {
    write('demo', { web: {} });
    await catalog.list(demo);
    await catalog.find(demo, 'web');
    await catalog.find(demo, 'unknown');
    expect(new Set(asked.map((each) => JSON.stringify(each)))).toEqual(
      new Set([JSON.stringify(['platform', 'token-handler', true])]),
    );
  });
});

describe('a client that is looked for', () => {
  it('is found without a promise if both documents are cached', async () => {
    write('core', { core: {} });
    write('demo', { web: {}, broken: { prompt: 'always' } });
    await catalog.list(demo);
    reads = [];
    waits = 0;
    for (const [id, found] of [
      ['core', true],
      ['web', true],
      ['broken', false],
    ] as const)
      expect((await catalog.find(demo, id)) !== undefined).toBe(found);
    expect([reads, waits]).toEqual([[], 0]);
  });

  it('is found at once if it was configured after the documents were cached', async () => {
    write('core', {});
    write('demo', {});
    await catalog.list(demo);
    reads = [];
    write('demo', { web: {} });
    expect(await catalog.find(demo, 'web')).toMatchObject({ id: 'web', core: false });
    expect(reads).toEqual([demo.id]);
    write('core', { shared: {} });
    expect(await catalog.find(demo, 'shared')).toMatchObject({ id: 'shared', core: true });
  });

  it('causes a read of the document of core only if the tenant has no such client', async () => {
    write('core', { core: {} });
    write('demo', { web: {} });
    expect(await catalog.find(demo, 'core')).toMatchObject({ core: true });
    expect(reads).toEqual(['core']);
    await catalog.find(demo, 'web');
    expect(reads).toEqual(['core', demo.id]);
    expect(await catalog.find(demo, 'unknown')).toBeUndefined();
    expect(reads).toEqual(['core', demo.id, demo.id, 'core']);
  });

  it('gets 404 if a request needs it and it does not exist', async () => {
    write('demo', { web: {} });
    expect(await requireClient(catalog, demo, 'web')).toMatchObject({ id: 'web' });
    await expect(requireClient(catalog, demo, 'unknown')).rejects.toMatchObject({ status: 404, slug: 'not-found' });
  });
});

describe('a document with very many clients', () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`client-${index}`, {}]));

  it('costs a request that needs one of them little', async () => {
    write('demo', many);
    const began = process.cpuUsage();
    expect(await catalog.find(demo, 'client-7')).toMatchObject({ id: 'client-7' });
    expect(await catalog.find(demo, 'unknown')).toBeUndefined();
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1_000).toBeLessThan(500);
  });

  it('is listed in parts, between which other requests are served', async () => {
    write('demo', many);
    const { result, longest, count } = await turnsOf(() => catalog.list(demo));
    expect(result).toHaveLength(20_000);
    expect(longest).toBeLessThan(500);
    expect(count).toBeGreaterThan(3);
  });

  it('still has only clients of a limited size', async () => {
    const redirectUris = Array.from({ length: 101 }, (_, index) => `https://a.example/${index}`);
    const targets = Array.from({ length: 1_001 }, (_, index) => ({ id: `t${index}`, upstream: 'form-service' }));
    write('demo', { web: { redirectUris, targets: targets.slice(0, 1_000) }, large: { targets } });
    expect(await catalog.find(demo, 'large')).toBeUndefined();
    const web = await catalog.find(demo, 'web');
    expect([web?.redirectUris.length, web?.targets.length]).toEqual([100, 1_000]);
    expect(log.lines().map(({ reasons }) => reasons)).toEqual([
      ['targets: must be at most 1000'],
      ['redirectUris[100] and later: a client has at most 100 redirect URIs of 16384 characters together'],
    ]);
  });
});

describe('the report of a document', () => {
  const counts = async (name: string) => (await metrics.registry.getSingleMetric(name)?.get())?.values ?? [];

  it('is made once for each revision', async () => {
    write('demo', { web: { prompt: 'always' } });
    await catalog.list(demo);
    await catalog.list(demo);
    await catalog.find(demo, 'web');
    expect(log.lines()).toHaveLength(1);
    write('demo', { web: { prompt: 'always' } });
    cached.clear();
    await catalog.list(demo);
    expect(log.lines()).toHaveLength(2);
  });

  it('names at most 20 clients with problems', async () => {
    const broken = Array.from({ length: 30 }, (_, index) => [`client-${index}`, { prompt: 'always' }]);
    write('demo', Object.fromEntries(broken));
    await catalog.list(demo);
    expect(log.lines()).toHaveLength(21);
    expect(log.lines().at(-1)).toMatchObject({ level: 'warn', place: 'tenant', tenant: demo.id, logged: 20 });
    expect(await counts('formgate_invalid_clients_total')).toMatchObject([{ value: 30 }]);
  });

  it('names at most 10 unknown fields of a client, shortened', async () => {
    const fields = Array.from({ length: 11 }, (_, index) => `field-${String(index).padStart(2, '0')}`);
    write('demo', {
      web: Object.fromEntries(fields.map((field) => [field, 1])),
      long: { ['x'.repeat(51)]: 1 },
      ok: {},
    });
    await catalog.list(demo);
    expect(log.lines()).toMatchObject([
      { level: 'warn', client: 'web', place: 'tenant', tenant: demo.id, fields: fields.slice(0, 10) },
      { client: 'long', fields: ['x'.repeat(50)] },
    ]);
    expect(log.lines()).toHaveLength(2);
  });

  it('has the reasons why redirect URIs are left out, at most 10, and counts them', async () => {
    const uris = Array.from({ length: 11 }, (_, index) => `https://*.example/${index}`);
    write('core', { web: { redirectUris: uris }, ok: { redirectUris: ['https://a.example/'] } });
    await catalog.list(demo);
    expect(log.lines()).toHaveLength(1);
    const [line] = log.lines();
    expect(line).toMatchObject({ level: 'warn', client: 'web', place: 'core' });
    expect(line).not.toHaveProperty('tenant');
    expect(line?.reasons).toHaveLength(10);
    expect(line?.reasons).toContain('redirectUris[9]: must not have a wildcard in its host');
    expect(await counts('formgate_invalid_redirect_uris_total')).toMatchObject([
      { labels: { place: 'core' }, value: 11 },
    ]);
  });

  it('has the reasons why a client is left out, at most 10, and counts each field once', async () => {
    const targets = Array.from({ length: 11 }, () => 'not an upstream');
    write('demo', { web: { targets, prompt: 'always' } });
    await catalog.list(demo);
    const [line] = log.lines();
    expect(line).toMatchObject({ level: 'warn', client: 'web', place: 'tenant', tenant: demo.id });
    expect(line?.reasons).toHaveLength(10);
    expect(line?.reasons).toContainEqual(expect.stringMatching(/^targets: must be/));
    expect(await counts('formgate_invalid_clients_total')).toMatchObject([
      { labels: { place: 'tenant', field: 'targets' }, value: 1 },
      { labels: { place: 'tenant', field: 'prompt' }, value: 1 },
    ]);
  });

  it('shortens the id of a client', async () => {
    write('demo', { ['x'.repeat(51)]: {} });
    await catalog.list(demo);
    expect(log.lines()).toMatchObject([{ client: 'x'.repeat(50), reasons: [expect.stringMatching(/^id: must be/)] }]);
  });
});
