// Postgres drops all connections, crashes, refuses connections or becomes a standby, and Redis restarts. No process
// exits, and every process serves requests again afterwards.
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EmbeddedPostgres } from '../../dev/postgres/ownership.ts';
import { placePostgres, startPostgres } from '../../dev/postgres/postgres.ts';
import { testServiceSecret } from '../support/access.ts';
import { type FormProcess, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { type PlatformProcess, startPlatformProcess } from '../support/platform-process.ts';
import { reconcilerEnv, spawnReconciler } from '../support/reconciler.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { startTokenHandlerProcess, type TokenHandlerProcess } from '../support/token-handler-process.ts';

const longest = 300_000;
let folder: string;
let postgres: EmbeddedPostgres;
let world: FormWorld;
let redis: TestRedis;
let forms: FormProcess;
let platform: PlatformProcess;
let handler: TokenHandlerProcess;
let isLoaded = true;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-lost-'));
  // If root runs the test, Postgres runs as another account, which must be able to enter the folder.
  await chmod(folder, 0o755);
  const password = randomBytes(16).toString('hex');
  [postgres, world, redis] = await Promise.all([
    startPostgres({ directory: join(folder, 'postgres'), password, settings: { fsync: 'off' } }),
    startFormWorld(),
    startTestRedis(),
  ]);
  await startProcesses();
}, longest);

afterAll(async () => {
  isLoaded = false;
  await Promise.all([forms?.kill(), platform?.kill(), handler?.stop()]);
  await Promise.all([world?.close(), redis?.close(), postgres?.stop()]);
  await rm(await placePostgres(join(folder, 'postgres')), { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}, longest);

async function startProcesses(): Promise<void> {
  const { access, directoryUrl, env } = world.platform;
  const shared = { ACCESS_SERVICE_URL: access.url, URN_PREFIX: access.urns.prefix };
  platform = await startPlatformProcess({
    ...shared,
    DATABASE_URL: await postgres.ensureDatabase('platform'),
    SMTP_URL: env.SMTP_URL ?? '',
  });
  forms = await world.spawn({ DATABASE_URL: await postgres.ensureDatabase('forms') });
  handler = await startTokenHandlerProcess({
    env: {
      ...shared,
      HOST: '127.0.0.1',
      DATABASE_URL: await postgres.ensureDatabase('handler'),
      DIRECTORY_URL: directoryUrl,
      CLIENT_SECRET: testServiceSecret(access.urns.service('token-handler')),
      KEY_RING: `test:${randomBytes(32).toString('base64')}`,
      SESSION_STORE: 'redis',
      REDIS_URL: redis.url,
    },
  });
}

const list = () => forms.ask('GET', '', { as: 'admin' });
const create = () => forms.ask('POST', '', { as: 'admin', body: { definitionId: 'permit' } });
const healthOf = (url: string) => fetch(`${url}/health`, { signal: AbortSignal.timeout(5_000) });

/** Sends requests that use the database connections of the processes, until the test ends. Ignores the results. */
async function load(): Promise<void> {
  const ask = [list, create, () => healthOf(platform.url), () => healthOf(handler.url)].map(async (request) => {
    while (isLoaded) {
      await request().catch(() => undefined);
      await delay(10);
    }
  });
  await Promise.all(ask);
}

async function withAdministrator<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: postgres.url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

const databases = `('forms', 'platform', 'handler')`;
const drop = (client: pg.Client) =>
  client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ${databases}`);

async function expectAlive(after: string): Promise<void> {
  const ended = { forms: forms.hasEnded(), platform: platform.child.exitCode, handler: handler.child.exitCode };
  expect(ended, after).toEqual({ forms: false, platform: null, handler: null });
  await expect.poll(async () => (await list()).status, { message: after }).toBe(200);
  const db = async (url: string) => ((await (await healthOf(url)).json()) as { db: unknown }).db;
  await expect.poll(() => db(platform.url).catch(() => false), { message: after }).toBe(true);
  await expect.poll(async () => (await fetch(`${handler.metricsUrl}/readyz`)).status, { message: after }).toBe(200);
}

const faults: [string, () => Promise<unknown>][] = [
  [
    'all connections are dropped, again and again',
    () =>
      withAdministrator(async (client) => {
        for (let loss = 0; loss < 15; loss += 1) {
          await drop(client);
          await delay(20 + (loss % 5) * 40);
        }
      }),
  ],
  [
    'the primary becomes a standby for a while',
    async () => {
      const setReadOnly = (value: string) =>
        withAdministrator(async (client) => {
          await client.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
          await client.query('SELECT pg_reload_conf()');
        });
      await setReadOnly('on');
      await delay(2_000);
      await setReadOnly('off');
    },
  ],
  [
    'Postgres refuses connections for a while',
    () =>
      withAdministrator(async (client) => {
        const allow = (value: boolean) =>
          client.query(`UPDATE pg_database SET datallowconn = ${value} WHERE datname IN ${databases}`);
        await allow(false);
        await drop(client);
        await delay(2_000);
        await allow(true);
      }),
  ],
  [
    'a backend crashes, and Postgres recovers',
    () =>
      withAdministrator(async (client) => {
        const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
        process.kill(rows[0]?.pid ?? 0, 'SIGKILL');
        await delay(1_000);
      }),
  ],
  [
    'Redis restarts',
    async () => {
      await redis.close();
      await delay(1_000);
      redis = await startTestRedis({ port: redis.port });
    },
  ],
];

it('no process ends, and each serves again, whatever happens to Postgres and Redis', { timeout: longest }, async () => {
  const loading = load();
  for (const [what, happen] of faults) {
    await happen();
    await expectAlive(what);
  }
  isLoaded = false;
  await loading;
  expect(forms.logText() + platform.output()).not.toContain('"level":"fatal"');
});

it.each([[[]], [['--dry-run']]])(
  'a reconciler %j whose connections are dropped fails its run with exit 1, or finishes it',
  {
    timeout: longest,
  },
  async (args) => {
    const url = await postgres.ensureDatabase('forms');
    const run = spawnReconciler({ ...reconcilerEnv(world.platform, url), CORE_CLIENTS: 'off' }, args);
    let hasEnded = false;
    const ended = run.ended.finally(() => (hasEnded = true));
    await withAdministrator(async (client) => {
      for (let loss = 0; loss < 600 && !hasEnded; loss += 1) {
        await drop(client);
        await delay(5);
      }
    });
    const { code, stdout, stderr } = await ended;
    expect([0, 1]).toContain(code);
    expect(stdout + stderr).not.toContain('uncaught exception');
    if (code === 1) expect(stdout).toMatch(/failed|cannot/i);
  },
);
