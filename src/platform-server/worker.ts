// Runs the jobs with graphile-worker, and adds four features that the library lacks: it restarts worker pools that have
// ended, limits the pause between retries, frees the locks of processes that have died, and frees locks that a pool
// holds without running the job. By itself, the library frees a lock only after four hours, and gives up a job after a
// number of attempts.
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Runner,
  run,
  runMigrations,
  type TaskList,
  type WorkerEvents,
  Logger as WorkerLogger,
} from 'graphile-worker';
import type pg from 'pg';
import type { Logger } from '../service/operations/log.ts';
import { withTransaction } from '../service/postgres/postgres.ts';
import { longestStop, within } from '../service/time-limit.ts';
import { createJobConnections } from './job-connections.ts';
import { deliveryJobKey } from './notifications/deliveries-store.ts';

export interface WorkerOptions {
  /** A pool that only jobs use, with as many connections as `jobConnections` says. */
  pool: pg.Pool;
  tasks: TaskList;
  log: Logger;
  concurrency: number;
  /** Milliseconds without a heartbeat after which a process counts as dead. */
  staleAfter: number;
  /** Maintenance that the worker runs about once a minute. `signal` is aborted when the worker stops. */
  upkeep(signal: AbortSignal): Promise<void>;
}

export interface JobWorker {
  close(): Promise<void>;
}

/** Creates the job tables under an advisory lock, so that several processes can start concurrently. */
export async function migrateJobs(pool: pg.Pool, log: Logger): Promise<void> {
  await withTransaction(pool, async (transaction) => {
    await transaction.query('SELECT pg_advisory_xact_lock(4711027)');
    await runMigrations({ pgPool: pool, logger: quietLogger(log) });
  });
}

export async function startWorker(options: WorkerOptions): Promise<JobWorker> {
  const { pool, log } = options;
  const alive = new Set<string>();
  /** Ids of the jobs that this process runs. */
  const current = new Set<string>();
  const stopping = new AbortController();
  const connections = createJobConnections(pool);
  let runner: Runner | undefined;
  /** The runner that was stopped because it held the lock of a job that it did not run. */
  let stopped: Runner | undefined;

  async function start(): Promise<Runner> {
    return run({
      pgPool: connections.pool,
      taskList: options.tasks,
      concurrency: options.concurrency,
      pollInterval: 1_000,
      noHandleSignals: true,
      // Behind a transaction pooler, the next transaction may use another session, which does not have the prepared
      // statement. Notifications for LISTEN are also lost there, but polling still finds the jobs.
      noPreparedStatements: true,
      // Without this setting, the library would run a file named crontab in the working directory.
      parsedCronItems: [],
      logger: quietLogger(log),
      events: workerEvents(alive, current),
    });
  }

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        runner ??= await start();
        await runner.promise;
      } catch (error) {
        log.warn({ err: error }, 'job worker ended');
      }
      runner = undefined;
      await rest(1_000, stopping.signal);
    }
  }

  async function keepUp(): Promise<void> {
    for (let scan = 0; !stopping.signal.aborted; scan += 1) {
      try {
        await freeLocks(pool, [...alive], options.staleAfter);
        const holdings = { pools: [...alive], current: [...current], staleAfter: options.staleAfter };
        // A stopped runner keeps the lock until its running jobs have ended, so it must not be stopped again.
        if (runner !== stopped && (await hasUnknownJob(pool, holdings))) {
          log.warn('a job is locked, but no worker runs it; restarting the workers');
          stopped = runner;
          // `stop` rejects if the service is already closing. After the pool has ended, other workers free its locks.
          runner?.stop().catch(() => undefined);
        }
        if (scan % 4 === 0) await hastenRetries(pool);
      } catch (error) {
        log.warn({ err: error }, 'job upkeep failed');
      }
      await rest(3 * beatInterval(options), stopping.signal);
    }
  }

  runner = await start();
  const { signal } = stopping;
  const running = Promise.all([keepRunning(), keepUp(), keepAlive(options, alive, signal), maintain(options, signal)]);
  return {
    async close() {
      stopping.abort();
      const stopped = runner?.stop().catch((error: unknown) => log.warn({ err: error }, 'job worker failed to stop'));
      // The wait is limited, because the library retries for minutes while the database is down. Another process takes
      // over the remaining jobs.
      await within(Promise.all([stopped, running]), longestStop, undefined);
      connections.close();
      await forgetPools(pool, [...alive]).catch(() => undefined);
    },
  };
}

/** Milliseconds between two heartbeats. The jobs are scanned less often, because a scan reads the whole table. */
const beatInterval = ({ staleAfter }: WorkerOptions) => Math.min(5_000, staleAfter / 3);

/** Runs the maintenance again and again. The heartbeats do not wait for it. */
async function maintain(options: WorkerOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await options.upkeep(signal).catch((error) => options.log.warn({ err: error }, 'job upkeep failed'));
    await rest(12 * beatInterval(options), signal);
  }
}

/**
 * Records again and again that the pools are alive. The heartbeats wait for no scan of the jobs, because other
 * processes would take over the jobs. Uses the clock of Postgres instead of the application's clock, because all
 * processes share that clock.
 */
async function keepAlive(options: WorkerOptions, alive: Set<string>, signal: AbortSignal): Promise<void> {
  const beat =
    'INSERT INTO worker_pools (id, seen) SELECT id, now() FROM unnest($1::text[]) id ON CONFLICT (id) DO UPDATE SET seen = now()';
  while (!signal.aborted) {
    await options.pool
      .query(beat, [[...alive]])
      .catch((error) => options.log.warn({ err: error }, 'job worker heartbeat failed'));
    await rest(beatInterval(options), signal);
  }
}

/**
 * Frees the locks of pools of other processes that have recorded no heartbeat for `staleAfter` milliseconds. After an
 * outage of Postgres, the own heartbeat may be as old.
 */
async function freeLocks(pool: pg.Pool, own: string[], staleAfter: number): Promise<void> {
  const stale = `${staleAfter} milliseconds`;
  await pool.query(
    `SELECT graphile_worker.force_unlock_workers(array_agg(DISTINCT locked_by)) FROM graphile_worker.jobs
     WHERE locked_at < now() - $1::interval AND locked_by <> ALL($2::text[])
       AND locked_by NOT IN (SELECT id FROM worker_pools WHERE seen > now() - $1::interval)
     HAVING count(*) > 0`,
    [stale, own],
  );
  await pool.query('DELETE FROM worker_pools WHERE seen < now() - $1::interval * 10', [stale]);
}

interface Holdings {
  pools: string[];
  current: string[];
  staleAfter: number;
}

/**
 * True if a pool of this process holds the lock of a job but does not run the job. This happens if the connection
 * breaks after Postgres has locked the job and before the worker gets the response. The worker then asks for another
 * job.
 */
async function hasUnknownJob(pool: pg.Pool, { pools, current, staleAfter }: Holdings): Promise<boolean> {
  const { rowCount } = await pool.query(
    `SELECT 1 FROM graphile_worker.jobs WHERE locked_by = ANY($1) AND id <> ALL($2::bigint[])
       AND locked_at < now() - $3::interval LIMIT 1`,
    [pools, current, `${staleAfter} milliseconds`],
  );
  return rowCount === 1;
}

async function hastenRetries(pool: pg.Pool): Promise<void> {
  // A retry waits at most five minutes, or up to six hours if the mail server has refused the message, or has not
  // replied after it got the message.
  await pool.query(
    `SELECT graphile_worker.reschedule_jobs(array_agg(j.id), run_at => now() + interval '5 minutes', attempts => 7)
     FROM graphile_worker.jobs j WHERE j.run_at > now() + interval '5 minutes' AND j.locked_at IS NULL AND j.attempts > 0
       AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.refused
         AND j.key = ${deliveryJobKey})
     HAVING count(*) > 0`,
  );
}

function workerEvents(alive: Set<string>, current: Set<string>): WorkerEvents {
  const events = new EventEmitter() as WorkerEvents;
  events.on('pool:create', ({ workerPool }) => alive.add(workerPool.id));
  events.on('pool:release', ({ workerPool }) => alive.delete(workerPool.id));
  events.on('job:start', ({ job }) => current.add(job.id));
  events.on('job:complete', ({ job }) => current.delete(job.id));
  return events;
}

async function forgetPools(pool: pg.Pool, ids: string[]): Promise<void> {
  await pool.query('DELETE FROM worker_pools WHERE id = ANY($1)', [ids]);
}

async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
}

/** Creates a logger for the library. It logs messages without the job's payload, and logs errors as warnings. */
function quietLogger(log: Logger): WorkerLogger {
  return new WorkerLogger(() => (level, message) => {
    if (level === 'error') log.warn({ worker: message }, 'job failed');
    else if (level === 'warning') log.warn({ worker: message }, 'job worker');
    else log.debug({ worker: message }, 'job worker');
  });
}
