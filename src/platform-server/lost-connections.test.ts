// Tests that the platform server keeps running and completes its jobs while Postgres drops its connections.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type PlatformProcess, startPlatformProcess } from '../../test/support/platform-process.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { migrationsDirectory } from './start.ts';

let database: TestDatabase;
let client: pg.Client;
let server: PlatformProcess;

beforeEach(async () => {
  database = await createTestDatabase(migrationsDirectory);
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  server = await startPlatformProcess({
    DATABASE_URL: database.url,
    ACCESS_SERVICE_URL: 'http://127.0.0.1:1/auth',
    SMTP_URL: 'smtp://127.0.0.1:1',
  });
});

afterEach(async () => {
  await server.kill();
  await client.end();
  await database.drop();
});

/** Adds jobs that complete immediately, because the event that they name does not exist. */
const addJobs = (count: number) =>
  client.query(
    `SELECT graphile_worker.add_job('route-event', '{"event":"999999999"}'::json) FROM generate_series(1, $1::int)`,
    [count],
  );
const waitingJobs = async () =>
  (await client.query<{ n: number }>('SELECT count(*)::int AS n FROM graphile_worker.jobs')).rows[0]?.n;
const dropConnections = () =>
  client.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );

it('survives the loss of all its database connections, however often, while it runs jobs, and finishes them', async () => {
  for (let loss = 0; loss < 20; loss += 1) {
    await addJobs(20);
    await delay(10 + (loss % 7) * 20);
    await dropConnections();
  }
  expect(server.child.exitCode).toBeNull();
  await addJobs(10);
  await expect.poll(waitingJobs).toBe(0);
  expect(server.child.exitCode).toBeNull();
  expect(server.output()).not.toContain('"level":"fatal"');
});

it('runs its job worker without a failure while its database works', async () => {
  await addJobs(10);
  await expect.poll(waitingJobs).toBe(0);
  expect(server.output()).not.toContain('"msg":"job failed"');
});
