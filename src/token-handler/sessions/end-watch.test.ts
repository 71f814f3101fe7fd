// Tests when listeners are called after a session has ended: within half a second if the store reports the end, and
// within four seconds if the store reports nothing. The clock is a fake. The test decides what the store and the cache
// contain.
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EndWatch } from './end-watch.ts';
import type { FoundSession } from './session.ts';

const found = { session: { realm: 'town' }, state: {} } as FoundSession;
let store: { isTracked: boolean; trackedUntil: number; onChange(): void };
let cached: Set<string>;
/** Reads a session from the store. Tests make it return the session, return undefined (ended), or throw. */
let read: (handle: string) => Promise<FoundSession | undefined>;
let reads: string[];
let watch: EndWatch;
let ended: string[];

beforeEach(() => {
  vi.useFakeTimers();
  store = { isTracked: true, trackedUntil: Number.POSITIVE_INFINITY, onChange: () => undefined };
  [cached, reads, ended] = [new Set(), [], []];
  read = async () => found;
  watch = new EndWatch(
    {
      cached: (handle) => (cached.has(handle) ? found : undefined),
      read(handle) {
        reads.push(handle);
        return read(handle);
      },
      isAlive: () => true,
    },
    store,
  );
});
afterEach(() => {
  watch.close();
  vi.useRealTimers();
});

const listen = (handle = 'a', name = handle) => watch.onEnd(handle, () => ended.push(name));
async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 500) {
    vi.advanceTimersByTime(500);
    await turn();
  }
}
/** Simulates a store that claims to track changes, but no longer confirms sessions. */
const silence = () => {
  store.trackedUntil = performance.now();
};

describe('the listeners of a session', () => {
  it('are called once, within half a second after the session has ended', async () => {
    read = async (handle) => (handle === 'b' ? found : undefined);
    listen('a', 'first');
    listen('a', 'second');
    listen('b');
    vi.advanceTimersByTime(499);
    await turn();
    expect(reads).toEqual([]);
    vi.advanceTimersByTime(1);
    await turn();
    expect(ended).toEqual(['first', 'second']);
    await pass(10_000);
    expect(ended).toEqual(['first', 'second']);
    expect(reads.filter((handle) => handle === 'a')).toHaveLength(1);
  });

  it('are not called after they were removed, but the others of the session are', async () => {
    const remove = listen('a', 'first');
    listen('a', 'second');
    remove();
    remove();
    read = async () => undefined;
    await pass(500);
    expect(ended).toEqual(['second']);
  });

  it('cost no reads after the last one was removed', async () => {
    listen('a')();
    await pass(5_000);
    expect(reads).toEqual([]);
  });

  it('that are removed after the end leave a new watch of the same session alone', async () => {
    const remove = listen('a', 'first');
    read = async () => undefined;
    await pass(500);
    read = async () => found;
    listen('a', 'second');
    remove();
    read = async () => undefined;
    await pass(500);
    expect(ended).toEqual(['first', 'second']);
  });

  it('of a new watch are not lost when a read for an old one ends late', async () => {
    const slow = Promise.withResolvers<undefined>();
    read = () => slow.promise;
    const remove = listen('a', 'first');
    await pass(500);
    remove();
    listen('a', 'second');
    slow.resolve(undefined);
    await turn();
    expect(ended).toEqual([]);
    read = async () => undefined;
    await pass(500);
    expect(ended).toEqual(['second']);
  });

  it('are called once if the store answers only after a silence', async () => {
    const slow = Promise.withResolvers<undefined>();
    read = () => slow.promise;
    silence();
    listen();
    await pass(3_500);
    expect(ended).toEqual(['a']);
    slow.resolve(undefined);
    await turn();
    expect(ended).toEqual(['a']);
  });

  it('do not keep the process alive', () => {
    vi.useRealTimers();
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const real = new EndWatch({ cached: () => undefined, read: async () => undefined, isAlive: () => true }, store);
    expect(timers()).toBe(before);
    real.close();
  });

  it('are not called after the watch was closed', async () => {
    listen();
    read = async () => undefined;
    watch.close();
    await pass(5_000);
    expect([ended, reads]).toEqual([[], []]);
  });
});

describe('a session in the cache of a store that tracks changes', () => {
  it('counts as live without a read', async () => {
    cached.add('a');
    listen();
    await pass(30_000);
    expect([ended, reads]).toEqual([[], []]);
  });

  it('counts as ended after 3.5 s without news of the store', async () => {
    cached.add('a');
    listen();
    await pass(5_000);
    silence();
    await pass(3_000);
    expect(ended).toEqual([]);
    await pass(500);
    expect([ended, reads]).toEqual([['a'], []]);
  });

  it('that was added during such a silence does not count as confirmed when it was added', async () => {
    cached.add('a');
    silence();
    await pass(2_000);
    listen();
    await pass(1_000);
    expect(ended).toEqual([]);
    await pass(500);
    expect(ended).toEqual(['a']);
  });

  it('stays confirmed by a read that is newer than the news of the store', async () => {
    silence();
    await pass(2_000);
    listen();
    await pass(3_500);
    expect(ended).toEqual([]);
    await pass(500);
    expect([ended, reads]).toEqual([['a'], ['a']]);
  });

  it('is not confirmed for the future by a store that tracks without end', async () => {
    cached.add('a');
    listen();
    await pass(1_000);
    store.isTracked = false;
    read = () => Promise.reject(new Error('the store is away'));
    await pass(3_000);
    expect(ended).toEqual([]);
    await pass(500);
    expect(ended).toEqual(['a']);
  });
});

describe('a session in a store that tracks no changes', () => {
  beforeEach(() => {
    store.isTracked = false;
    store.trackedUntil = Number.NEGATIVE_INFINITY;
    cached.add('a');
  });

  it('is read once a second, and counts as live while it is found', async () => {
    listen();
    await pass(500);
    expect(reads).toEqual([]);
    await pass(500);
    expect(reads).toEqual(['a']);
    await pass(500);
    expect(reads).toEqual(['a']);
    await pass(8_500);
    expect(reads).toHaveLength(10);
    expect(ended).toEqual([]);
  });

  it('is read again half a second after a failed read, and counts as ended after 3.5 s', async () => {
    read = () => Promise.reject(new Error('the store is away'));
    listen();
    await pass(3_000);
    expect([reads.length, ended]).toEqual([5, []]);
    await pass(500);
    expect([reads.length, ended]).toEqual([5, ['a']]);
  });

  it('is read by one read at a time, which confirms the time at which it began', async () => {
    const slow = Promise.withResolvers<FoundSession>();
    read = () => slow.promise;
    listen();
    await pass(2_500);
    expect(reads).toEqual(['a']);
    slow.resolve(found);
    await turn();
    read = () => Promise.reject(new Error('the store is away'));
    await pass(1_500);
    expect(ended).toEqual([]);
    await pass(500);
    expect(ended).toEqual(['a']);
  });
});
