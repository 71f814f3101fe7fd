import { beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { cacheTimes, createCache } from './cache.ts';
import { createDocumentBudget, type DocumentBudget, exceedsMemory, memoryBudget, memoryOf } from './document-budget.ts';
import { createMissBudget } from './miss-budget.ts';
import { createPlatformMetrics, type PlatformMetrics } from './platform-metrics.ts';

const second = 1_000;
const minute = 60 * second;
const mib = 1_048_576;

let now: number;
let metrics: PlatformMetrics;
let calls: number;
const clock = () => new Date(now);

beforeEach(() => {
  now = Date.parse('2026-08-01T00:00:00Z');
  metrics = createPlatformMetrics(createMetrics());
  calls = 0;
});

function createTestCache(memory?: number, documents: DocumentBudget = createDocumentBudget(clock)) {
  return createCache<string>({
    ...{ service: 'configuration', clock, times: cacheTimes(), maxEntries: 100, metrics, log: captureLog().log },
    budget: createMissBudget(clock, metrics),
    documents: { ...documents, ...(memory !== undefined && { memory }) },
  });
}

/** Loads a document of about `size` bytes. */
const document = (size: number) => async () => {
  calls += 1;
  return 'x'.repeat(size);
};

describe('a tenant with too many large documents', () => {
  const refused = { kind: 'over-budget', status: 503, headers: { 'Retry-After': '5' } };
  /** Uses up the share of a tenant for about 14 seconds, with a document that is too large for the cache. */
  const exhaust = (cache: ReturnType<typeof createTestCache>, tenant = 'tenant', size = 59) =>
    cache.get(`large ${now}`, document(size * mib), {}, tenant);

  it('gets 503 for those that are not cached, until its share has grown again', async () => {
    const cache = createTestCache();
    const read = (key: string) => cache.get(key, document(1), {}, 'tenant');
    await read('cached');
    await exhaust(cache);
    await expect(read('new')).rejects.toMatchObject(refused);
    expect(await read('cached')).toBe('x');
    now += 13 * second;
    await expect(read('new')).rejects.toMatchObject(refused);
    now += second;
    expect(await read('new')).toBe('x');
    expect(calls).toBe(3);
  });

  it('gets old values meanwhile, but those that grant permission only for five minutes', async () => {
    const cache = createTestCache();
    const read = (permission = false) => cache.get('k', document(calls), { permission }, 'tenant');
    calls = 5;
    await read();
    now += minute + second;
    await exhaust(cache);
    expect(await read(true)).toBe('xxxxx');
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await read(true)).toBe('xxxxx');
    expect(metrics.cacheReads('configuration').refused).toBe(1);
    now += 5 * minute;
    await exhaust(cache);
    await expect(read(true)).rejects.toMatchObject(refused);
    expect(await read()).toBe('xxxxx');
    now += 14 * second;
    expect(await read(true)).toBe('x'.repeat(8));
  });

  it('does not affect other tenants, nor the documents of the platform', async () => {
    const cache = createTestCache();
    await exhaust(cache);
    expect(await cache.get('of another tenant', document(1), {}, 'other')).toBe('x');
    expect(await cache.get('of the platform', document(1))).toBe('x');
  });

  it('leaves a total for the others, even if there are four such tenants', async () => {
    const cache = createTestCache();
    for (const tenant of ['a', 'b', 'c', 'd']) await exhaust(cache, tenant, 200);
    expect(await cache.get('k', document(1), {}, 'other')).toBe('x');
    await exhaust(cache, 'e', 200);
    await expect(cache.get('k2', document(1), {}, 'other')).rejects.toMatchObject(refused);
    now += second;
    expect(await cache.get('k2', document(1), {}, 'other')).toBe('x');
  });

  it('cannot exceed its share by many requests at the same time', async () => {
    const cache = createTestCache();
    let [running, most, started] = [0, 0, 0];
    const load = async () => {
      running += 1;
      started += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 2));
      running -= 1;
      return 'x'.repeat(10 * mib);
    };
    const reads = Array.from({ length: 100 }, (_, nth) => cache.get(`k${nth}`, load, {}, 'tenant'));
    const outcomes = await Promise.allSettled(reads);
    expect(most).toBe(2);
    // Each takes 20 MiB of the 64, and one may be running when another one uses up the rest.
    expect(started).toBeGreaterThanOrEqual(4);
    expect(started).toBeLessThanOrEqual(5);
    const refusals = outcomes.filter(({ status }) => status === 'rejected');
    expect(refusals).toHaveLength(100 - started);
    for (const refusal of refusals) expect(refusal).toMatchObject({ reason: refused });
    expect(await cache.get('of another tenant', document(1), {}, 'other')).toBe('x');
  });

  it('does not delay other tenants while its fetches wait', async () => {
    const cache = createTestCache();
    const { promise, resolve } = Promise.withResolvers<string>();
    const waiting = Array.from({ length: 10 }, (_, nth) => cache.get(`k${nth}`, () => promise, {}, 'tenant'));
    expect(await cache.get('k', document(1), {}, 'other')).toBe('x');
    resolve('late');
    expect(await Promise.all(waiting)).toEqual(Array(10).fill('late'));
  });

  it('whose large document lacks an item that callers invent reads it again only once per mebibyte and second', async () => {
    const cache = createTestCache();
    const find = () => cache.get('k', document(2 * mib), { lacks: () => true }, 'tenant');
    await find();
    for (let tenths = 0; tenths < 100; tenths += 1) {
      now += second / 10;
      await find();
    }
    expect(calls).toBe(4);
  });
});

it('the reconciler may read all documents of a tenant, but does not keep them all', async () => {
  const cache = createTestCache(undefined, memoryBudget);
  const keys = Array.from({ length: 10 }, (_, nth) => `k${nth}`);
  for (const key of keys) expect(await cache.get(key, document(10 * mib), {}, 'tenant')).toHaveLength(10 * mib);
  expect(keys.filter((key) => cache.peek(key) !== undefined)).toEqual(['k7', 'k8', 'k9']);
});

describe('the memory of a cache', () => {
  it('is limited: the least recently used documents are dropped first', async () => {
    const cache = createTestCache(20_000);
    for (const key of ['a', 'b', 'c']) await cache.get(key, document(3_000), {}, 'tenant');
    cache.peek('a');
    await cache.get('d', document(3_000), {}, 'tenant');
    expect(['a', 'b', 'c', 'd'].filter((key) => cache.peek(key) !== undefined)).toEqual(['a', 'c', 'd']);
  });

  it('does not keep a document that is larger than all of it', async () => {
    const cache = createTestCache(10_000);
    expect(await cache.get('large', document(20_000), {}, 'tenant')).toHaveLength(20_000);
    expect(cache.peek('large')).toBeUndefined();
  });

  it('is estimated from names, values and structure, however deeply they are nested', () => {
    expect(memoryOf('x'.repeat(1_000))).toBeGreaterThan(1_000);
    expect(memoryOf({ ['x'.repeat(1_000)]: 1 })).toBeGreaterThan(1_000);
    expect(memoryOf(Array.from({ length: 1_000 }, () => null))).toBeGreaterThan(8_000);
    let nested: unknown = 1;
    for (let depth = 0; depth < 200_000; depth += 1) nested = { a: [nested] };
    expect(memoryOf(nested)).toBeGreaterThan(200_000 * 100);
  });
});

describe('the memory of a JSON text', () => {
  const entry = JSON.stringify({ value: 'DE', label: 'Germany', note: 'a member of ordinary length' });
  const list = (item: string, bytes: number) => `[${Array(Math.floor(bytes / (item.length + 1))).fill(item)}]`;

  it('may be too much for a text of three megabytes', () => {
    expect(exceedsMemory(list('{}', 3 * mib))).toBe(true);
    expect(exceedsMemory(list('[]', 3 * mib))).toBe(true);
    expect(exceedsMemory(list('0', 4 * mib))).toBe(true);
  });

  it('is not too much for 8 MiB of ordinary entries, and for a long text', () => {
    expect(exceedsMemory(list(entry, 8 * mib))).toBe(false);
    expect(exceedsMemory(JSON.stringify('x'.repeat(16 * mib)))).toBe(false);
    expect(exceedsMemory('')).toBe(false);
  });

  it('is at least the memory of its value', () => {
    for (const text of [list('{}', mib), list('{"a":0}', mib), list('[]', mib), list('0', mib), list('"ab"', mib)])
      expect(memoryOf(JSON.parse(text)) < 64 * mib || exceedsMemory(text)).toBe(true);
  });
});
