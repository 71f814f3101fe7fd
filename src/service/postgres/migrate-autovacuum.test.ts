// Tests that an autovacuum, which may take hours, does not keep a migration from the table. The shared server of the
// tests runs no autovacuum, so this test starts a server of its own.
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startPostgres } from '../../../dev/postgres/postgres.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { migrate } from './migrate.ts';

let folder: string;
let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-autovacuum-'));
  await chmod(folder, 0o755);
  const settings = { fsync: 'off', autovacuum_naptime: '1s' };
  server = await startPostgres({ directory: join(folder, 'postgres'), password: 'of this test', settings });
}, 60_000);
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

/** An autovacuum of this table pauses for 0.1 s after each page. */
const slowSql = `
CREATE TABLE things (n int) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1);
INSERT INTO things SELECT generate_series(1, 20000);`;
const vacuumSql = `SELECT FROM pg_locks
  WHERE relation = 'things'::regclass AND mode = 'ShareUpdateExclusiveLock' AND granted`;

it('an autovacuum gives way to a migration of a role without privileges', async () => {
  const administrator = new pg.Client({ connectionString: server.url });
  await administrator.connect();
  await administrator.query("CREATE ROLE app LOGIN PASSWORD 'app'");
  await administrator.query('CREATE DATABASE app OWNER app');
  await administrator.end();
  const url = new URL(server.url);
  Object.assign(url, { username: 'app', password: 'app', pathname: '/app' });
  const directory = join(folder, 'migrations');
  await mkdir(directory);
  await writeFile(join(directory, '001.do.create.sql'), slowSql);
  const captured = captureLog();
  const run = () => migrate({ url: url.href, directory, log: captured.log });
  await run();

  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query('DELETE FROM things WHERE n % 2 = 0');
  await expect.poll(async () => (await client.query(vacuumSql)).rowCount, { timeout: 30_000 }).toBe(1);
  await client.end();
  await writeFile(join(directory, '002.do.column.sql'), 'ALTER TABLE things ADD COLUMN m int;');
  await run();
  const retries = captured.lines().filter(({ msg }) => msg === 'a table is in use, the migration will be retried');
  expect(retries).toHaveLength(3);
}, 60_000);
