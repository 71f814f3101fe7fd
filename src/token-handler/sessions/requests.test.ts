// Tests how requests use sessions in a real Redis: round trips, the cache, its invalidation, and `onEnd` listeners.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import { startTestRedis, type TestRedis, type TestRedisOptions } from '../../../test/support/redis.ts';
import {
  addReplicaClient,
  type SessionReplica,
  type SessionReplicaOptions,
  startSessionReplica,
} from '../../../test/support/session-replica.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { startTcpGate } from '../../../test/support/tcp-gate.ts';
import { until as untilTrue } from '../../../test/support/until.ts';

let access: TestAccess;
let redis: TestRedis;
let offset: number;
let replicas: SessionReplica[];
const clock = () => new Date(Date.now() + offset);

beforeAll(async () => {
  access = await startTestAccess();
  await addReplicaClient(access);
});
afterAll(() => access.close());
beforeEach(async () => {
  offset = 0;
  replicas = [];
  redis = await startTestRedis();
});
afterEach(async () => {
  redis.resume();
  await Promise.all(replicas.map((replica) => replica.close()));
  await redis.close();
});

async function start(options: Partial<SessionReplicaOptions> = {}): Promise<SessionReplica> {
  const replica = await startSessionReplica({ access, redisUrl: redis.url, clock, ...options });
  replicas.push(replica);
  return replica;
}

/** Returns the number of commands that Redis has run, not counting pings and the commands of the test itself. */
async function commands(): Promise<number> {
  const stats = String(await redis.command('INFO', 'commandstats'));
  const counts = [...stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)];
  return counts
    .filter(([, name]) => !/^(info|ping|client|hello|config)/.test(name ?? ''))
    .reduce((sum, [, , calls]) => sum + Number(calls), 0);
}
const until = (holds: () => boolean | Promise<boolean>) => untilTrue(`${holds}`, holds, { interval: 10 });
/** Waits until `holds` returns true, and expects that this takes less than `most` milliseconds. */
async function untilWithin(most: number, holds: () => boolean): Promise<void> {
  const stopwatch = startStopwatch();
  await until(holds);
  expect(stopwatch.stop()).toBeLessThan(most);
}

describe('a request whose session was read before', () => {
  it('makes no round trip to the store', async () => {
    const replica = await start();
    const { cookie, tokens } = await replica.open();
    await replica.call(cookie);
    await delay(50);
    const before = await commands();
    for (let call = 0; call < 500; call += 1) expect(await replica.call(cookie)).toBe(tokens.accessToken);
    expect(await commands()).toBe(before);
  });

  it('is recorded at most once a minute, by all replicas together', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    const { cookie, session } = await one.open();
    const touched = async () => Number(await redis.command('HGET', `{sess:${session.handle}}:tokens`, 'touched'));
    const opened = await touched();
    for (const seconds of [10, 30, 59]) {
      offset = seconds * 1_000;
      await Promise.all([one.call(cookie), two.call(cookie)]);
    }
    await delay(50);
    expect(await touched()).toBe(opened);
    offset = 61_000;
    await Promise.all([one.call(cookie), two.call(cookie)]);
    await until(async () => (await touched()) > opened + 60_000);
    const marked = await touched();
    offset = 90_000;
    await Promise.all([one.call(cookie), two.call(cookie)]);
    await delay(50);
    expect(await touched()).toBe(marked);
  });

  it('postpones the idle timeout', async () => {
    const replica = await start({ limits: { idle: 600_000 } });
    const { cookie, session } = await replica.open();
    const touched = async () => Number(await redis.command('HGET', `{sess:${session.handle}}:tokens`, 'touched'));
    const opened = await touched();
    for (let minutes = 0; minutes < 30; minutes += 3) {
      offset = minutes * 60_000;
      expect(await replica.read(cookie)).toBeDefined();
      // A request whose session is still cached without the time of the last request does not record its own time.
      await until(async () => (await replica.read(cookie)) !== undefined && (await touched()) >= opened + offset);
    }
    offset += 601_000;
    expect(await replica.read(cookie)).toBeUndefined();
  });
});

describe('a revoked session', () => {
  it('is rejected immediately by the replica that revoked it, and by others within 100 ms', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    const { cookie, session } = await one.open();
    await Promise.all([one.call(cookie), two.call(cookie)]);
    await one.sessions.end(session);
    expect(await one.call(cookie)).toBe('refused');
    const stopwatch = startStopwatch();
    await until(async () => (await two.call(cookie)) === 'refused');
    // Without invalidation messages, the replica would end the session only after 4 s.
    expect(stopwatch.stop()).toBeLessThan(3_000);
  });

  it('is rejected within 4 s by a replica without Redis, which responds with 503 to all sessions', async () => {
    const replica = await start();
    const { cookie, tokens } = await replica.open();
    await replica.call(cookie);
    redis.pause();
    const stopwatch = startStopwatch();
    let last = '';
    await until(async () => {
      last = await replica.call(cookie).catch((error: { status: number }) => String(error.status));
      return last !== tokens.accessToken;
    });
    expect(last).toBe('503');
    // The machine may be busy, so the limit is longer than the 4 s.
    expect(stopwatch.stop()).toBeLessThan(6_000);
    redis.resume();
    await until(async () => (await replica.call(cookie).catch(() => '')) === tokens.accessToken);
  });
});

describe('a Redis without client tracking', () => {
  const old: TestRedisOptions = { args: ['--rename-command', 'HELLO', ''] };

  it('is read on every request, and a revoked session is rejected immediately', async () => {
    await redis.close();
    redis = await startTestRedis(old);
    const [one, two] = await Promise.all([start(), start()]);
    await until(async () => (await two.redis?.isReachable()) ?? false);
    const { cookie, session, tokens } = await one.open();
    expect(await two.call(cookie)).toBe(tokens.accessToken);
    const before = await commands();
    expect(await two.call(cookie)).toBe(tokens.accessToken);
    expect((await commands()) - before).toBe(2);
    await one.sessions.end(session);
    expect(await two.call(cookie)).toBe('refused');
  });
});

describe('a listener for the end of a session', () => {
  const watch = async (replica: SessionReplica, cookie: string) => {
    const live = await replica.read(cookie);
    let ends = 0;
    const stop = live?.onEnd(() => {
      ends += 1;
    });
    return { ends: () => ends, stop: () => stop?.() };
  };

  it.each([
    ['revoked by another replica', (one: SessionReplica, session: never) => one.sessions.end(session)],
    ['flushed from Redis', () => redis.command('FLUSHALL')],
  ])('is called once, within 2 s, if the session is %s', async (_what, end) => {
    const [one, two] = await Promise.all([start(), start()]);
    const { cookie, session } = await one.open();
    const watched = await watch(two, cookie);
    await end(one, session as never);
    const stopwatch = startStopwatch();
    await until(() => watched.ends() === 1);
    expect(stopwatch.stop()).toBeLessThan(2_000);
    await delay(1_200);
    expect(watched.ends()).toBe(1);
  });

  it('is called within 2 s after the idle timeout', async () => {
    const replica = await start();
    const { cookie } = await replica.open();
    const watched = await watch(replica, cookie);
    await delay(1_100);
    expect(watched.ends()).toBe(0);
    offset = 3_600_001;
    await untilWithin(2_000, () => watched.ends() === 1);
  });

  it('is called if the session ended before the listener was added', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    const { cookie, session } = await one.open();
    const live = await two.read(cookie);
    await one.sessions.end(session);
    let ended = false;
    live?.onEnd(() => {
      ended = true;
    });
    await untilWithin(2_000, () => ended);
  });

  it('is called without client tracking, too', async () => {
    await redis.close();
    redis = await startTestRedis({ args: ['--rename-command', 'HELLO', ''] });
    const [one, two] = await Promise.all([start(), start()]);
    await until(async () => (await one.redis?.isReachable()) === true && (await two.redis?.isReachable()) === true);
    const { cookie, session } = await one.open();
    const watched = await watch(two, cookie);
    await one.sessions.end(session);
    await untilWithin(2_500, () => watched.ends() === 1);
  });

  it('is not called after it was removed', async () => {
    const replica = await start();
    const { cookie, session } = await replica.open();
    const [stopped, waiting] = [await watch(replica, cookie), await watch(replica, cookie)];
    stopped.stop();
    await replica.sessions.end(session);
    await until(() => waiting.ends() === 1);
    expect(stopped.ends()).toBe(0);
  });

  it('is not called because Redis is unavailable for a moment', async () => {
    const replica = await start();
    const { cookie } = await replica.open();
    const watched = await watch(replica, cookie);
    await delay(1_200);
    redis.pause();
    // Pings are a second apart, so one of them waits.
    await delay(1_100);
    redis.resume();
    await until(async () => (await replica.read(cookie).catch(() => undefined)) !== undefined);
    await delay(4_200);
    expect(watched.ends()).toBe(0);
  });

  it('is called within 4 s if its replica loses Redis', async () => {
    const gate = await startTcpGate(redis.port);
    onTestFinished(() => gate.close());
    const [one, two] = [await start(), await start({ redisUrl: `redis://127.0.0.1:${gate.port}` })];
    const { cookie } = await one.open();
    for (const cutOff of [() => gate.freeze(), () => gate.shut()]) {
      const watched = await watch(two, cookie);
      await delay(1_200);
      await cutOff();
      const stopwatch = startStopwatch();
      await until(() => watched.ends() === 1);
      expect(stopwatch.stop()).toBeLessThan(4_500);
      await gate.open();
      await until(async () => (await two.read(cookie).catch(() => undefined)) !== undefined);
    }
  });
});

describe('key rotation', () => {
  const ring = (...names: string[]) =>
    names.map((name) => `${name}:${Buffer.alloc(32, name).toString('base64')}`).join(',');

  it('signs nobody out', async () => {
    const before = await start({ keyRing: ring('old') });
    const { cookie, tokens } = await before.open();
    const added = await start({ keyRing: ring('old', 'new') });
    expect(await added.call(cookie)).toBe(tokens.accessToken);
    const moved = await start({ keyRing: ring('new', 'old') });
    expect(await moved.call(cookie)).toBe(tokens.accessToken);
    const young = await moved.open();
    expect(await added.call(young.cookie)).toBe(young.tokens.accessToken);
    const dropped = await start({ keyRing: ring('new') });
    expect(await dropped.call(young.cookie)).toBe(young.tokens.accessToken);
    expect(await dropped.call(cookie)).toBe('refused');
  });
});
