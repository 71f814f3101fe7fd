// Limits by client address: exact among replicas, honest in their headers, and in memory while Redis is away.
import { setTimeout as delay } from 'node:timers/promises';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../test/support/listening-app.ts';
import { startTestRedis, type TestRedis } from '../../test/support/redis.ts';
import { anonymous, route } from './http-app.ts';
import { createMetrics } from './metrics.ts';
import { createRateLimiter, networkOf, rateLimit } from './rate-limit.ts';
import { createRedis, type Redis } from './redis.ts';
import { parseTrustedProxies } from './trusted-proxies.ts';

let server: TestRedis;
const opened: Redis[] = [];
let apps: ListeningApp[] = [];
let serial = 0;
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
  const limit = rateLimit(createRateLimiter({ name, most, window }, redis));
  const item = route({
    method: 'get',
    path: '/limited',
    summary: 'limited',
    guards: [anonymous, limit],
    answers: { 200: { description: 'ok' } },
    handle: (_input, _request, response) => void response.json({}),
  });
  const app = await startApp([item], { trustedProxies: parseTrustedProxies(trusted) ?? 0 });
  apps.push(app);
  return (from = '192.0.2.1') => fetch(`${app.url}/limited`, { headers: { 'X-Forwarded-For': from } });
}

describe('a rate limit', () => {
  it('says in the headers of draft 7 what is left, and answers 429 with Retry-After over it', async () => {
    const call = await start({ most: 2 });
    const first = await call();
    expect(first.headers.get('ratelimit-policy')).toBe('2;w=60');
    expect(first.headers.get('ratelimit')).toMatch(/^limit=2, remaining=1, reset=(60|59)$/);
    expect((await call()).headers.get('ratelimit')).toContain('remaining=0');
    const refused = await call();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('ratelimit')).toContain('remaining=0');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(50);
    expect(await refused.json()).toMatchObject({ type: 'urn:formgate:problem:too-many-requests', status: 429 });
  });

  it('begins anew with the next window', async () => {
    const call = await start({ most: 1, window: 1_000, redis: await connect() });
    expect([(await call()).status, (await call()).status]).toEqual([200, 429]);
    await delay(1_100);
    expect((await call()).status).toBe(200);
  });

  it('is exact among replicas: of 100 parallel calls on two, as many pass as may', async () => {
    const name = 'shared';
    const calls = [
      await start({ most: 30, redis: await connect(), name }),
      await start({ most: 30, redis: await connect(), name }),
    ];
    const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => calls[index % 2]?.()));
    expect(answers.filter((answer) => answer?.status === 200)).toHaveLength(30);
  });

  it('counts each client address by itself', async () => {
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

  it('reads forwarded addresses from the right, and believes trusted proxies only', async () => {
    const trusting = await start({ most: 1 });
    expect((await trusting('203.0.113.1, 192.0.2.9')).status).toBe(200);
    expect((await trusting('203.0.113.2, 192.0.2.9')).status).toBe(429);
    const distrusting = await start({ most: 1, trusted: '10.0.0.0/8' });
    expect((await distrusting('203.0.113.1')).status).toBe(200);
    expect((await distrusting('203.0.113.2')).status).toBe(429);
  });

  it('counts in memory while Redis is away', async () => {
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

describe('the network of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:DB8:0:0:1::', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['', 'unknown'],
    ['nonsense', 'unknown'],
    // Some proxies write the port as well.
    ['192.0.2.1:1234', '192.0.2.1'],
    ['[2001:db8::1]:1234', '2001:db8:0:0::/64'],
    ['192.0.2.1:', 'unknown'],
    ['[nonsense]:1', 'unknown'],
  ])('of %s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
