// Tests that each process loads the modules of OpenTelemetry's SDK only if a collector is configured.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const recorder = import.meta.resolve('./loaded-modules.ts');
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-modules-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const settings = {
  ...{ HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', SESSION_STORE: 'memory', CORE_CLIENTS: 'off' },
  ...{
    SMTP_URL: 'smtp://127.0.0.1:9',
    MAIL_FROM: 'a@example.org',
    CODE_KEY: 'x'.repeat(32),
    CLIENT_SECRET: 'x'.repeat(16),
  },
  ...{ ACCESS_SERVICE_URL: 'http://127.0.0.1:9', DIRECTORY_URL: 'http://127.0.0.1:9' },
  KEY_RING: `k:${Buffer.alloc(32, 1).toString('base64')}`,
  // Nothing listens at this address. The test needs no database, because a process starts its tracing before it
  // connects.
  DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none',
};

/** Returns the modules that a process loads before it fails to reach the database. */
async function modulesOf(main: string, env: Record<string, string> = {}): Promise<string[]> {
  const file = join(directory, main.replaceAll('/', '-'));
  const child = spawn(process.execPath, [`--import=${recorder}`, join(root, main)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, LOADED_MODULES: file, ...settings, ...env },
  });
  const ended = once(child, 'exit');
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
    // End the process here, because a service would wait for the database forever and load no more modules.
    if (said.includes('waiting for the database')) child.kill('SIGKILL');
  });
  await ended;
  const modules = (await readFile(file, 'utf8')).split('\n');
  await rm(file);
  return modules;
}

const ofOpenTelemetry = (modules: string[]) =>
  modules.flatMap((url) => /node_modules\/(@opentelemetry\/[\w-]+)/.exec(url)?.slice(1) ?? []);

describe.each(['src/forms/main.ts', 'src/token-handler/main.ts', 'src/platform-server/main.ts', 'reconciler/main.ts'])(
  '%s',
  (main) => {
    it('loads nothing of OpenTelemetry but the interfaces that prom-client needs', async () => {
      const modules = await modulesOf(main);
      expect(modules.some((url) => url.endsWith('src/service/tracing/start-tracing.ts'))).toBe(true);
      expect(modules.filter((url) => url.endsWith('/opentelemetry.ts'))).toEqual([]);
      expect([...new Set(ofOpenTelemetry(modules))]).toEqual(['@opentelemetry/api']);
    });

    it('loads OpenTelemetry if a collector is configured', async () => {
      const modules = await modulesOf(main, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
      expect(ofOpenTelemetry(modules)).toContain('@opentelemetry/sdk-trace');
    });
  },
);
