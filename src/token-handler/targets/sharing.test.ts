// Tests over HTTP how people and tenants share the connections to an upstream.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { type Person, type Started, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { answerWhenRead } from '../../../test/support/upstream.ts';
import type { RunningService } from '../../service/operations/serve.ts';
import { createConnections } from './connections.ts';

let world: TargetWorld;
let ada: Person;
/** A replica with at most twenty connections to an upstream. One person may use eight of these connections. */
let shared: RunningService;
let held: Started[];
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
  ada = await world.enter('admin@example.com');
  shared = await world.replica({ UPSTREAM_CONNECTIONS: '20', UPSTREAM_TENANT_SHARE: '100' });
});
afterAll(async () => {
  await shared.close();
  await world.close();
});
beforeEach(() => {
  held = [];
  world.upstream.forget();
  world.upstream.answer = answerWhenRead;
});
afterEach(async () => {
  for (const { request } of held) request.destroy();
  await expect.poll(() => connections('held')).toBe(0);
});

async function connections(state: string): Promise<number> {
  const text = await (await fetch(`${shared.metricsUrl}/metrics`)).text();
  return Number(new RegExp(`^formgate_upstream_connections\\{state="${state}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
}

/** Starts requests that hold their connections: the upstream does not respond, or the client does not read. */
function hold(count: number, as: Person, { path = '/hang', method = 'GET' } = {}): void {
  for (let index = 0; index < count; index += 1) {
    const started = world.start({ url: shared.url, as, path, method });
    started.answer.then((incoming) => incoming.on('error', () => undefined).pause()).catch(() => undefined);
    if (method === 'GET') started.request.end();
    else started.request.write('some');
    held.push(started);
  }
}
const large = Buffer.alloc(40_000_000);
const hangOnly = (path: string) => {
  world.upstream.answer = (request, response) => {
    if (request.url?.endsWith('/fast')) response.end('fast');
    else if (path === '/download') response.end(large);
  };
};

describe('the connections of an upstream', () => {
  it.each([
    ['requests without a response', '/hang', 'GET'],
    ['unread downloads', '/download', 'GET'],
    ['slow uploads', '/hang', 'POST'],
  ])(
    'stay available to others while one person holds many %s, in any number of sessions',
    async (_what, path, method) => {
      hangOnly(path);
      hold(15, world.person, { path, method });
      hold(15, await world.enter(), { path, method });
      await expect.poll(() => connections('waiting')).toBe(22);
      expect(await connections('held')).toBe(8);
      const stopwatch = startStopwatch();
      expect((await world.send({ url: shared.url, as: ada, path: '/fast' })).text).toBe('fast');
      expect(stopwatch.stop()).toBeLessThan(2_000);
    },
  );

  it('serve a person’s waiting request as soon as another request of that person ends', async () => {
    hangOnly('/hang');
    hold(8, world.person);
    await expect.poll(() => connections('held')).toBe(8);
    const waiting = world.send({ url: shared.url, path: '/fast' });
    await expect.poll(() => connections('waiting')).toBe(1);
    held[0]?.request.destroy();
    expect((await waiting).text).toBe('fast');
  });

  it('are no longer waited for by a request whose client has left', async () => {
    hangOnly('/hang');
    hold(9, world.person);
    await expect.poll(() => connections('waiting')).toBe(1);
    held[8]?.request.destroy();
    await expect.poll(() => connections('waiting')).toBe(0);
    expect(await connections('held')).toBe(8);
  });

  it('are refused to a person with too many waiting requests, with 503 busy and Retry-After', async () => {
    hangOnly('/hang');
    hold(8 + 32, world.person);
    await expect.poll(() => connections('waiting')).toBe(32);
    const { status, problem, headers } = await world.send({ url: shared.url });
    expect([status, problem, headers['retry-after']]).toEqual([503, 'busy', '1']);
    const text = await (await fetch(`${shared.metricsUrl}/metrics`)).text();
    expect(text).toContain('formgate_upstream_refusals_total{reason="queue-full"} 1');
  });

  it('are refused immediately with 503 busy and Retry-After while all are in use', async () => {
    const full = await world.replica({ UPSTREAM_CONNECTIONS: '2', UPSTREAM_TENANT_SHARE: '100' });
    onTestFinished(() => full.close());
    const free = Promise.withResolvers<void>();
    world.upstream.answer = (_request, response) => void free.promise.then(() => response.end());
    const first = [world.send({ url: full.url }), world.send({ url: full.url })];
    await world.upstream.waitFor(2);
    const stopwatch = startStopwatch();
    const { status, problem, headers } = await world.send({ url: full.url, as: ada });
    expect([status, problem, headers['retry-after']]).toEqual([503, 'busy', '1']);
    expect(stopwatch.stop()).toBeLessThan(2_000);
    free.resolve();
    expect((await Promise.all(first)).map((sent) => sent.status)).toEqual([200, 200]);
    expect((await world.send({ url: full.url })).status).toBe(200);
  });
});

describe('the share of a tenant', () => {
  it('is half of an upstream’s connections for all its people together; other tenants may use the rest', async () => {
    const pool = createConnections({ perUpstream: 20, personShare: 10, tenantShare: 50, onRefused: () => undefined });
    onTestFinished(() => pool.close());
    const signal = new AbortController();
    const take = (tenant: string, member: string) =>
      pool.share(world.upstream.url, { tenant, member }, { beginWait: () => signal.signal });
    const taken = await Promise.all(Array.from({ length: 10 }, (_, index) => take('one', `person ${index}`)));
    const waiting = take('one', 'another');
    await take('two', 'somebody');
    expect(pool.count()).toEqual({ held: 11, waiting: 1 });
    taken[0]?.release();
    (await waiting).release();
    await delay(0);
    expect(pool.count()).toEqual({ held: 10, waiting: 0 });
  });
});
