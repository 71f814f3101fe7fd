// Tests the limits of the store in memory: expiry, claims of refreshes, the order of lists, and marks. The test sets
// the clock. store.test.ts tests the behaviour that the stores in memory and in Redis share.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryStore } from './memory-store.ts';
import { recordKey } from './session.ts';
import { positionLife } from './session-indexes.ts';
import type { SessionStore } from './store.ts';

const idle = 1_000;
const seconds = (value: number) => ({ expiration: { type: 'EX', value } as const });
let store: SessionStore;
let begun: number;
let changes: (string | null)[];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000 });
  begun = Date.now();
  store = createMemoryStore({ idle, clock: () => new Date() });
  changes = [];
  store.tokens.onChange((handle) => changes.push(handle));
});
afterEach(() => {
  // A spy of a fake timer must be restored while the timers are fake.
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const at = (milliseconds: number) => void vi.setSystemTime(begun + milliseconds);
const advance = (milliseconds: number) => void vi.advanceTimersByTime(milliseconds);
const load = () => store.tokens.load('a');
const record = (handle = 'a') => store.records.get(recordKey(handle));

/** Starts a session that ends after 10 s at the latest. */
async function start(handle = 'a', limit = 10_000): Promise<void> {
  await store.records.set(recordKey(handle), `record of ${handle}`, seconds(60));
  await store.tokens.start(handle, { sealed: 'set 1', limit: begun + limit }, Date.now());
}

describe('a record in memory', () => {
  it('expires after the given seconds, also if nothing reads it', async () => {
    await store.records.set('key', 'text', seconds(2));
    at(1_999);
    expect(await store.records.get('key')).toBe('text');
    at(2_001);
    expect(await store.records.get('key')).toBeNull();
  });

  it('is kept for 30 days without a timer that is too long for Node, which would fire at once, again and again', async () => {
    const set = vi.spyOn(globalThis, 'setTimeout');
    await store.records.set('key', 'text', seconds(30 * 86_400));
    advance(100);
    expect(set.mock.calls.map(([, milliseconds = 0]) => milliseconds).filter((one) => one > 2 ** 31 - 1)).toEqual([]);
    at(30 * 86_400_000 - 1);
    expect(await store.records.get('key')).toBe('text');
    at(30 * 86_400_000 + 1);
    expect(await store.records.get('key')).toBeNull();
  });

  it('leaves the memory when it has expired, also if nothing reads it', async () => {
    await store.records.set('key', 'text', seconds(90));
    // The timer is set again as long as values are left.
    advance(60_000);
    expect(vi.getTimerCount()).toBe(1);
    advance(60_000);
    expect(vi.getTimerCount()).toBe(0);
    await store.records.set('key', 'text', seconds(90));
    expect(vi.getTimerCount()).toBe(1);
  });

  it('can be deleted together with others', async () => {
    for (const key of ['one', 'two', 'three']) await store.records.set(key, key, seconds(2));
    await store.records.del(['one', 'two']);
    expect(await Promise.all(['one', 'two', 'three'].map(store.records.get))).toEqual([null, null, 'three']);
  });
});

describe('a session in memory', () => {
  it('is live from its start, in version 1', async () => {
    await start();
    expect(await load()).toEqual({
      record: 'record of a',
      tokens: { sealed: 'set 1', limit: begun + 10_000, version: 1, touched: begun },
    });
    expect(changes).toEqual(['a']);
    expect(store.tokens.isTracked).toBe(true);
    expect(store.tokens.trackedUntil).toBe(Number.POSITIVE_INFINITY);
  });

  it('is not found without its record, nor without its tokens', async () => {
    await start();
    await store.records.del([recordKey('a')]);
    expect(await load()).toBeUndefined();
    await store.records.set(recordKey('b'), 'record', seconds(60));
    expect(await store.tokens.load('b')).toBeUndefined();
  });

  it('ends after the idle time, together with its record', async () => {
    await start();
    at(idle - 1);
    expect(await load()).toBeDefined();
    at(idle + 1);
    expect(await load()).toBeUndefined();
    expect(await record()).toBeNull();
  });

  it('ends at its limit', async () => {
    await start('a', 500);
    at(499);
    expect(await load()).toBeDefined();
    at(501);
    expect(await load()).toBeUndefined();
  });

  it('does not return if its tokens are written without a record', async () => {
    await store.tokens.start('a', { sealed: 'set 1', limit: begun + 10_000 }, begun);
    expect(await record()).toBeNull();
  });

  it('that is already over when it starts is gone at once', async () => {
    await start('a', -5);
    advance(2);
    expect(await load()).toBeUndefined();
  });

  it('is extended by a request, at most once in an interval', async () => {
    await start();
    at(99);
    expect(await store.tokens.touch('a', begun + 99, 100)).toBe(true);
    expect((await load())?.tokens.touched).toBe(begun);
    expect(changes).toEqual(['a']);
    at(100);
    expect(await store.tokens.touch('a', begun + 100, 100)).toBe(true);
    expect(await load()).toMatchObject({ record: 'record of a', tokens: { touched: begun + 100, sealed: 'set 1' } });
    expect(changes).toEqual(['a', 'a']);
    at(idle + 99);
    expect(await load()).toBeDefined();
    at(idle + 101);
    expect(await load()).toBeUndefined();
    expect(await store.tokens.touch('a', begun + idle + 101, 100)).toBe(false);
    expect(await load()).toBeUndefined();
  });

  it('ends once, is gone with its record, and is reported to all listeners', async () => {
    const others: (string | null)[] = [];
    store.tokens.onChange((handle) => others.push(handle));
    await start();
    expect(await store.tokens.end('a')).toBe(true);
    expect([await load(), await record()]).toEqual([undefined, null]);
    expect(await store.tokens.end('a')).toBe(false);
    expect([changes, others]).toEqual([
      ['a', 'a', 'a'],
      ['a', 'a', 'a'],
    ]);
  });

  it('is counted until it expires', async () => {
    await start('a');
    await start('b', 500);
    expect(await store.tokens.count(begun)).toBe(2);
    at(501);
    expect(await store.tokens.count(begun)).toBe(1);
    await store.tokens.end('a');
    expect(await store.tokens.count(begun)).toBe(0);
  });
});

describe('a refresh of a session in memory', () => {
  const next = { sealed: 'set 2', limit: 0 };
  beforeEach(async () => {
    await start();
    next.limit = begun + 20_000;
  });

  it('is claimed by one attempt, which may repeat its claim', async () => {
    expect(await store.tokens.claim('a', 1, 'one')).toBe('claimed');
    expect(await store.tokens.claim('a', 1, 'one')).toBe('claimed');
    expect(await store.tokens.claim('a', 1, 'two')).toBe('held');
    expect((await load())?.tokens).toMatchObject({ intent: 'one', sealed: 'set 1', version: 1 });
    expect(changes).toEqual(['a', 'a', 'a']);
  });

  it('cannot be claimed for another version or after the end', async () => {
    expect(await store.tokens.claim('a', 2, 'one')).toBe('changed');
    expect((await load())?.tokens).not.toHaveProperty('intent');
    await store.tokens.end('a');
    expect(await store.tokens.claim('a', 1, 'one')).toBe('gone');
    expect(await load()).toBeUndefined();
  });

  it('stores new tokens in the next version, and lets another attempt begin', async () => {
    await store.tokens.claim('a', 1, 'one');
    expect(await store.tokens.conclude('a', 'one', begun, next)).toBe(true);
    expect((await load())?.tokens).toEqual({ ...next, version: 2, touched: begun });
    expect(changes).toEqual(['a', 'a', 'a']);
    expect(await store.tokens.claim('a', 1, 'two')).toBe('changed');
    expect(await store.tokens.claim('a', 2, 'two')).toBe('claimed');
  });

  it('that did not use the token leaves the session as it was', async () => {
    const before = await load();
    await store.tokens.claim('a', 1, 'one');
    expect(await store.tokens.conclude('a', 'one', begun)).toBe(true);
    expect(await load()).toEqual(before);
  });

  it('changes nothing if it lost its claim or the session has ended', async () => {
    expect(await store.tokens.conclude('a', 'one', begun, next)).toBe(false);
    await store.tokens.claim('a', 1, 'one');
    expect(await store.tokens.conclude('a', 'two', begun, next)).toBe(false);
    expect((await load())?.tokens).toMatchObject({ intent: 'one', sealed: 'set 1' });
    await store.tokens.end('a');
    expect(await store.tokens.conclude('a', 'one', begun, next)).toBe(false);
    expect(await load()).toBeUndefined();
  });

  it('is never abandoned, because it ends with its process', async () => {
    await store.tokens.claim('a', 1, 'one');
    await store.tokens.heartbeat('a', 'one');
    expect(await store.tokens.abandon('a', 'one')).toBe(false);
    expect(await load()).toBeDefined();
  });
});

describe('a list of sessions in memory', () => {
  const enter = (handle: string, until: number, time = 0, names = ['list']) =>
    store.index.enter(names, handle, begun + until, begun + time);

  it('has the sessions that end last first, and equal ones in the order of Redis', async () => {
    await enter('a', 100);
    await enter('d', 300);
    await enter('c', 200);
    await enter('b', 200);
    await enter('e', 200);
    expect(await store.index.entries('list', 10)).toEqual(['d', 'e', 'c', 'b', 'a']);
    expect(await store.index.entries('other list', 10)).toEqual([]);
    expect(await store.index.oldest('list', 3)).toEqual(['a', 'b', 'c']);
    expect(await store.index.oldest('other list', 3)).toEqual([]);
  });

  it('reports how many entries it has', async () => {
    await enter('a', 100);
    const both = ['list', 'other list'];
    expect(await enter('b', 100, 0, both)).toEqual(
      new Map([
        ['list', 2],
        ['other list', 1],
      ]),
    );
    expect(await enter('c', 300, 200, both)).toEqual(new Map(both.map((name) => [name, 1])));
  });

  it('is read in pages', async () => {
    for (const [nth, handle] of ['a', 'b', 'c', 'd'].entries()) await enter(handle, 400 - nth * 100);
    expect(await store.index.entries('list', 2)).toEqual(['a', 'b']);
    expect(await store.index.entries('list', 2, 'b')).toEqual(['c', 'd']);
    expect(await store.index.entries('list', 2, 'a')).toEqual(['b', 'c']);
    expect(await store.index.entries('list', 2, 'd')).toEqual([]);
    expect(await store.index.entries('list', 2, 'unknown')).toBeUndefined();
  });

  it('is read on after an entry that was removed, for an hour', async () => {
    for (const handle of ['a', 'b', 'c', 'd']) await enter(handle, 2 * positionLife);
    await enter('e', positionLife / 2);
    // The second removal changes nothing.
    for (const handle of ['c', 'd', 'c', 'd']) await store.index.remove(['list', 'other list'], handle);
    expect(await store.index.entries('list', 1, 'd')).toEqual(['b']);
    expect(await store.index.entries('list', 3, 'c')).toEqual(['b', 'a', 'e']);
    expect(await store.index.entries('other list', 3, 'c')).toBeUndefined();
    for (const handle of ['a', 'b', 'e']) await store.index.remove(['list'], handle);
    expect(await store.index.entries('list', 1, 'd')).toEqual([]);
    at(positionLife - 1);
    expect(await store.index.entries('list', 1, 'd')).toEqual([]);
    at(positionLife + 1);
    expect(await store.index.entries('list', 1, 'd')).toBeUndefined();
  });

  it('forgets the entries that have expired when another one is entered, and all after the last one', async () => {
    await enter('a', 100);
    await enter('b', 101);
    await enter('c', 500, 100);
    expect(await store.index.entries('list', 10)).toEqual(['c', 'b']);
    at(499);
    expect(await store.index.entries('list', 10)).toEqual(['c', 'b']);
    at(501);
    expect(await store.index.entries('list', 10)).toEqual([]);
  });

  it('is kept for as long as its last entry, in whatever order they were entered', async () => {
    await enter('a', 500);
    await enter('b', 100);
    at(499);
    expect(await store.index.entries('list', 10)).toEqual(['a', 'b']);
  });

  it('can be entered and left together with others', async () => {
    await enter('a', 100, 0, ['one', 'two', 'three']);
    await store.index.remove(['one', 'two', 'none'], 'a');
    const lists = await Promise.all(['one', 'two', 'three'].map((name) => store.index.entries(name, 10)));
    expect(lists).toEqual([[], [], ['a']]);
  });

  it('keeps an entry that expires later than its remover knows', async () => {
    await enter('a', 200);
    await store.index.remove(['list'], 'a', begun + 199);
    await store.index.remove(['list'], 'b', begun + 300);
    expect(await store.index.entries('list', 10)).toEqual(['a']);
    await store.index.remove(['list'], 'a', begun + 200);
    expect(await store.index.entries('list', 10)).toEqual([]);
  });
});

describe('a mark in memory', () => {
  it('only rises, and is forgotten after its time', async () => {
    await store.marks.raise('mark', 0, 100);
    expect(await store.marks.value('mark')).toBe(0);
    await store.marks.raise('mark', 5, 100);
    await store.marks.raise('mark', 4, 1_000);
    await store.marks.raise('mark', 5, 1_000);
    expect(await store.marks.value('mark')).toBe(5);
    expect(await store.marks.value('other mark')).toBeUndefined();
    at(99);
    expect(await store.marks.value('mark')).toBe(5);
    at(101);
    expect(await store.marks.value('mark')).toBeUndefined();
    await store.marks.raise('mark', -7, 100);
    expect(await store.marks.value('mark')).toBe(-7);
  });

  it('is compared with the time of the clock', async () => {
    at(42);
    expect(await store.marks.time()).toBe(begun + 42);
  });

  it('is claimed by one caller until its time is over', async () => {
    expect(await store.marks.claim('mark', 1, 100)).toBe(true);
    at(99);
    expect(await store.marks.claim('mark', 2, 100)).toBe(false);
    at(101);
    expect(await store.marks.claim('mark', 3, 100)).toBe(true);
  });
});
