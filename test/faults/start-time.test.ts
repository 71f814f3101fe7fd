// Tests how much CPU time each service uses from the start of its process until it listens, with migrated databases.
// The limit is a multiple of the CPU time that a process needs to load four of the services' largest packages. On a
// busy machine, loading packages slows down as much as the start does. Starting an empty Node process slows down less.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestAccess, type TestAccess, testServiceSecret } from '../support/access.ts';
import { failedStart } from '../support/child-processes.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { productionFlags } from '../support/token-handler-process.ts';
import { until } from '../support/until.ts';

const source = join(import.meta.dirname, '../../src');
const services = ['forms', 'token-handler', 'platform-server'] as const;
type Service = (typeof services)[number];

let access: TestAccess;
let redis: TestRedis;
let databases: Record<Service, TestDatabase>;
beforeAll(async () => {
  access = await startTestAccess();
  redis = await startTestRedis();
  const [forms, tokenHandler, platformServer] = await Promise.all(
    services.map((name) => createTestDatabase(join(source, name, 'migrations'))),
  );
  databases = {
    forms: forms as TestDatabase,
    'token-handler': tokenHandler as TestDatabase,
    'platform-server': platformServer as TestDatabase,
  };
});
afterAll(async () => {
  await redis?.close();
  await access?.close();
  for (const database of Object.values(databases ?? {})) await database.drop();
});

function environmentOf(name: Service): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    NODE_ENV: 'production',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
    ...{ HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0' },
    ACCESS_SERVICE_URL: access.url,
    DIRECTORY_URL: 'http://127.0.0.1:9/directory/v2',
    CLIENT_SECRET: testServiceSecret(access.urns.service(name === 'forms' ? 'form-service' : name)),
    CODE_KEY: 'a key of codes that is long enough',
    KEY_RING: `one:${Buffer.alloc(32, 1).toString('base64')}`,
    REDIS_URL: redis.url,
    SMTP_URL: 'smtp://127.0.0.1:9',
    MAIL_FROM: 'no-reply@example.com',
    DATABASE_URL: databases[name].url,
  };
}

const metered = ['--import', import.meta.resolve('../support/cpu-to-listen.ts')];

/**
 * Starts a process, and ends it with SIGTERM when it listens. Returns the CPU time of the main thread and the elapsed
 * time, in milliseconds.
 */
async function start(args: string[], env: Record<string, string>): Promise<{ cpu: number; passed: number }> {
  const started = performance.now();
  const flags = [...productionFlags, ...metered];
  const child = spawn(process.execPath, [...flags, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const exit = once(child, 'exit');
  let said = '';
  for await (const chunk of child.stderr) {
    said += String(chunk);
    const [, nanoseconds] = /cpu (\d+)/.exec(said) ?? [];
    if (nanoseconds === undefined) continue;
    const passed = performance.now() - started;
    child.kill('SIGTERM');
    await exit;
    return { cpu: Number(nanoseconds) / 1e6, passed };
  }
  await exit;
  throw failedStart('process', child, said);
}

/** Packages that all services load before they listen. */
const largest = ['express', 'pg', 'pino', 'zod'];
const importThem = largest.flatMap((name) => ['--import', import.meta.resolve(name)]);

/** Maximum CPU time of a start, as a multiple of the CPU time of a process that only loads the packages above. */
const most = 3.5;

it.each(services)(`%s listens within ${most} times the time to load its largest packages`, async (name) => {
  const main = join(source, name, 'main.ts');
  const env = environmentOf(name);
  const load = () => start([...importThem, '--eval', '0'], env);
  // The first start writes the compile cache, which the image contains.
  await start([main], env);
  await load();
  const shares: number[] = [];
  const passed: number[] = [];
  do {
    const loading = await load();
    const listening = await start([main], env);
    shares.push(listening.cpu / loading.cpu);
    passed.push(listening.passed);
  } while (Math.min(...shares) > most && shares.length < 20);
  const figures = [Math.min(...shares).toFixed(2), Math.min(...passed).toFixed()];
  process.stdout.write(`${name}: ${figures[0]} times the time to load its packages, and ${figures[1]} ms passed\n`);
  expect(Math.min(...shares)).toBeLessThan(most);
});

/** Large packages that a process loads only after its start, or never. */
const late: Record<string, string[]> = {
  'src/forms': ['@redis/client', 'ajv', 'openid-client', 'postgrator'],
  'src/token-handler': ['ajv', 'graphile-worker', 'postgrator'],
  'src/platform-server': ['@redis/client', 'ajv', 'handlebars', 'nodemailer', 'postgrator'],
  reconciler: ['@kubernetes/client-node', '@redis/client', 'ajv', 'express', 'postgrator'],
};
const printModules = ['--import', import.meta.resolve('../support/print-modules.ts')];

it.each(Object.entries(late))('%s loads none of %j before it starts', async (folder, packages) => {
  const script = `await import(${JSON.stringify(join(source, '..', folder, 'start.ts'))})`;
  const args = [...printModules, '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 10_000_000 });
  expect(stdout).toContain('/node_modules/zod/');
  expect(packages.filter((name) => stdout.includes(`/node_modules/${name}/`))).toEqual([]);
});

const printNodeModules = ['--import', import.meta.resolve('../support/print-node-modules.ts')];

it.each(['forms', 'token-handler'] as const)(
  '%s becomes ready without Node’s own HTTP client, which takes 50 ms to load',
  async (name) => {
    const main = join(source, name, 'main.ts');
    const child = spawn(process.execPath, [...productionFlags, ...printNodeModules, main], {
      env: environmentOf(name),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const printed = text(child.stderr);
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg, metricsPort } = JSON.parse(line) as { msg: string; metricsPort?: number };
      if (msg !== 'listening') continue;
      const isReady = async () => (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).ok;
      await until('readiness', isReady).finally(() => child.kill('SIGTERM'));
    }
    expect((await printed).split('\n')).toContain('NativeModule http');
    expect(await printed).not.toContain('internal/deps/undici');
  },
);
