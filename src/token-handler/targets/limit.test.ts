// Tests the rate limits of proxied requests over HTTP, with counters in a real Redis.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';

describe('proxied requests', () => {
  let world: TargetWorld;
  beforeAll(async () => {
    const env = { TARGET_SESSION_LIMIT: '20', TARGET_ADDRESS_LIMIT: '50', TARGET_WINDOW: 'PT1H' };
    world = await startTargetWorld({ store: 'redis', env });
    await roomInWindow(3_600_000, 60_000);
  });
  afterAll(() => world.close());

  it('get RateLimit headers of draft 7 that say how many requests the session has left', async () => {
    const { headers } = await world.send();
    expect(headers['ratelimit-policy']).toBe('20;w=3600');
    expect(headers.ratelimit).toMatch(/^limit=20, remaining=1\d, reset=\d+$/);
  });

  it('of a session over its limit get 429 with Retry-After from every address, and other sessions are served', async () => {
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

  it('from an address over its limit get 429, with or without a session; IPv6 addresses are counted by /64', async () => {
    const from = (address: string) => world.send({ as: null, headers: { 'X-Forwarded-For': address } });
    for (let index = 0; index < 50; index += 1) expect((await from(`2001:db8:1:2:${index}::1`)).status).toBe(401);
    expect((await from('2001:db8:1:2:ffff::9')).status).toBe(429);
    expect((await from('2001:db8:1:3::1')).status).toBe(401);
    const headers = { 'X-Forwarded-For': '2001:db8:1:2::7' };
    expect((await world.send({ as: await world.enter('admin@example.com'), headers })).status).toBe(429);
  });

  it('that a page of another site makes a browser send are 403, and are not counted', async () => {
    const from = { 'X-Forwarded-For': '203.0.113.55' };
    const embedded = { ...from, 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'image' };
    for (let index = 0; index < 60; index += 1)
      expect((await world.send({ as: null, headers: embedded })).status).toBe(403);
    expect((await world.send({ as: await world.enter('admin@example.com'), headers: from })).status).toBe(200);
  });

  it('are counted by client address: in X-Forwarded-For, the first one from the right that is not a trusted proxy', async () => {
    const chain = (address: string) => world.send({ as: null, headers: { 'X-Forwarded-For': address } });
    for (let index = 0; index < 50; index += 1) await chain(`10.9.9.${index}, 198.51.100.7`);
    expect((await chain('10.9.9.9, 198.51.100.7')).status).toBe(429);
    expect((await chain('198.51.100.7, 198.51.100.8')).status).toBe(401);
  });

  it('get 503 while the session store is down, keep their cookies, and are served when it is back', async () => {
    const person = await world.enter('admin@example.com');
    const headers = { 'X-Forwarded-For': '203.0.113.77' };
    expect((await world.send({ as: person, headers })).status).toBe(200);
    world.redis?.pause();
    let sent = await world.send({ as: person, headers });
    for (; sent.status === 200; await delay(500)) sent = await world.send({ as: person, headers });
    expect([sent.status, sent.problem, sent.headers['set-cookie']]).toEqual([503, 'unavailable', undefined]);
    world.redis?.resume();
    const status = async () => (await world.send({ as: person, headers })).status;
    await expect.poll(status, { interval: 500 }).toBe(200);
  });
});
