// Starts the Postgres server that a test run shares, and provides its URL to the tests. Durability is off, because the
// server's files are deleted after the run. TEST_POSTGRES_URL names another server for tests, with an administrator's
// credentials. Also fills the compile cache of the limited workers, which run tenants' code.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { placePostgres, startPostgres } from '../../dev/postgres/postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the database `postgres` of the shared server, with the administrator's password. */
    postgresUrl: string;
  }
}

const settings = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_connections: '300',
  autovacuum: 'off',
};

let stop: () => Promise<void> = async () => undefined;

export async function setup(project: TestProject): Promise<void> {
  // All processes of the run inherit this priority. Limited workers have it too. With the default priority, the
  // processes of other tests would leave the limited workers almost no time on a busy machine.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  await Promise.all([providePostgres(project), compileWorkers(project)]);
}

/**
 * Fills the compile cache, because limited workers may read it but not write it. Each worker script ends after loading,
 * because it runs without a parent process.
 */
async function compileWorkers({ config }: TestProject): Promise<void> {
  const scripts = ['src/forms/definitions/schema-worker.ts', 'src/platform-server/tenant-code-worker.ts'];
  const root = join(import.meta.dirname, '../..');
  const run = promisify(execFile);
  await Promise.all(scripts.map((script) => run(process.execPath, [join(root, script)], { env: config.env })));
}

async function providePostgres(project: TestProject): Promise<void> {
  const given = process.env.TEST_POSTGRES_URL;
  if (given) return project.provide('postgresUrl', given);
  const folder = await mkdtemp(join(tmpdir(), 'formgate-test-'));
  // If this process runs as root, Postgres runs as another account, which needs access to the folder.
  await chmod(folder, 0o755);
  const directory = join(folder, 'postgres');
  const postgres = await startPostgres({ directory, password: randomBytes(16).toString('hex'), settings });
  project.provide('postgresUrl', postgres.url);
  stop = async () => {
    await postgres.stop();
    await rm(await placePostgres(directory), { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  };
}

export async function teardown(): Promise<void> {
  await stop();
}
