// Tests how processes share the counts of a local rate limit, on a real Redis.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createRedis } from '../redis/redis.ts';
import { createRateLimits } from './rate-limit.ts';

// The tests run concurrently, because they spend most of their time waiting.
describe.concurrent('a local rate limit among replicas', () => {
  let redis: TestRedis;
  const window = 100 * 60_000;
  beforeAll(async () => {
    redis = await startTestRedis();
    await roomInWindow(window, 60_000);
  });
  afterAll(() => redis.close());

  const replica = ({ url } = redis) => {
    const { log } = captureLog();
    const topology = { kind: 'server', url } as const;
    const connection = createRedis({ settings: { topology }, log, metrics: createMetrics() });
    const limits = createRateLimits({ redis: connection, clock: () => new Date(), log, metrics: createMetrics() });
    return {
      session: limits.local({ name: 'session', most: 100, window }),
      address: limits.local({ name: 'address', most: 100, window }),
      /** Resolves when all commands sent so far have replies, because Redis replies in order. */
      settled: () => connection.commands.get('any'),
      close() {
        limits.close();
        connection.close();
      },
    };
  };
  type Replica = ReturnType<typeof replica>;
  const count = ({ session }: Replica, key: string, times: number) =>
    Array.from({ length: times }, () => session.count(key)).filter(({ isAllowed }) => isAllowed).length;

  /** Returns the total that the replicas have sent to Redis for a session. */
  const told = async (key: string, { command } = redis) => {
    const [name = ''] = (await command('KEYS', `limit:*:session:*:${key}`)) as string[];
    return Number(await command('GET', name));
  };
  const untilTold = async (key: string, total: number, at = redis) => {
    for (let waited = 0; (await told(key, at)) !== total; waited += 50) {
      if (waited > 60_000) throw new Error(`${await told(key, at)} of ${total} were told`);
      await delay(50);
    }
  };

  it('is shared within a second of the next request, separately for each key and name', async () => {
    const [one, other] = [replica(), replica()];
    expect(count(one, 'a', 60)).toBe(60);
    expect(count(other, 'a', 30)).toBe(30);
    await untilTold('a', 90);
    // A replica that counts a request gets the total within a second.
    one.session.count('a');
    other.session.count('a');
    await untilTold('a', 92);
    await one.settled();
    const { remaining } = one.session.count('a');
    expect([7, 8]).toContain(remaining);
    expect(count(one, 'a', 60)).toBe(remaining);
    await untilTold('a', 93 + remaining);
    other.session.count('a');
    await untilTold('a', 94 + remaining);
    await other.settled();
    expect(other.session.count('a')).toMatchObject({ isAllowed: false });
    expect([one.session.count('b').remaining, one.address.count('a').remaining]).toEqual([99, 99]);
    one.close();
    other.close();
  });

  it('takes back a request on every replica, and never more than were counted', async () => {
    const [one, other] = [replica(), replica()];
    count(one, 'back', 2);
    await untilTold('back', 2);
    for (let times = 0; times < 3; times += 1) one.session.uncount('back');
    await untilTold('back', 0);
    expect([one.session.count('back').remaining, other.session.count('back').remaining]).toEqual([99, 99]);
    one.close();
    other.close();
  });

  it('is kept in Redis for at most two windows', async () => {
    const one = replica();
    one.session.count('kept');
    await untilTold('kept', 1);
    const keys = (await redis.command('KEYS', 'limit:*')) as string[];
    expect(keys).not.toEqual([]);
    for (const key of keys) {
      const left = Number(await redis.command('PTTL', key));
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(2 * window);
    }
    one.close();
  });

  it('is shared only for keys that used a hundredth of it, so that a flood of keys does not fill Redis', async ({
    onTestFinished,
  }) => {
    const server = await startTestRedis();
    onTestFinished(() => server.close());
    const { log } = captureLog();
    const connection = createRedis({
      settings: { topology: { kind: 'server', url: server.url } },
      log,
      metrics: createMetrics(),
    });
    const limits = createRateLimits({ redis: connection, clock: () => new Date(), log, metrics: createMetrics() });
    const limit = limits.local({ name: 'session', most: 1_000, window });
    for (let index = 0; index < 5_000; index += 1) limit.count(`flood ${index}`);
    for (let times = 0; times < 50; times += 1) limit.count('person');
    await untilTold('person', 50, server);
    expect(await server.command('DBSIZE')).toBe(1);
    limits.close();
    connection.close();
  });

  it('shares thousands of keys together', async () => {
    const [one, other] = [replica(), replica()];
    const some = Array.from({ length: 30 }, (_, index) => `key ${index * 100}`);
    for (let index = 0; index < 3_000; index += 1) count(one, `key ${index}`, 2);
    for (const key of some) await untilTold(key, 2);
    for (let index = 0; index < 3_000; index += 1) other.session.count(`key ${index}`);
    for (const key of some) await untilTold(key, 3);
    await other.settled();
    for (const key of some) expect(other.session.count(key).remaining).toBe(96);
    one.close();
    other.close();
  });

  it('counts each request once, even if Redis adds a count whose reply was lost', async ({ onTestFinished }) => {
    const paused = await startTestRedis();
    onTestFinished(() => paused.close());
    const one = replica(paused);
    one.session.count('before');
    await untilTold('before', 1, paused);
    paused.pause();
    expect(count(one, 'lost', 60)).toBe(60);
    // Gives the exchange time to fail, after 3.5 s at most. Its command stays in a buffer until Redis continues.
    await delay(4_500);
    expect(count(one, 'lost', 60)).toBe(40);
    // These counts are kept: they were not sent, because the replica knows that Redis is down.
    await delay(1_500);
    paused.resume();
    one.session.count('after');
    await untilTold('after', 1, paused);
    await one.settled();
    // Redis adds the first 60 only if their command was still in the buffer.
    expect([40, 100]).toContain(await told('lost', paused));
    one.close();
  });

  it('counts in memory while Redis is down, and is shared when Redis is back', async ({ onTestFinished }) => {
    const paused = await startTestRedis();
    onTestFinished(() => paused.close());
    const [one, other] = [replica(paused), replica(paused)];
    one.session.count('before');
    await untilTold('before', 1, paused);
    paused.pause();
    expect(count(one, 'away', 150)).toBe(100);
    await delay(3_500);
    expect(count(one, 'away', 10)).toBe(0);
    paused.resume();
    // This replica alone stays far below the limit. Only the counts of the other replica can exhaust the limit.
    let last = other.session.count('away');
    for (let waited = 0; last.isAllowed && waited < 60_000; waited += 500) {
      await delay(500);
      last = other.session.count('away');
    }
    expect(last.isAllowed).toBe(false);
    one.close();
    other.close();
  });
});
