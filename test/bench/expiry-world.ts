// The environment of the expiry bench: its own Postgres or a given one, the platform in this process, and the product's
// processes, started as in production. A sink accepts events and notifications immediately, so that only the
// dispatcher's speed is measured.
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import pino from 'pino';
import { findFreePort } from '../../dev/ports.ts';
import { placePostgres, startPostgres } from '../../dev/postgres/postgres.ts';
import { migrationsDirectory as formsMigrations } from '../../src/forms/start.ts';
import { configSchema } from '../../src/platform-server/config.ts';
import { applySeed } from '../../src/platform-server/seed.ts';
import { startPlatformServer } from '../../src/platform-server/start.ts';
import { parseConfig } from '../../src/service/operations/config.ts';
import { migrate } from '../../src/service/postgres/migrate.ts';
import { startTestAccess, testServiceSecret } from '../support/access.ts';
import { configure, permit } from '../support/forms.ts';
import { roleToken } from '../support/platform.ts';
import { type Contender, serviceContender } from './contender.ts';

export interface BenchRun {
  /** Duration of the reconciler's run, without the start of its process. */
  milliseconds: number;
  counts: Record<string, number>;
  /** Highest RSS of the reconciler in bytes; NaN if the system does not report it. */
  residentBytes: number;
}

export interface ExpiryBench {
  pool: pg.Pool;
  /** URN of the tenant that owns the drafts. */
  tenant: string;
  /** Access token of an intake application. */
  token: string;
  /** Access token of a form-admin of the tenant. */
  adminToken: string;
  /** Runs the reconciler once. `onStart` gets a function that sends a signal to the reconciler's process. */
  reconcile(onStart?: (signal: (name: NodeJS.Signals) => void) => void): Promise<BenchRun>;
  startForms(): Promise<Contender & { url: string }>;
  /** Returns the number of requests that the sink has accepted. */
  sunk(): Promise<number>;
  close(): Promise<void>;
}

const root = join(import.meta.dirname, '../..');
/** The Node flags of every process of the product (decision 0013). */
const flags = ['--max-semi-space-size=8', '--heap-growing-percent=30'];
const silent = pino({ level: 'silent' });
const tenantKey = '65f0c2a9e4b0a1d2c3f4a5b6';

/**
 * Settings that keep Postgres from waiting for the disk or for checkpoints. These waits are the same for all contenders
 * and long on a shared machine, so they would hide differences.
 */
const settings = {
  synchronous_commit: 'off',
  shared_buffers: '512MB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
};

export interface Databases {
  forms: string;
  platform: string;
  close(): Promise<void>;
}

/** Starts the environment of the expiry bench. Without `given`, creates databases that are removed at the end. */
export async function startExpiryBench(given?: Databases): Promise<ExpiryBench> {
  const databases = given ?? (await createOwnDatabases());
  const [access, platformPort, sink] = await Promise.all([startTestAccess(), findFreePort(), startSink()]);
  const platform = await startPlatform(databases.platform, access.url, platformPort);
  await configure(platform.of(access), 'platform', 'form-service', { [permit.id]: permit });
  await migrate({ url: databases.forms, directory: formsMigrations, log: silent });
  const pool = new pg.Pool({ connectionString: databases.forms, max: 3, options: '-c statement_timeout=0' });
  const env = {
    PATH: process.env.PATH ?? '',
    NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/formgate'),
    DATABASE_URL: databases.forms,
    DIRECTORY_URL: `${platform.url}/directory/v2`,
    DIR_PLATFORM_EVENT_SERVICE_V1: `${sink.url}/event/v1`,
    DIR_PLATFORM_NOTIFICATION_SERVICE_V1: `${sink.url}/subscription/v1`,
    ACCESS_SERVICE_URL: access.url,
    CLIENT_SECRET: testServiceSecret(access.urns.service('form-service')),
  };
  const children: ChildProcess[] = [];
  const exp = Math.floor(Date.now() / 1000) + 365 * 24 * 3600;
  const role = { 'form-service': ['intake-application'] };
  return {
    pool,
    tenant: access.urns.tenant(tenantKey),
    token: await roleToken(access, role, { realm: 'demo', claims: { sub: 'bench', exp } }),
    adminToken: await roleToken(
      access,
      { 'form-service': ['form-admin'] },
      { realm: 'demo', claims: { sub: 'admin', exp } },
    ),
    reconcile: (onStart) => reconcileOnce(env, onStart),
    async startForms() {
      const [port, metricsPort] = [await findFreePort(), await findFreePort()];
      const places = { HOST: '127.0.0.1', PORT: String(port), METRICS_PORT: String(metricsPort) };
      const child = spawn(process.execPath, [...flags, join(root, 'src/forms/main.ts')], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...env, ...places, LOG_LEVEL: 'warn', CODE_KEY: 'a key of benches with more than 32 characters' },
      });
      children.push(child);
      await untilReady(`http://127.0.0.1:${metricsPort}/readyz`, child);
      return {
        ...serviceContender('form service', `http://127.0.0.1:${metricsPort}`),
        url: `http://127.0.0.1:${port}`,
      };
    },
    sunk: sink.count,
    async close() {
      for (const child of children) await end(child);
      await pool.end();
      await platform.close();
      await Promise.all([access.close(), sink.close()]);
      await databases.close();
    },
  };
}

const createOwnDatabases = () =>
  process.env.BENCH_POSTGRES_URL ? createDatabases(process.env.BENCH_POSTGRES_URL) : startOwnPostgres();

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

async function startOwnPostgres(): Promise<Databases> {
  const folder = await mkdtemp(join(tmpdir(), 'formgate-bench-'));
  const directory = join(folder, 'postgres');
  const postgres = await startPostgres({ directory, password: 'bench', settings });
  const [forms, platform] = [await postgres.ensureDatabase('forms'), await postgres.ensureDatabase('platform')];
  return {
    forms,
    platform,
    async close() {
      await postgres.stop();
      await rm(await placePostgres(directory), { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Creates two databases on a given server. They are dropped at the end. */
async function createDatabases(serverUrl: string): Promise<Databases> {
  const administrate = async (...statements: string[]) => {
    const client = new pg.Client({ connectionString: serverUrl });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  };
  const names = ['forms', 'platform'].map((name) => `bench_${name}_${process.pid}`);
  await administrate(...names.map((name) => `CREATE DATABASE ${name}`));
  const [forms = '', platform = ''] = names.map((name) => {
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    return url.href;
  });
  const close = () => administrate(...names.map((name) => `DROP DATABASE ${name} WITH (FORCE)`));
  return { forms, platform, close };
}

async function startPlatform(databaseUrl: string, accessUrl: string, port: number) {
  const config = parseConfig(configSchema, {
    HOST: '127.0.0.1',
    PORT: String(port),
    METRICS_PORT: '0',
    DATABASE_URL: databaseUrl,
    ACCESS_SERVICE_URL: accessUrl,
    SMTP_URL: 'smtp://127.0.0.1:9',
    MAIL_FROM: 'Forms <forms@platform.example.org>',
    CODE_KEY: 'a key of benches with more than 32 characters',
  });
  const running = await startPlatformServer({ config, log: silent });
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  const apis = { 'configuration-service:v2': '/configuration/v2', 'tenant-service:v2': '/api/tenant/v2' };
  const tenant = { id: tenantKey, name: 'Demo', realm: 'demo', adminEmail: 'admin@example.com' };
  const directory = Object.entries(apis).map(([service, path]) => ({
    namespace: 'platform',
    service,
    url: `${running.url}${path}`,
  }));
  await applySeed(pool, { tenants: [tenant], directory });
  await pool.end();
  return {
    url: running.url,
    close: running.close,
    of: (access: Awaited<ReturnType<typeof startTestAccess>>) => ({
      access,
      url: running.url,
      tenant: { id: access.urns.tenant(tenantKey), name: 'Demo', realm: 'demo' },
    }),
  };
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  for (const deadline = Date.now() + 120_000; ; ) {
    const isReady = await fetch(url).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (isReady) return;
    if (child.exitCode !== null || Date.now() > deadline) throw new Error('the form service did not start');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function startSink() {
  const child = fork(join(import.meta.dirname, 'expiry-sink.ts'));
  const [port] = (await once(child, 'message')) as [number];
  return {
    url: `http://127.0.0.1:${port}`,
    async count() {
      const reply = once(child, 'message') as Promise<[number]>;
      child.send('count');
      return (await reply)[0];
    },
    close: () => end(child),
  };
}

/** Runs the reconciler in a separate process, as the CronJob does. */
async function reconcileOnce(env: Record<string, string>, onStart: Parameters<ExpiryBench['reconcile']>[0]) {
  const child = spawn(process.execPath, [...flags, join(root, 'reconciler/main.ts'), '--only', 'expire'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  });
  onStart?.((name) => void child.kill(name));
  let peak = Number.NaN;
  const sampling = setInterval(async () => {
    peak = (await peakOf(child.pid ?? 0).catch(() => undefined)) ?? peak;
  }, 100);
  let last = '';
  const exited = once(child, 'close');
  for await (const line of createInterface({ input: child.stdout })) {
    const { stage, done, rate, msg } = JSON.parse(line);
    if (stage) console.error(`    ${stage}: ${done}, ${rate} per second`);
    else if (msg) last = line;
  }
  const [code] = (await exited) as [number | null];
  clearInterval(sampling);
  if (code !== 0) throw new Error(`the run ended with ${code}: ${last}`);
  const { milliseconds, counts } = JSON.parse(last) as BenchRun;
  return { milliseconds, counts, residentBytes: peak };
}

async function peakOf(pid: number): Promise<number | undefined> {
  const kib = /^VmHWM:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
  return kib === undefined ? undefined : Number(kib) * 1_024;
}
