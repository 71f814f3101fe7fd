import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import type { Logger } from '../service/operations/log.ts';
import { migrationsDirectory } from './start.ts';
import { type JobWorker, migrateJobs, startWorker } from './worker.ts';

const log = pino({ level: 'silent' });
/** Long enough that a worker on a busy machine does not miss its own heartbeats. */
const staleAfter = 2_000;
let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  await Promise.all([migrateJobs(pool, log), migrateJobs(pool, log)]);
});

afterAll(() => database.drop());

const start = (tasks: Record<string, () => Promise<void>> = {}, to: Logger = log): Promise<JobWorker> =>
  startWorker({ pool, tasks, log: to, concurrency: 2, staleAfter, upkeep: () => Promise.resolve() });

/** Adds a job that has failed `attempts` times and whose next attempt is in six hours. */
async function addFailedJob(key: string, attempts: number): Promise<void> {
  await pool.query("SELECT graphile_worker.add_job('never', run_at => now() + interval '6 hours', job_key => $1)", [
    key,
  ]);
  await pool.query('UPDATE graphile_worker._private_jobs SET attempts = $2 WHERE key = $1', [key, attempts]);
}

async function jobs(): Promise<Record<string, { minutes: number; attempts: number }>> {
  const { rows } = await pool.query<{ key: string; minutes: number; attempts: number }>(
    'SELECT key, (extract(epoch FROM run_at - now()) / 60)::float AS minutes, attempts FROM graphile_worker.jobs',
  );
  return Object.fromEntries(rows.map(({ key, ...job }) => [key, job]));
}

describe('the job worker', () => {
  it('limits the wait for a retry to five minutes, unless the mail server refused the message, and drops no job', async () => {
    await pool.query(`
      INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted, routed)
        VALUES (gen_random_uuid(), 't', 'n', 'e', now(), '{}', '{}', now(), now());
      INSERT INTO subscribers (id, tenant, address_as, created) VALUES ('s1', 't', '', now()), ('s2', 't', '', now());
      INSERT INTO deliveries (event, type_id, subscriber_id, created, refused)
        VALUES (1, 't', 's1', now(), true), (1, 't', 's2', now(), false)`);
    for (const key of ['deliver:1:t:s1', 'deliver:1:t:s2', 'route']) await addFailedJob(key, 24);
    await pool.query(
      "SELECT graphile_worker.add_job('never', run_at => now() + interval '6 hours', job_key => 'planned')",
    );
    const worker = await start();
    onTestFinished(() => worker.close());
    await expect.poll(async () => (await jobs()).route?.minutes).toBeLessThanOrEqual(5);
    const found = await jobs();
    expect(found['deliver:1:t:s2']?.minutes).toBeLessThanOrEqual(5);
    expect(found['deliver:1:t:s2']?.attempts).toBeLessThan(25);
    expect(found['deliver:1:t:s1']?.minutes).toBeGreaterThan(300);
    expect(found.planned?.minutes).toBeGreaterThan(300);
  });

  it('frees jobs that a dead process had locked, and not those that a living process runs', async () => {
    let runs = 0;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const worker = await start({
      long: async () => {
        runs += 1;
        await released;
      },
      orphan: () => Promise.resolve(),
    });
    await pool.query("SELECT graphile_worker.add_job('long', job_key => 'long')");
    await expect.poll(() => runs).toBe(1);
    await pool.query(
      "SELECT graphile_worker.add_job('orphan', job_key => 'orphan', run_at => now() + interval '1 second')",
    );
    await pool.query(
      "UPDATE graphile_worker._private_jobs SET locked_by = 'pool-dead', locked_at = now(), run_at = now() WHERE key = 'orphan'",
    );
    await expect.poll(async () => (await jobs()).orphan).toBeUndefined();
    expect(runs).toBe(1);
    release();
    await worker.close();
    expect(runs).toBe(1);
  });

  it('keeps its jobs while its cleanup takes long', async () => {
    const [began, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const upkeep = () => {
      began.resolve();
      return ended.promise;
    };
    const worker = await startWorker({ pool, tasks: {}, log, concurrency: 1, staleAfter: 300, upkeep });
    onTestFinished(() => worker.close());
    onTestFinished(() => ended.resolve());
    await began.promise;
    // Another process frees the locks of a process whose heartbeats are missing.
    const seen = async () =>
      (await pool.query<{ seen: Date }>('SELECT max(seen) AS seen FROM worker_pools')).rows[0]?.seen.getTime();
    const before = (await seen()) ?? 0;
    await expect.poll(seen).toBeGreaterThan(before + 1_000);
  });

  it('keeps its jobs while it scans very many jobs', async () => {
    const worker = await startWorker({ pool, tasks: {}, log, concurrency: 1, staleAfter: 300, upkeep: async () => {} });
    onTestFinished(() => worker.close());
    const holder = await pool.connect();
    onTestFinished(async () => {
      await holder.query('ROLLBACK');
      holder.release();
    });
    await holder.query('BEGIN; LOCK TABLE graphile_worker._private_jobs IN ACCESS EXCLUSIVE MODE');
    const scans = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%force_unlock_workers%'";
    await expect.poll(async () => (await pool.query(scans)).rowCount).toBe(1);
    const seen = async () =>
      (await pool.query<{ seen: Date }>('SELECT max(seen) AS seen FROM worker_pools')).rows[0]?.seen.getTime() ?? 0;
    const before = await seen();
    await expect.poll(seen).toBeGreaterThan(before + 1_000);
  });

  it('runs a job that Postgres has locked for it although the response was lost, and warns once', async () => {
    let runs = 0;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let isDone = false;
    const captured = captureLog();
    const tasks = {
      slow: async () => {
        runs += 1;
        await released;
      },
      unheard: async () => {
        isDone = true;
      },
    };
    const worker = await start(tasks, captured.log);
    onTestFinished(() => worker.close());
    onTestFinished(() => release());
    await pool.query("SELECT graphile_worker.add_job('slow', job_key => 'slow')");
    await expect.poll(() => runs).toBe(1);
    const holder = "(SELECT locked_by FROM graphile_worker._private_jobs WHERE key = 'slow')";
    await pool.query(
      "SELECT graphile_worker.add_job('unheard', job_key => 'unheard', run_at => now() + interval '1 hour')",
    );
    await pool.query(
      `UPDATE graphile_worker._private_jobs SET locked_by = ${holder}, locked_at = now(), run_at = now() WHERE key = 'unheard'`,
    );
    const warnings = () => captured.lines().filter(({ msg }) => String(msg).startsWith('a job is locked')).length;
    await expect.poll(warnings).toBe(1);
    // The pool ends only after its running job has ended. Until then, there are several heartbeats and one warning.
    await delay(staleAfter);
    release();
    await expect.poll(() => isDone).toBe(true);
    expect(runs).toBe(1);
    expect(warnings()).toBe(1);
  });

  it('runs its upkeep immediately, and continues when that fails', async () => {
    let failed = false;
    let done = false;
    const worker = await startWorker({
      pool,
      tasks: {
        after: () => {
          done = true;
        },
      },
      log,
      concurrency: 1,
      staleAfter: 300,
      upkeep: () => {
        failed = true;
        return Promise.reject(new Error('no upkeep'));
      },
    });
    onTestFinished(() => worker.close());
    await expect.poll(() => failed).toBe(true);
    await pool.query("SELECT graphile_worker.add_job('after')");
    await expect.poll(() => done).toBe(true);
  });
});
