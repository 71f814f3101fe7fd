// `npm run test:registers`: runs the register suites against a configuration service that they know only by its URL.
// The variables REGISTER_SUITE_… name this service (test/support/registers.ts). By default, it is this repository's
// platform server in a separate process, with the behaviour of the reference implementation. Arguments are passed to
// vitest.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { placePostgres, startPostgres } from '../../dev/postgres/postgres.ts';
import { startTestAccess, testServiceSecret } from '../support/access.ts';
import { referenceBehaviour } from '../support/platform-behaviour.ts';
import { startPlatformProcess } from '../support/platform-process.ts';

const project = join(import.meta.dirname, '../..');
const tenants = [
  { id: '65f0c2a9e4b0a1d2c3f4a5b6', name: 'Demo', realm: 'demo' },
  { id: '65f0c2a9e4b0a1d2c3f4a5b7', name: 'Other Town', realm: 'other' },
] as const;

interface Service {
  env: Record<string, string>;
  stop(): Promise<void>;
}

async function main(): Promise<number> {
  // Ignore the signals: Ctrl-C also ends the tests, and this process must then stop the service.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
  const isGiven = process.env.REGISTER_SUITE_CONFIGURATION_URL !== undefined;
  const service: Service = isGiven ? { env: {}, stop: async () => undefined } : await startStandIn();
  try {
    return await runTests(service.env);
  } finally {
    await service.stop();
  }
}

async function startStandIn(): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'formgate-registers-'));
  await chmod(folder, 0o755);
  const directory = join(folder, 'postgres');
  const postgres = await startPostgres({ directory, password: randomBytes(16).toString('hex') });
  const access = await startTestAccess();
  await access.addRealm('other');
  const seed = join(folder, 'seed.json');
  await writeFile(seed, JSON.stringify({ tenants }));
  const platform = await startPlatformProcess({
    ...referenceBehaviour,
    DATABASE_URL: postgres.url,
    ACCESS_SERVICE_URL: access.url,
    // Nothing listens at this address, because registers send no mail.
    SMTP_URL: 'smtp://127.0.0.1:9',
    SEED_FILE: seed,
  });
  const account = access.urns.service('form-service');
  return {
    env: {
      REGISTER_SUITE_CONFIGURATION_URL: `${platform.url}/configuration/v2`,
      REGISTER_SUITE_ACCESS_URL: access.url,
      REGISTER_SUITE_CLIENT_ID: account,
      REGISTER_SUITE_CLIENT_SECRET: testServiceSecret(account),
      REGISTER_SUITE_TENANT: access.urns.tenant(tenants[0].id),
      REGISTER_SUITE_OTHER_TENANT: access.urns.tenant(tenants[1].id),
    },
    async stop() {
      await platform.kill();
      await Promise.all([access.close(), postgres.stop()]);
      await rm(await placePostgres(directory), { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Runs the files one after another, because they share the registers of one tenant. Returns the exit code. */
function runTests(env: Record<string, string>): Promise<number> {
  const vitest = join(project, 'node_modules/vitest/vitest.mjs');
  const suites = process.argv.length > 2 ? process.argv.slice(2) : ['src/forms/registers'];
  const child = spawn(process.execPath, [vitest, 'run', ...suites, '--no-file-parallelism'], {
    cwd: project,
    // With this setting, the suites expect the time limits of the reference implementation.
    env: { ...process.env, ...env, PLATFORM_BEHAVIOUR: 'reference' },
    stdio: 'inherit',
  });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('exit', (code) => done(code ?? 1));
  });
}

process.exit(await main());
