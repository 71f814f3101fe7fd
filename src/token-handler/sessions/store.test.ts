// Tests the contract of session stores. The same suite runs with Redis and with memory.
import { setTimeout as delay } from 'node:timers/promises';
import type { SessionData, Store } from 'express-session';
import pino from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createRedis, type Redis } from '../../service/redis/redis.ts';
import { handleOf } from './cookies.ts';
import { createMemoryStore } from './memory-store.ts';
import { createRecords } from './records.ts';
import { createRedisStore } from './redis-store.ts';
import { recordKey, type Session } from './session.ts';
import type { SessionStore } from './store.ts';

const hour = 3_600_000;
const limits = { idle: hour, maxAge: 12 * hour };
const keys = createKeyRing(`one:${Buffer.alloc(32, 7).toString('base64')}`);
let server: TestRedis;
let redis: Redis;

const connect = ({ url }: TestRedis) =>
  createRedis({
    settings: { topology: { kind: 'server', url } },
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
  });

beforeAll(async () => {
  server = await startTestRedis();
  redis = connect(server);
  while (!redis.tracked.isLive) await delay(10);
});
afterAll(async () => {
  redis.close();
  await server.close();
});

const kinds = {
  redis: (): SessionStore => createRedisStore(redis, limits),
  memory: (): SessionStore => createMemoryStore({ ...limits, clock: () => new Date() }),
};
let serial = 0;

it('a replica whose clock is 40 s ahead of Redis ends no session', async () => {
  const store = createRedisStore(redis, limits);
  const handle = handleOf('the last seconds');
  const expiration = { type: 'EX', value: 3_600 } as const;
  const now = Date.now();
  await store.records.set(recordKey(handle), 'record', { expiration });
  await store.tokens.start(handle, { sealed: 'set 1', limit: now + 30_000 }, now);
  await store.tokens.claim(handle, 1, 'intent');
  expect(await store.tokens.touch(handle, now + 40_000, 0)).toBe(true);
  // The replica with the right clock completes the refresh.
  const next = { sealed: 'set 2', limit: now + hour };
  expect(await store.tokens.conclude(handle, 'intent', now, next)).toBe(true);
  expect((await store.tokens.load(handle))?.tokens).toMatchObject({ sealed: 'set 2', version: 2 });
});

it('all replicas read the clock of the same node of a Redis Cluster, because they name a key', async () => {
  const run = vi.spyOn(redis, 'run');
  onTestFinished(() => run.mockRestore());
  await createRedisStore(redis, limits).marks.time();
  expect(run.mock.calls).toEqual([[expect.anything(), ['{mark:time}'], []]]);
});

it('a store passes on whether, and until when, Redis has reported all changes', () => {
  const { tokens } = createRedisStore(redis, limits);
  expect(tokens.isTracked).toBe(true);
  expect(tokens.trackedUntil).toBeGreaterThan(0);
});

/** Starts a session whose refresh attempt has written no heartbeat for 6 s. */
async function silentAttempt({ tokens }: SessionStore, { command }: TestRedis, name: string): Promise<string> {
  const handle = handleOf(name);
  await tokens.start(handle, { sealed: 'set 1', limit: Date.now() + hour }, Date.now());
  await tokens.claim(handle, 1, 'intent');
  await command('HINCRBY', `{sess:${handle}}:tokens`, 'since', '-6000');
  await command('DEL', `{sess:${handle}}:alive`);
  return handle;
}

it('after a lost connection, an attempt has 3 s to show its life before its session ends', async () => {
  const listeners: ((key: string | null) => void)[] = [];
  const { reads } = redis.tracked;
  const tracked = { reads, isLive: true, toldUntil: 0, onInvalid: listeners.push.bind(listeners) };
  const store = createRedisStore(Object.assign(Object.create(redis), { tracked }) as Redis, limits);
  const { tokens } = store;
  const [first, second] = [await silentAttempt(store, server, 'first'), await silentAttempt(store, server, 'second')];
  for (const listener of listeners) listener('the key of a change');
  expect(await tokens.abandon(first, 'intent')).toBe(true);
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
  onTestFinished(() => clock.mockRestore());
  for (const listener of listeners) listener(null);
  clock.mockReturnValue(3_999);
  expect(await tokens.abandon(second, 'intent')).toBe(false);
  clock.mockReturnValue(4_000);
  expect(await tokens.abandon(second, 'intent')).toBe(true);
});

it('after an outage of a Redis without client tracking, an attempt has 3 s to show its life too', async () => {
  const untracked = await startTestRedis({
    args: ['--user', 'default', 'on', 'nopass', '~*', '+@all', '-client|tracking'],
  });
  onTestFinished(() => untracked.close());
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
  onTestFinished(() => clock.mockRestore());
  const connection = connect(untracked);
  onTestFinished(() => connection.close());
  const store = createRedisStore(connection, limits);
  const { tokens } = store;
  const untilReachable = async (wanted: boolean) => {
    while ((await connection.isReachable()) !== wanted) await delay(10);
  };
  await untilReachable(true);
  clock.mockReturnValue(10_000);
  const first = await silentAttempt(store, untracked, 'first');
  const second = await silentAttempt(store, untracked, 'second');
  expect(await tokens.abandon(first, 'intent')).toBe(true);
  untracked.pause();
  await untilReachable(false);
  untracked.resume();
  await untilReachable(true);
  clock.mockReturnValue(12_999);
  expect(await tokens.abandon(second, 'intent')).toBe(false);
  clock.mockReturnValue(16_000);
  expect(await tokens.abandon(second, 'intent')).toBe(true);
});

it('a session that the index of all sessions has lost is in it again after a refresh', async () => {
  const { tokens, records } = createRedisStore(redis, limits);
  const handle = handleOf('lost from the index');
  const now = Date.now();
  await records.set(recordKey(handle), 'record', { expiration: { type: 'EX', value: 3_600 } });
  const before = await tokens.count(now);
  await tokens.start(handle, { sealed: 'set 1', limit: now + hour }, now);
  await expect.poll(() => tokens.count(now)).toBe(before + 1);
  for (let part = 0; part < 16; part += 1) await server.command('ZREM', `{sessions:open:${part}}`, handle);
  expect(await tokens.count(now)).toBe(before);
  await tokens.claim(handle, 1, 'intent');
  await tokens.conclude(handle, 'intent', now, { sealed: 'set 2', limit: now + hour });
  await expect.poll(() => tokens.count(now)).toBe(before + 1);
});

describe.each(['redis', 'memory'] as const)('a store in %s', (kind) => {
  let store: SessionStore;
  let records: Store;
  let id: string;
  let handle: string;
  let now: number;
  beforeEach(() => {
    store = kinds[kind]();
    records = createRecords(store.records, keys, limits.maxAge);
    serial += 1;
    id = `cookie-${serial}`;
    handle = handleOf(id);
    now = Date.now();
  });

  const record = (members: Partial<SessionData> = {}) =>
    ({ cookie: { originalMaxAge: null, path: '/' }, attempts: 'a browser', ...members }) as unknown as SessionData;
  const signedIn = (members: Partial<Session> = {}) => record({ signedIn: { handle, ...members } as Session });
  const put = (data: SessionData, name = id) =>
    new Promise<void>((resolve, reject) => records.set(name, data, (error) => (error ? reject(error) : resolve())));
  const get = (name = id) =>
    new Promise<SessionData | null | undefined>((resolve, reject) =>
      records.get(name, (error, found) => (error ? reject(error) : resolve(found))),
    );
  const destroy = (name = id) =>
    new Promise<void>((resolve, reject) => records.destroy(name, (error) => (error ? reject(error) : resolve())));
  const start = async (limit = now + 12 * hour) => {
    await put(signedIn());
    await store.tokens.start(handle, { sealed: 'set 1', limit }, now);
  };

  describe('counts sessions', () => {
    const count = async () => {
      const sessions = await store.tokens.count(Date.now());
      expect(sessions).toBeGreaterThanOrEqual(0);
      return sessions;
    };
    const change = (before: number, by: number) => expect.poll(count).toBe(before + by);

    it('from their start to their end', async () => {
      const before = await count();
      await start();
      await change(before, 1);
      await store.tokens.end(handle);
      await change(before, 0);
    });

    it('until they expire, and longer if requests postpone that', async () => {
      const before = await count();
      await put(signedIn());
      // The session has been idle for almost an hour.
      await store.tokens.start(handle, { sealed: 'set 1', limit: now + hour }, now - hour + 2_000);
      await change(before, 1);
      await store.tokens.touch(handle, now - hour + 4_000, 100);
      await delay(now + 2_100 - Date.now());
      expect(await count()).toBe(before + 1);
      await change(before, 0);
    });

    it('once, although their tokens are refreshed', async () => {
      const before = await count();
      await start();
      await store.tokens.claim(handle, 1, 'intent');
      await store.tokens.conclude(handle, 'intent', Date.now(), { sealed: 'set 2', limit: now + hour });
      await store.tokens.touch(handle, now + 1_000, 0);
      await store.tokens.touch(handle, now + 1_001, 60_000);
      await delay(100);
      expect(await count()).toBe(before + 1);
      await store.tokens.end(handle);
      await change(before, 0);
    });
  });

  describe('of records', () => {
    it('returns the record that was stored under the id', async () => {
      await put(record());
      expect(await get()).toMatchObject({ attempts: 'a browser' });
      expect(await get('another')).toBeFalsy();
    });

    it('does not return a destroyed record', async () => {
      await put(record());
      await destroy();
      expect(await get()).toBeFalsy();
    });

    it('encrypts each record for its own session', async () => {
      await put(signedIn());
      await store.tokens.start(handle, { sealed: 'x', limit: now + hour }, now);
      const text = (await store.tokens.load(handle))?.record ?? '';
      expect(text).not.toContain(handle);
      expect(() => keys.open(text, `record of session ${handleOf('another')}`)).toThrow();
      expect(JSON.parse(keys.open(text, `record of session ${handle}`))).toMatchObject({ signedIn: { handle } });
    });

    it('returns no record that is encrypted with a key outside the ring', async () => {
      const other = createKeyRing(`two:${Buffer.alloc(32, 8).toString('base64')}`);
      const foreign = createRecords(store.records, other, limits.maxAge);
      await new Promise<void>((resolve) => foreign.set(id, record(), () => resolve()));
      expect(await get()).toBeFalsy();
    });
  });

  describe('of token sets', () => {
    it('a session exists only while its tokens do', async () => {
      await put(signedIn());
      expect(await store.tokens.load(handle)).toBeUndefined();
      await store.tokens.start(handle, { sealed: 'set 1', limit: now + hour }, now);
      expect((await store.tokens.load(handle))?.tokens).toEqual({
        version: 1,
        sealed: 'set 1',
        limit: now + hour,
        touched: now,
      });
    });

    it('a session exists only while its record does', async () => {
      await start();
      await destroy();
      expect(await store.tokens.load(handle)).toBeUndefined();
    });

    it('one attempt claims the refresh of a version, and may repeat its claim', async () => {
      await start();
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, index) => store.tokens.claim(handle, 1, `attempt ${index}`)),
      );
      expect(claims.filter((claim) => claim === 'claimed')).toHaveLength(1);
      expect(claims.filter((claim) => claim === 'held')).toHaveLength(19);
      const winner = claims.indexOf('claimed');
      expect(await store.tokens.claim(handle, 1, `attempt ${winner}`)).toBe('claimed');
      expect((await store.tokens.load(handle))?.tokens.intent).toBe(`attempt ${winner}`);
    });

    it('an attempt that sends no heartbeat for 5 s loses its session, by the clock of the store', async () => {
      await start();
      expect(await store.tokens.abandon(handle, 'first')).toBe(false);
      await store.tokens.claim(handle, 1, 'first');
      expect(await store.tokens.abandon(handle, 'first')).toBe(false);
      if (kind === 'memory') return;
      const [alive, tokens] = [`{sess:${handle}}:alive`, `{sess:${handle}}:tokens`];
      expect(Number(await server.command('PTTL', alive))).toBeGreaterThan(4_000);
      await server.command('HINCRBY', tokens, 'since', '-6000');
      expect(await store.tokens.abandon(handle, 'first')).toBe(false);
      await server.command('DEL', alive);
      await store.tokens.heartbeat(handle, 'second');
      expect(await server.command('EXISTS', alive)).toBe(0);
      await store.tokens.heartbeat(handle, 'first');
      expect(await store.tokens.abandon(handle, 'first')).toBe(false);
      await server.command('DEL', alive);
      expect(await store.tokens.abandon(handle, 'second')).toBe(false);
      expect(await store.tokens.abandon(handle, 'first')).toBe(true);
      expect(await store.tokens.load(handle)).toBeUndefined();
      await store.tokens.heartbeat(handle, 'first');
      expect(await server.command('EXISTS', alive)).toBe(0);
      expect(await store.tokens.conclude(handle, 'first', now, { sealed: 'set 2', limit: now + hour })).toBe(false);
    });

    it('a claim to a replaced version fails', async () => {
      await start();
      await store.tokens.claim(handle, 1, 'first');
      expect(await store.tokens.conclude(handle, 'first', now, { sealed: 'set 2', limit: now + hour })).toBe(true);
      expect(await store.tokens.claim(handle, 1, 'second')).toBe('changed');
      expect(await store.tokens.claim(handle, 2, 'second')).toBe('claimed');
    });

    it('only the attempt with the intent replaces the tokens, which removes the intent', async () => {
      await start();
      const next = { sealed: 'set 2', limit: now + hour };
      expect(await store.tokens.conclude(handle, 'none', now, next)).toBe(false);
      await store.tokens.claim(handle, 1, 'first');
      expect(await store.tokens.conclude(handle, 'second', now, next)).toBe(false);
      expect((await store.tokens.load(handle))?.tokens.sealed).toBe('set 1');
      expect(await store.tokens.conclude(handle, 'first', now, next)).toBe(true);
      expect((await store.tokens.load(handle))?.tokens).toEqual({ version: 2, ...next, touched: now });
      expect(await store.tokens.conclude(handle, 'first', now, next)).toBe(false);
    });

    it('only its own attempt releases an intent', async () => {
      await start();
      await store.tokens.claim(handle, 1, 'first');
      await store.tokens.conclude(handle, 'second', now);
      expect((await store.tokens.load(handle))?.tokens.intent).toBe('first');
      await store.tokens.conclude(handle, 'first', now);
      const released = (await store.tokens.load(handle))?.tokens;
      expect(released).toStrictEqual({ version: 1, sealed: 'set 1', limit: now + 12 * hour, touched: now });
    });

    it('no touch, claim, replacement or release brings an ended session back', async () => {
      await start();
      await store.tokens.claim(handle, 1, 'first');
      expect(await store.tokens.end(handle)).toBe(true);
      expect(await store.tokens.touch(handle, now + hour / 2, 0)).toBe(false);
      expect(await store.tokens.conclude(handle, 'first', now, { sealed: 'set 2', limit: now + hour })).toBe(false);
      expect(await store.tokens.claim(handle, 1, 'second')).toBe('gone');
      await store.tokens.conclude(handle, 'first', now);
      expect(await store.tokens.load(handle)).toBeUndefined();
      expect(await store.tokens.end(handle)).toBe(false);
    });

    it('a record that is written after the end does not bring the session back', async () => {
      await start();
      await store.tokens.end(handle);
      await put(signedIn());
      expect(await store.tokens.load(handle)).toBeUndefined();
    });

    it('a touch within the interval changes nothing', async () => {
      await start();
      expect(await store.tokens.touch(handle, now + 59_000, 60_000)).toBe(true);
      expect((await store.tokens.load(handle))?.tokens.touched).toBe(now);
      expect(await store.tokens.touch(handle, now + 60_000, 60_000)).toBe(true);
      expect((await store.tokens.load(handle))?.tokens.touched).toBe(now + 60_000);
    });

    it('a session and its record expire at its limit', async () => {
      await start(now + 1_500);
      expect(await store.tokens.load(handle)).toBeDefined();
      await expect.poll(() => store.tokens.load(handle)).toBeUndefined();
      expect(await get()).toBeFalsy();
    });

    it('each change of a session that was read is reported', async () => {
      const reported: (string | null)[] = [];
      store.tokens.onChange((changed) => reported.push(changed));
      await start();
      for (const change of [
        () => store.tokens.touch(handle, now + 60_000, 60_000),
        () => store.tokens.claim(handle, 1, 'first'),
        () => store.tokens.conclude(handle, 'first', now, { sealed: 'set 2', limit: now + hour }),
        () => store.tokens.end(handle),
      ]) {
        await store.tokens.load(handle);
        reported.length = 0;
        await change();
        for (let waited = 0; !reported.includes(handle) && waited < 60_000; waited += 5) await delay(5);
        expect(reported).toContain(handle);
      }
    });
  });

  describe('of indexes and marks', () => {
    it('lists the latest entries first, page by page', async () => {
      const index = `index ${serial}`;
      for (let entry = 1; entry <= 5; entry += 1)
        await store.index.enter([index], `handle ${entry}`, now + entry * 1_000, now);
      expect(await store.index.entries(index, 2)).toEqual(['handle 5', 'handle 4']);
      expect(await store.index.entries(index, 2, 'handle 4')).toEqual(['handle 3', 'handle 2']);
      expect(await store.index.oldest(index, 2)).toEqual(['handle 1', 'handle 2']);
      expect(await store.index.entries(index, 2, 'handle 1')).toEqual([]);
      expect(await store.index.entries(index, 2, 'unknown')).toBeUndefined();
      await store.index.remove([index], 'handle 5');
      expect(await store.index.entries(index, 10)).toEqual(['handle 4', 'handle 3', 'handle 2', 'handle 1']);
    });

    it('lists the entries that follow a removed one, also among entries that expire at the same time', async () => {
      const index = `index ${serial}`;
      for (const handle of ['a', 'b', 'c', 'd']) await store.index.enter([index], handle, now + hour, now);
      await store.index.enter([index], 'e', now + hour - 1, now);
      for (const handle of ['c', 'd']) await store.index.remove([index], handle);
      expect(await store.index.entries(index, 1, 'd')).toEqual(['b']);
      expect(await store.index.entries(index, 3, 'c')).toEqual(['b', 'a', 'e']);
      expect(await store.index.entries(index, 3)).toEqual(['b', 'a', 'e']);
      for (const handle of ['a', 'b', 'e']) await store.index.remove([index], handle);
      expect(await store.index.entries(index, 1, 'd')).toEqual([]);
      expect(await store.index.entries(`other ${index}`, 1, 'd')).toBeUndefined();
    });

    it('returns the number of entries of each index, without expired ones', async () => {
      const [one, other] = [`index ${serial}`, `other index ${serial}`];
      expect(await store.index.enter([one], 'a', now + 1_000, now)).toEqual(new Map([[one, 1]]));
      await store.index.enter([one, other], 'b', now + hour, now);
      const sizes = await store.index.enter([one, other], 'c', now + hour, now);
      expect(sizes).toEqual(
        new Map([
          [one, 3],
          [other, 2],
        ]),
      );
      expect((await store.index.enter([one], 'c', now + hour, now + 2_000)).get(one)).toBe(2);
    });

    it('drops expired entries', async () => {
      const index = `index ${serial}`;
      await store.index.enter([index], 'old', now - 1, now - 1_000);
      await store.index.enter([index], 'new', now + hour, now);
      expect(await store.index.entries(index, 10)).toEqual(['new']);
    });

    it('keeps the greatest value of a mark until it expires', async () => {
      const name = `mark ${serial}`;
      expect(await store.marks.value(name)).toBeUndefined();
      await store.marks.raise(`another ${name}`, 7, 2_000);
      await store.marks.raise(name, 5, 2_000);
      await store.marks.raise(name, 3, 2_000);
      expect(await store.marks.value(name)).toBe(5);
      await expect.poll(() => store.marks.value(name)).toBeUndefined();
    });

    it('has its own clock', async () => {
      const before = await store.marks.time();
      expect(Math.abs(before - Date.now())).toBeLessThan(60_000);
      await expect.poll(() => store.marks.time()).toBeGreaterThan(before);
    });

    it('gives a mark to one of many callers, until it expires', async () => {
      const name = `claimed mark ${serial}`;
      const claims = await Promise.all(Array.from({ length: 5 }, (_, value) => store.marks.claim(name, value, 2_000)));
      expect(claims.filter((isFirst) => isFirst)).toHaveLength(1);
      await expect.poll(() => store.marks.claim(name, 1, 60_000), { interval: 50 }).toBe(true);
      expect(await store.marks.claim(name, 1, 60_000)).toBe(false);
      expect(await store.marks.value(name)).toBe(1);
    });

    it('removes a mark only for the caller that knows its value', async () => {
      const name = `mark ${serial}`;
      const value = 2 ** 48 - 2;
      expect(await store.marks.claim(name, value, 60_000)).toBe(true);
      await store.marks.remove(name, value - 1);
      expect(await store.marks.claim(name, 1, 60_000)).toBe(false);
      await store.marks.remove(name, value);
      await store.marks.remove(name, value);
      expect(await store.marks.value(name)).toBeUndefined();
    });
  });
});
