// How target requests are counted: by a clock that a test moves, and among replicas on a real Redis.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { createMetrics } from '../../service/metrics.ts';
import { createRedis } from '../../service/redis.ts';
import { createRequestCounters } from './limit.ts';

const minute = 60_000;

describe('a count of requests', () => {
  const start = (most = 3) => {
    let now = 10 * minute + 15_000;
    const { log } = captureLog();
    const counters = createRequestCounters({ redis: undefined, clock: () => new Date(now), log });
    const counter = counters.create({ name: 'test', most, window: minute });
    return {
      counter,
      advance: (milliseconds: number) => {
        now += milliseconds;
      },
    };
  };

  it('allows so many in a window and says how many are left and for how long', () => {
    const { counter, advance } = start();
    expect(counter.count('a')).toEqual({ isAllowed: true, remaining: 2, reset: 45 });
    advance(1_500);
    expect(counter.count('a')).toEqual({ isAllowed: true, remaining: 1, reset: 44 });
    expect(counter.count('a')).toEqual({ isAllowed: true, remaining: 0, reset: 44 });
    expect(counter.count('a')).toEqual({ isAllowed: false, remaining: 0, reset: 44 });
    expect(counter.count('b').isAllowed).toBe(true);
  });

  it('begins anew with each window', () => {
    const { counter, advance } = start(1);
    expect([counter.count('a').isAllowed, counter.count('a').isAllowed]).toEqual([true, false]);
    advance(45_000);
    expect(counter.count('a')).toEqual({ isAllowed: true, remaining: 0, reset: 60 });
  });

  it('forgets the oldest keys where there are too many, so that memory stays bounded', () => {
    const { counter } = start(1);
    counter.count('first');
    for (let index = 0; index < 100_000; index += 1) counter.count(`address ${index}`);
    expect(counter.count('first').isAllowed).toBe(true);
    expect(counter.count('address 99999').isAllowed).toBe(false);
  });
});

// They wait more than they compute.
describe.concurrent('a count of requests among replicas', () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startTestRedis();
  });
  afterAll(() => redis.close());

  const replica = ({ url } = redis) => {
    const { log } = captureLog();
    const topology = { kind: 'server', url } as const;
    const connection = createRedis({ settings: { topology }, log, metrics: createMetrics() });
    const counters = createRequestCounters({ redis: connection, clock: () => new Date(), log });
    const window = 100 * minute;
    return {
      session: counters.create({ name: 'session', most: 100, window }),
      address: counters.create({ name: 'address', most: 100, window }),
      close() {
        counters.close();
        connection.close();
      },
    };
  };
  type Replica = ReturnType<typeof replica>;
  const count = ({ session }: Replica, key: string, times: number) =>
    Array.from({ length: times }, () => session.count(key)).filter(({ isAllowed }) => isAllowed).length;

  /** What all replicas have told of a session. */
  const told = async (key: string, { command } = redis) => {
    const [name = ''] = (await command('KEYS', `limit:*:session:*:${key}`)) as string[];
    return Number(await command('GET', name));
  };
  const untilTold = async (key: string, total: number, at = redis) => {
    for (let waited = 0; (await told(key, at)) !== total; waited += 50) {
      if (waited > 15_000) throw new Error(`${await told(key, at)} of ${total} were told`);
      await delay(50);
    }
  };

  it('is shared within a second of the next request, each key and name by itself', async () => {
    const [one, other] = [replica(), replica()];
    expect(count(one, 'a', 60)).toBe(60);
    expect(count(other, 'a', 30)).toBe(30);
    await untilTold('a', 90);
    // Whoever counts is told the sum within a second.
    one.session.count('a');
    other.session.count('a');
    await untilTold('a', 92);
    const { remaining } = one.session.count('a');
    expect([7, 8]).toContain(remaining);
    expect(count(one, 'a', 60)).toBe(remaining);
    await untilTold('a', 93 + remaining);
    other.session.count('a');
    await untilTold('a', 94 + remaining);
    expect(other.session.count('a')).toMatchObject({ isAllowed: false });
    expect([one.session.count('b').remaining, one.address.count('a').remaining]).toEqual([99, 99]);
    one.close();
    other.close();
  });

  it('is kept in Redis for two windows at most', async () => {
    const one = replica();
    one.session.count('kept');
    await untilTold('kept', 1);
    const keys = (await redis.command('KEYS', 'limit:*')) as string[];
    for (const key of keys) expect(Number(await redis.command('PTTL', key))).toBeGreaterThan(0);
    one.close();
  });

  it('tells thousands of keys at once', async () => {
    const [one, other] = [replica(), replica()];
    const some = Array.from({ length: 30 }, (_, index) => `key ${index * 100}`);
    for (let index = 0; index < 3_000; index += 1) count(one, `key ${index}`, 2);
    for (const key of some) await untilTold(key, 2);
    for (let index = 0; index < 3_000; index += 1) other.session.count(`key ${index}`);
    for (const key of some) await untilTold(key, 3);
    for (const key of some) expect(other.session.count(key).remaining).toBe(96);
    one.close();
    other.close();
  });

  it('goes on in memory while Redis is away, and is told when it is back', async ({ onTestFinished }) => {
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
    // Far fewer counts of its own than the limit: only what the other one tells can reach it.
    let last = other.session.count('away');
    for (let waited = 0; last.isAllowed && waited < 15_000; waited += 500) {
      await delay(500);
      last = other.session.count('away');
    }
    expect(last.isAllowed).toBe(false);
    one.close();
    other.close();
  });
});

describe('target requests', () => {
  let world: TargetWorld;
  beforeAll(async () => {
    const env = { TARGET_SESSION_LIMIT: '20', TARGET_ADDRESS_LIMIT: '50', TARGET_WINDOW: 'PT1H' };
    world = await startTargetWorld({ store: 'redis', env });
  });
  afterAll(() => world.close());

  it('say how many are left to the session in headers of draft 7', async () => {
    const { headers } = await world.send();
    expect(headers['ratelimit-policy']).toBe('20;w=3600');
    expect(headers.ratelimit).toMatch(/^limit=20, remaining=1\d, reset=\d+$/);
  });

  it('of a session over its limit are a 429 with Retry-After, whatever address they come from; others go on', async () => {
    const person = await world.enter('admin@example.com');
    const sent: Awaited<ReturnType<TargetWorld['send']>>[] = [];
    for (let index = 0; index < 25; index += 1)
      sent.push(await world.send({ as: person, headers: { 'X-Forwarded-For': `203.0.113.${index}` } }));
    expect(sent.filter(({ status }) => status === 200)).toHaveLength(20);
    const refused = sent.at(-1);
    expect([refused?.status, refused?.problem, refused?.headers.ratelimit]).toEqual([
      429,
      'too-many-requests',
      expect.stringMatching(/^limit=20, remaining=0, reset=\d+$/),
    ]);
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(0);
    expect((await world.send({ headers: { 'X-Forwarded-For': '203.0.113.99' } })).status).toBe(200);
  });

  it('of an address over its limit are a 429, with a session or without; IPv6 by its /64', async () => {
    const from = (address: string) => world.send({ as: null, headers: { 'X-Forwarded-For': address } });
    for (let index = 0; index < 50; index += 1) expect((await from(`2001:db8:1:2:${index}::1`)).status).toBe(401);
    expect((await from('2001:db8:1:2:ffff::9')).status).toBe(429);
    expect((await from('2001:db8:1:3::1')).status).toBe(401);
    const headers = { 'X-Forwarded-For': '2001:db8:1:2::7' };
    expect((await world.send({ as: await world.enter('admin@example.com'), headers })).status).toBe(429);
  });

  it('are counted by the address that trusted proxies tell, the first untrusted one from the right', async () => {
    const chain = (address: string) => world.send({ as: null, headers: { 'X-Forwarded-For': address } });
    for (let index = 0; index < 50; index += 1) await chain(`10.9.9.${index}, 198.51.100.7`);
    expect((await chain('10.9.9.9, 198.51.100.7')).status).toBe(429);
    expect((await chain('198.51.100.7, 198.51.100.8')).status).toBe(401);
  });

  it('are a 503 while the session store is away, clear no cookie, and go on when it is back', async () => {
    const person = await world.enter('admin@example.com');
    const headers = { 'X-Forwarded-For': '203.0.113.77' };
    expect((await world.send({ as: person, headers })).status).toBe(200);
    world.redis?.pause();
    let sent = await world.send({ as: person, headers });
    for (let waited = 0; sent.status === 200 && waited < 5_000; waited += 500) {
      await delay(500);
      sent = await world.send({ as: person, headers });
    }
    expect([sent.status, sent.problem, sent.headers['set-cookie']]).toEqual([503, 'unavailable', undefined]);
    world.redis?.resume();
    for (let waited = 0; sent.status !== 200 && waited < 8_000; waited += 500) {
      await delay(500);
      sent = await world.send({ as: person, headers });
    }
    expect(sent.status).toBe(200);
  });
});
