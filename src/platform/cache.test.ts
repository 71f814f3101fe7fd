import { setImmediate as settled } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { cacheTimes, createCache } from './cache.ts';
import { createMissBudget } from './miss-budget.ts';
import { PlatformError } from './platform-error.ts';
import { createPlatformMetrics, type PlatformMetrics } from './platform-metrics.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

let now: number;
let metrics: PlatformMetrics;
let captured: ReturnType<typeof captureLog>;

/**
 * A fake of the service behind the cache. As the test requires, it returns a value, fails or waits. It counts requests.
 */
function createSource(first: unknown) {
  let value = first;
  let gate: Promise<void> | undefined;
  const source = {
    calls: 0,
    load: async () => {
      source.calls += 1;
      const answer = value;
      if (gate) await gate;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    set(next: unknown) {
      value = next;
    },
    hold(): () => void {
      let open = () => {};
      gate = new Promise((resolve) => {
        open = resolve;
      });
      return () => {
        gate = undefined;
        open();
      };
    },
  };
  return source;
}

function createTestCache(maxEntries = 100, fresh = minute) {
  const clock = () => new Date(now);
  return createCache<unknown>({
    service: 'configuration',
    clock,
    times: cacheTimes(fresh),
    maxEntries,
    metrics,
    budget: createMissBudget(clock, metrics),
    log: captured.log,
  });
}

const down = () => new PlatformError('configuration', 'unreachable');
const readsOf = (cache = 'configuration') => metrics.cacheReads(cache);
const staleServes = async () => (await metrics.staleServes.get()).values[0]?.value ?? 0;

beforeEach(() => {
  now = Date.parse('2026-08-01T00:00:00Z');
  metrics = createPlatformMetrics(createMetrics());
  captured = captureLog();
});

describe('a cached response', () => {
  it('is used for 60 s without another call', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    now += minute - 1;
    expect(await cache.get('k', source.load)).toBe('a');
    expect(source.calls).toBe(1);
    expect(cache.peek('k')).toBe('a');
    expect(readsOf()).toEqual({ hit: 2, miss: 1, stale: 0, refused: 0 });
  });

  it('is fresh for as long as configured', async () => {
    const source = createSource('a');
    const cache = createTestCache(100, 10 * second);
    await cache.get('k', source.load);
    now += 11 * second;
    await cache.get('k', source.load);
    expect(source.calls).toBe(2);
  });

  it('is used after 60 s while a new one is fetched in the background', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    now += 2 * minute;
    source.set('b');
    const open = source.hold();
    const answer = await cache.get('k', source.load);
    expect(answer).toBe('a');
    expect(await staleServes()).toBe(0);
    open();
    await settled();
    expect(await cache.get('k', source.load)).toBe('b');
    expect(source.calls).toBe(2);
  });

  it('that was not read for more than 5 minutes is not used: the read waits for a new one', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    now += 5 * minute;
    source.set('b');
    expect(await cache.get('k', source.load)).toBe('b');
  });

  it('keeps its identity if the new one is equal, so that objects compiled from it stay valid', async () => {
    const source = createSource({ deep: [1, { two: 2 }] });
    const cache = createTestCache();
    const first = await cache.get('k', source.load);
    now += 6 * minute;
    source.set({ deep: [1, { two: 2 }] });
    const second = await cache.get('k', source.load);
    expect(second).toBe(first);
    expect(source.calls).toBe(2);
  });

  it('is too old if the clock was set back', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    now -= hour;
    source.set('b');
    expect(await cache.get('k', source.load)).toBe('b');
  });

  it('is dropped for others when the cache is full', async () => {
    const source = createSource('a');
    const cache = createTestCache(2);
    for (const key of ['1', '2', '3']) await cache.get(key, source.load);
    await cache.get('3', source.load);
    expect(source.calls).toBe(3);
    await cache.get('1', source.load);
    expect(source.calls).toBe(4);
  });
});

describe('single flight', () => {
  it('makes one call for a hundred concurrent reads of a key', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    const open = source.hold();
    const reads = Array.from({ length: 100 }, () => cache.get('k', source.load));
    open();
    expect((await Promise.all(reads)).every((value) => value === 'a')).toBe(true);
    expect(source.calls).toBe(1);
  });

  it('shares a failure too, but does not cache it', async () => {
    const source = createSource(down());
    const cache = createTestCache();
    const reads = await Promise.allSettled([cache.get('k', source.load), cache.get('k', source.load)]);
    expect(reads.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    source.set('a');
    expect(await cache.get('k', source.load)).toBe('a');
    expect(source.calls).toBe(2);
  });
});

describe('an outage', () => {
  it('is bridged by the last response for up to 24 hours, with a metric and a warning', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += 24 * hour - 1;
    expect(await cache.get('k', source.load)).toBe('a');
    expect(await staleServes()).toBe(1);
    expect(readsOf()).toEqual({ hit: 0, miss: 1, stale: 1, refused: 0 });
    expect(captured.lines()).toMatchObject([{ level: 'warn', dependency: 'configuration' }]);
  });

  it('is an error if the last response is 24 hours old', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += 24 * hour;
    await expect(cache.get('k', source.load)).rejects.toMatchObject({ kind: 'unreachable' });
  });

  it('is an error for a response that grants permission if it is 5 minutes old', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += 5 * minute - 1;
    expect(await cache.get('k', source.load, { permission: true })).toBe('a');
    await settled();
    now += 1;
    await expect(cache.get('k', source.load, { permission: true })).rejects.toMatchObject({ kind: 'unreachable' });
    expect(await cache.get('k', source.load)).toBe('a');
  });

  it('never extends a permission beyond 5 minutes, even if responses are fresh for longer', async () => {
    const source = createSource('a');
    const cache = createTestCache(100, hour);
    await cache.get('k', source.load);
    now += 5 * minute;
    source.set('b');
    expect(await cache.get('k', source.load, { permission: true })).toBe('b');
  });

  it('does not delay reads: old responses are used while the service is called every 5 s', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += hour;
    await cache.get('k', source.load);
    const open = source.hold();
    for (let read = 0; read < 40; read += 1) {
      now += 250;
      expect(await cache.get('k', source.load)).toBe('a');
    }
    open();
    expect(source.calls).toBeLessThanOrEqual(4);
    expect(captured.lines()).toHaveLength(1);
  });

  it('ends with the first response', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += hour;
    await cache.get('k', source.load);
    source.set('b');
    now += 6 * second;
    await cache.get('k', source.load);
    await settled();
    expect(await cache.get('k', source.load)).toBe('b');
    expect(await staleServes()).toBe(2);
  });

  it('does not include a rejection, which is an error and drops the response', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(new PlatformError('configuration', 'rejected', { upstreamStatus: 400 }));
    now += 6 * minute;
    await expect(cache.get('k', source.load)).rejects.toMatchObject({ kind: 'rejected' });
    source.set(down());
    await expect(cache.get('k', source.load)).rejects.toMatchObject({ kind: 'unreachable' });
  });
});

describe('"there is none"', () => {
  it('is cached for 10 s only', async () => {
    const source = createSource(undefined);
    const cache = createTestCache();
    await cache.get('k', source.load);
    now += 10 * second - 1;
    await cache.get('k', source.load);
    expect(source.calls).toBe(1);
    now += 1;
    source.set('a');
    expect(await cache.get('k', source.load)).toBe('a');
  });

  it('is used during an outage, like any other response', async () => {
    const source = createSource(undefined);
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += 11 * second;
    await expect(cache.get('k', source.load)).resolves.toBeUndefined();
    expect(await staleServes()).toBe(1);
    now += 24 * hour;
    await expect(cache.get('k', source.load)).rejects.toMatchObject({ kind: 'unreachable' });
  });

  it('is used for at most 5 minutes if the missing value would grant permission', async () => {
    const source = createSource(undefined);
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += 5 * minute - 1;
    await expect(cache.get('k', source.load, { permission: true })).resolves.toBeUndefined();
    now += 1;
    await expect(cache.get('k', source.load, { permission: true })).rejects.toMatchObject({ kind: 'unreachable' });
  });
});

describe('a write', () => {
  it('makes the next read fetch again', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set('b');
    cache.invalidate('k');
    expect(await cache.get('k', source.load)).toBe('b');
  });

  it('prevents an earlier request from caching its response afterwards', async () => {
    const source = createSource('old');
    const cache = createTestCache();
    const open = source.hold();
    const early = cache.get('k', source.load);
    await settled();
    cache.invalidate('k');
    source.set('new');
    open();
    expect(await early).toBe('old');
    expect(await cache.get('k', source.load)).toBe('new');
    expect(await cache.get('k', source.load)).toBe('new');
  });
});

describe('a lookup in a response', () => {
  const list = (...names: string[]) => new Map(names.map((name) => [name, name]));
  const pick = (name: string) => (value: unknown) => (value as Map<string, string>).get(name);

  it('fetches again for a missing item, so that a new item is found immediately', async () => {
    const source = createSource(list('a'));
    const cache = createTestCache();
    await cache.find('all', source.load, pick('a'));
    now += 5 * second;
    source.set(list('a', 'b'));
    expect(await cache.find('all', source.load, pick('b'))).toBe('b');
  });

  it('fetches at most once a second for unknown names', async () => {
    const source = createSource(list('a'));
    const cache = createTestCache();
    for (let name = 0; name < 1_000; name += 1) {
      now += 10;
      await cache.find('all', source.load, pick(`unknown-${name}`));
    }
    expect(source.calls).toBeGreaterThanOrEqual(10);
    expect(source.calls).toBeLessThanOrEqual(12);
  });

  it('throws for an unknown item while the service is down, and finds known items', async () => {
    const source = createSource(list('a'));
    const cache = createTestCache();
    await cache.find('all', source.load, pick('a'));
    source.set(down());
    now += 10 * second;
    await expect(cache.find('all', source.load, pick('b'))).rejects.toMatchObject({ kind: 'unreachable' });
    await expect(cache.find('all', source.load, pick('c'))).rejects.toMatchObject({ kind: 'unreachable' });
    expect(source.calls).toBe(2);
    expect(await cache.find('all', source.load, pick('a'))).toBe('a');
  });
});

describe('a value that lacks what the caller looks for', () => {
  const lacks = (value: unknown) => value === undefined;

  it('is fetched again at once, even if it was just read for something else', async () => {
    const source = createSource(undefined);
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set('a');
    expect(await cache.get('k', source.load, { lacks })).toBe('a');
    expect(source.calls).toBe(2);
  });

  it('is fetched once by concurrent reads, and the miss is remembered for a second', async () => {
    const source = createSource(undefined);
    const cache = createTestCache();
    await cache.get('k', source.load);
    now += 1;
    const open = source.hold();
    const reads = Array.from({ length: 100 }, () => cache.get('k', source.load, { lacks }));
    open();
    await Promise.all(reads);
    expect(source.calls).toBe(2);
    source.set('a');
    now += second - 1;
    expect(await cache.get('k', source.load, { lacks })).toBeUndefined();
    now += 1;
    expect(await cache.get('k', source.load, { lacks })).toBe('a');
    expect(source.calls).toBe(3);
  });

  it('is not fetched twice by its first read', async () => {
    const source = createSource(undefined);
    const cache = createTestCache();
    expect(await cache.get('k', source.load, { lacks })).toBeUndefined();
    expect(source.calls).toBe(1);
  });

  it('is an error while the service fails, because it may exist', async () => {
    const source = createSource(undefined);
    const cache = createTestCache();
    await cache.get('k', source.load);
    source.set(down());
    now += second;
    for (let time = 0; time < 3; time += 1)
      await expect(cache.get('k', source.load, { lacks })).rejects.toMatchObject({ kind: 'unreachable' });
    expect(source.calls).toBe(2);
  });
});

describe('a look at the cache', () => {
  it('returns only what a read would return without a call', async () => {
    const source = createSource('a');
    const cache = createTestCache();
    expect(cache.peek('key')).toBeUndefined();
    await cache.get('key', source.load);
    expect(cache.peek('key', { permission: true })).toBe('a');
    now += cacheTimes().fresh;
    expect(cache.peek('key')).toBeUndefined();
    cache.invalidate('key');
    expect(cache.peek('key')).toBeUndefined();
    expect(source.calls).toBe(1);
  });
});

describe('a flood of made-up names', () => {
  const lacks = (value: unknown) => value === undefined;
  const ask = (cache: ReturnType<typeof createTestCache>, source: ReturnType<typeof createSource>, share: string) =>
    cache.get(`${share}-${Math.random()}`, source.load, { lacks, isChosen: true }, share);
  const reads = async (outcome: string) =>
    (await metrics.missReads.get()).values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0;

  it('is refused with 503 beyond the share of its tenant, and is counted', async () => {
    const source = createSource(undefined);
    const cache = createTestCache(10_000);
    const all = await Promise.allSettled(Array.from({ length: 1_000 }, () => ask(cache, source, 'loud')));
    expect(source.calls).toBe(100);
    expect(all.at(-1)).toMatchObject({ reason: { slug: 'busy', headers: { 'Retry-After': '1' } } });
    expect([await reads('read'), await reads('refused')]).toEqual([100, 900]);
    expect(readsOf()).toMatchObject({ miss: 100, refused: 900 });
    now += second;
    for (let time = 0; time < 20; time += 1) await ask(cache, source, 'loud');
    await expect(ask(cache, source, 'loud')).rejects.toMatchObject({ slug: 'busy' });
  });

  it('leaves the reads of other tenants alone', async () => {
    const source = createSource(undefined);
    const cache = createTestCache(10_000);
    for (let time = 0; time < 60; time += 1) {
      await Promise.allSettled(Array.from({ length: 200 }, () => ask(cache, source, 'loud')));
      await expect(ask(cache, source, 'quiet')).resolves.toBeUndefined();
      now += second;
    }
  });

  it('of many tenants stays within a total', async () => {
    const source = createSource(undefined);
    const cache = createTestCache(10_000);
    await Promise.allSettled(Array.from({ length: 5_000 }, (_, nth) => ask(cache, source, `tenant ${nth % 50}`)));
    expect(source.calls).toBe(500);
  });

  it('does not concern names that are known', async () => {
    const source = createSource('a');
    const cache = createTestCache(10_000);
    const known = () => cache.get('known', source.load, { lacks, isChosen: true }, 'loud');
    await known();
    source.set(undefined);
    await Promise.allSettled(Array.from({ length: 1_000 }, () => ask(cache, source, 'loud')));
    now += 50;
    expect(await known()).toBe('a');
  });
});
