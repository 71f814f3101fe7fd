// A thousand tenants that come while a token handler runs, in a process of its own: each is known soon, whatever the
// configuration of another is like, and the process does not grow with them.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { applySeed } from '../../src/platform-server/seed.ts';
import { call, roleToken } from '../support/platform.ts';
import { freePort } from '../support/redis.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../support/token-handler.ts';

const batch = 500;
const most = 1_000;
/** Bytes that the heap may grow by from the first batch to the last. */
const allowed = 32 * 1024 * 1024;

let handler: TestTokenHandler;
let child: ChildProcess;
let url: string;
let metricsUrl: string;
let core: string;
let database: pg.Pool;
beforeAll(async () => {
  handler = await startTestTokenHandler();
  const { platform } = handler;
  core = await roleToken(platform.access, {
    'token-handler': ['token-handler-admin'],
    'configuration-service': ['configured-service'],
  });
  await handler.configure({ shared: {} }, { core: true });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  const [port, metricsPort] = [await freePort(), await freePort()];
  url = `http://127.0.0.1:${port}/token-handler/v1`;
  metricsUrl = `http://127.0.0.1:${metricsPort}`;
  const env = {
    ...handler.env,
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    LOG_LEVEL: 'warn',
    PLATFORM_CACHE_TTL: 'PT60S',
  };

  const args = ['--heap-growing-percent=30', join(import.meta.dirname, '../../src/token-handler/main.ts')];
  child = spawn(process.execPath, args, { env: { ...process.env, ...env, SIGN_IN_LIMIT: '100000' }, stdio: 'ignore' });
  const isReady = () =>
    fetch(`${metricsUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  for (let waited = 0; !(await isReady()); waited += 100) {
    if (waited > 30_000) throw new Error('the process is not ready');
    await delay(100);
  }
});
afterAll(async () => {
  child.kill('SIGKILL');
  await database.end();
  await handler.close();
});

const idOf = (nth: number) => nth.toString(16).padStart(24, '0');
const urnOf = (nth: number) => handler.platform.access.urns.tenant(idOf(nth));
const nameOf = (nth: number) => `Town ${nth}`;

/** Tenants, each with a client of its own; every hundredth one's is invalid. */
async function add(from: number, to: number): Promise<void> {
  const tenants = Array.from({ length: to - from }, (_, index) => from + index);
  const seed = tenants.map((nth) => ({ id: idOf(nth), name: nameOf(nth), realm: `town-${nth}` }));
  await applySeed(database, { tenants: seed, directory: [] });
  const configure = async (nth: number) => {
    const client = nth % 100 === 0 ? { targets: [{ id: 'x', upstream: 'no urn' }] } : { description: nameOf(nth) };
    const place = `${handler.platform.url}/configuration/v2/configuration/platform/token-handler`;
    const { status } = await call(`${place}?tenantId=${encodeURIComponent(urnOf(nth))}`, {
      method: 'PATCH',
      token: core,
      body: { operation: 'REPLACE', configuration: { clients: { own: client, other: {} } } },
    });
    expect(status).toBe(200);
  };
  await inTurns(tenants, configure);
}

async function inTurns(all: number[], work: (nth: number) => Promise<void>): Promise<void> {
  const left = [...all];
  const worker = async () => {
    for (let nth = left.shift(); nth !== undefined; nth = left.shift()) await work(nth);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

async function begin(nth: number, tenant: string): Promise<number> {
  const client = nth % 100 === 0 ? 'other' : 'own';
  const callbackUrl = `https://town.example.org/token-handler/clients/${client}/callback`;
  const query = new URLSearchParams({ tenant, callbackUrl });
  return (await fetch(`${url}/clients/${client}/auth?${query}`)).status;
}

async function check(nth: number): Promise<void> {
  // Known, and not registered: an unknown tenant or client would be 404.
  expect([nth, await begin(nth, `town-${nth}`)]).toEqual([nth, 409]);
  const { status, body } = await call(`${url}/clients?tenantId=${encodeURIComponent(urnOf(nth))}`, { token: core });
  const ids = (body as { id: string }[]).map(({ id }) => id).sort();
  expect([nth, status, ids]).toEqual([nth, 200, nth % 100 === 0 ? ['other', 'shared'] : ['other', 'own', 'shared']]);
}

/** Bytes of the heap once what is not held has gone: the least of some looks. */
async function heap(): Promise<number> {
  const looks: number[] = [];
  for (let look = 0; look < 20; look += 1) {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
    looks.push(Number(/^nodejs_heap_size_used_bytes (\S+)/m.exec(text)?.[1]));
    await delay(50);
  }
  return Math.min(...looks);
}

it('1,000 tenants that are added while it runs are known soon, an invalid client hurts no other, and memory stays flat', {
  timeout: 180_000,
}, async () => {
  const heaps: number[] = [];
  for (let from = 1; from <= most; from += batch) {
    const to = Math.min(from + batch, most + 1);
    await add(from, to);
    await expect.poll(() => begin(to - 1, nameOf(to - 1).toUpperCase()), { timeout: 15_000 }).not.toBe(404);
    await inTurns(
      Array.from({ length: to - from }, (_, index) => from + index),
      check,
    );
    heaps.push(await heap());
  }
  expect((heaps.at(-1) ?? 0) - (heaps[0] ?? 0)).toBeLessThan(allowed);
});
