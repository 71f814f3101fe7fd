// Tests rate limits by client address: that they are exact across replicas, that their headers are correct, and that
// each replica counts in memory while Redis is down.
import { setTimeout as delay } from 'node:timers/promises';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { startTestRedis, type TestRedis } from '../../../test/support/redis.ts';
import { parseTrustedProxies } from '../http/client-address.ts';
import { anonymous, route } from '../http/http-app.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createRedis, type Redis } from '../redis/redis.ts';
import { addressLimit, createRateLimits } from './rate-limit.ts';

let server: TestRedis;
const opened: Redis[] = [];
let apps: ListeningApp[] = [];
let serial = 0;
/** The time of the limiters. At first, it is 15 s after the beginning of a minute. */
let now = new Date('2026-08-20T17:00:15.000Z');
const metrics = createMetrics();
beforeAll(async () => {
  server = await startTestRedis();
});
afterEach(async () => {
  await Promise.all(apps.map((app) => app.close()));
  apps = [];
});
afterAll(async () => {
  for (const redis of opened) redis.close();
  await server.close();
});

const connect = async () => {
  const settings = { topology: { kind: 'server', url: server.url } } as const;
  const redis = createRedis({ settings, log: pino({ level: 'silent' }), metrics: createMetrics() });
  opened.push(redis);
  while (!(await redis.isReachable())) await delay(10);
  return redis;
};

async function start(options: { most: number; window?: number; redis?: Redis; trusted?: string; name?: string }) {
  serial += 1;
  const { most, window = 60_000, redis, trusted = 'loopback', name = `test ${serial}` } = options;
  const limits = createRateLimits({ redis, clock: () => now, log: pino({ level: 'silent' }), metrics });
  const limit = addressLimit(limits.exact({ name, most, window }));
  const item = route({
    method: 'get',
    path: '/limited',
    summary: 'limited',
    guards: [anonymous, limit],
    responses: { 200: { description: 'ok' } },
    handle: (_input, _request, response) => void response.json({}),
  });
  const app = await startApp([item], { trustedProxies: parseTrustedProxies(trusted) ?? 0 });
  apps.push(app);
  return (from = '192.0.2.1') => fetch(`${app.url}/limited`, { headers: { 'X-Forwarded-For': from } });
}

describe('a rate limit', () => {
  it('sends the headers of draft 7, and 429 with Retry-After over the limit', async () => {
    const call = await start({ most: 2 });
    const first = await call();
    expect(first.headers.get('ratelimit-policy')).toBe('2;w=60');
    expect(first.headers.get('ratelimit')).toBe('limit=2, remaining=1, reset=45');
    expect((await call()).headers.get('ratelimit')).toContain('remaining=0');
    const refused = await call();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('ratelimit')).toContain('remaining=0');
    expect(refused.headers.get('retry-after')).toBe('45');
    expect(await refused.json()).toMatchObject({ type: 'urn:formgate:problem:too-many-requests', status: 429 });
  });

  it('starts again when its window ends, in Redis and in memory', async () => {
    for (const redis of [undefined, await connect()]) {
      const call = await start({ most: 1, ...(redis && { redis }) });
      expect([(await call()).status, (await call()).status]).toEqual([200, 429]);
      now = new Date(now.getTime() + 45_000);
      expect([(await call()).status, (await call()).headers.get('retry-after')]).toEqual([200, '60']);
      now = new Date(now.getTime() + 15_000);
    }
  });

  it('counts refused requests by limit and not by address', async () => {
    const call = await start({ most: 1, name: 'refusals' });
    for (let calls = 0; calls < 3; calls += 1) await call();
    const { values } = await metrics.rateLimited.get();
    expect(values.filter(({ labels }) => labels.limit === 'refusals')).toMatchObject([
      { value: 2, labels: { limit: 'refusals' } },
    ]);
  });

  it('counts an address with different ports as one client', async () => {
    const call = await start({ most: 1 });
    expect((await call('192.0.2.1:1234')).status).toBe(200);
    expect((await call('192.0.2.1:5678')).status).toBe(429);
    expect((await call('[2001:db8::1]:1')).status).toBe(200);
    expect((await call('2001:db8::2')).status).toBe(429);
  });

  it('trusts a proxy that writes its port', async () => {
    const call = await start({ most: 1, trusted: 'loopback, 10.0.0.0/8' });
    expect((await call('203.0.113.1, 10.1.2.3:4000')).status).toBe(200);
    expect((await call('203.0.113.2, 10.1.2.3:4001')).status).toBe(200);
    expect((await call('203.0.113.2, [::ffff:10.1.2.3]:4002')).status).toBe(429);
  });

  it('is exact across replicas: of 100 concurrent calls on two, no more than the limit pass', async () => {
    const name = 'shared';
    const calls = [
      await start({ most: 30, redis: await connect(), name }),
      await start({ most: 30, redis: await connect(), name }),
    ];
    const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => calls[index % 2]?.()));
    expect(answers.filter((answer) => answer?.status === 200)).toHaveLength(30);
  });

  it('counts each client address separately', async () => {
    const call = await start({ most: 1 });
    expect([(await call('192.0.2.1')).status, (await call('192.0.2.2')).status]).toEqual([200, 200]);
    expect((await call('192.0.2.1')).status).toBe(429);
  });

  it('counts IPv6 by /64', async () => {
    const call = await start({ most: 1 });
    expect((await call('2001:db8:0:1::1')).status).toBe(200);
    expect((await call('2001:db8:0:1:ffff::2')).status).toBe(429);
    expect((await call('2001:db8:0:2::1')).status).toBe(200);
  });

  it('reads forwarded addresses from the right, and only from trusted proxies', async () => {
    const trusting = await start({ most: 1 });
    expect((await trusting('203.0.113.1, 192.0.2.9')).status).toBe(200);
    expect((await trusting('203.0.113.2, 192.0.2.9')).status).toBe(429);
    const distrusting = await start({ most: 1, trusted: '10.0.0.0/8' });
    expect((await distrusting('203.0.113.1')).status).toBe(200);
    expect((await distrusting('203.0.113.2')).status).toBe(429);
  });

  it('counts in memory while Redis is down', async () => {
    const redis = await connect();
    const call = await start({ most: 2, redis });
    server.pause();
    const statuses: number[] = [];
    for (let done = 0; done < 3; done += 1) statuses.push((await call()).status);
    server.resume();
    expect(statuses).toEqual([200, 200, 429]);
    while (!(await redis.isReachable())) await delay(50);
  });
});
