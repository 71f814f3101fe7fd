// Runs the jobs, and keeps them running: restarts a pool of workers that ended, frees what a dead process had locked,
// and keeps retries coming, for ever. The library alone frees a lock after four hours and gives a job up in the end.
import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
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
import { createJobConnections } from './job-connections.ts';

export interface WorkerOptions {
  /** Connections of its own, at least `concurrency` + 2. */
  pool: pg.Pool;
  tasks: TaskList;
  log: Logger;
  concurrency: number;
  /** Milliseconds of silence after which a process counts as dead. */
  staleAfter: number;
  /** Runs about once a minute. */
  upkeep(): Promise<void>;
}

export interface JobWorker {
  close(): Promise<void>;
}

/** Milliseconds; the process as a whole has 5 s to release what it holds. */
const longestStop = 3_000;

/** Makes the job tables. Several processes may start at once. */
export async function migrateJobs(pool: pg.Pool, log: Logger): Promise<void> {
  await withTransaction(pool, async (transaction) => {
    await transaction.query('SELECT pg_advisory_xact_lock(4711027)');
    await runMigrations({ pgPool: pool, logger: quietLogger(log) });
  });
}

export async function startWorker(options: WorkerOptions): Promise<JobWorker> {
  const { pool, log } = options;
  const alive = new Set<string>();
  const stopping = new AbortController();
  const connections = createJobConnections(pool);
  let runner: Runner | undefined;

  async function start(): Promise<Runner> {
    return run({
      pgPool: connections.pool,
      taskList: options.tasks,
      concurrency: options.concurrency,
      pollInterval: 1_000,
      noHandleSignals: true,
      // A named statement is in one session; behind a pool of transactions the next one may be another. The wake-up by
      // LISTEN is lost there too, and the poll finds the job.
      noPreparedStatements: true,
      // Without this, a file named crontab in the working directory would be obeyed.
      parsedCronItems: [],
      logger: quietLogger(log),
      events: poolEvents(alive),
    });
  }

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        runner ??= await start();
        await runner.promise;
      } catch (error) {
        log.warn({ err: error }, 'the job worker ended');
      }
      runner = undefined;
      await rest(1_000, stopping.signal);
    }
  }

  async function keepUp(): Promise<void> {
    for (let beat = 0; !stopping.signal.aborted; beat += 1) {
      try {
        await beatHeart(pool, [...alive], options.staleAfter);
        if (beat % 12 === 0) await hastenRetries(pool);
        if (beat % 12 === 0) await options.upkeep();
      } catch (error) {
        log.warn({ err: error }, 'the upkeep of jobs failed');
      }
      await rest(Math.min(5_000, options.staleAfter / 3), stopping.signal);
    }
  }

  runner = await start();
  const running = Promise.all([keepRunning(), keepUp()]);
  return {
    async close() {
      stopping.abort();
      const stopped = runner?.stop().catch((error: unknown) => log.warn({ err: error }, 'job worker failed to stop'));
      // While the database is away the library retries for minutes; another process takes over what is left.
      await Promise.race([Promise.all([stopped, running]), delay(longestStop, undefined, { ref: false })]);
      connections.close();
      await forgetPools(pool, [...alive]).catch(() => undefined);
    },
  };
}

/** These are about processes, not about the product's time: Postgres' own clock is the one that all of them share. */
async function beatHeart(pool: pg.Pool, alive: string[], staleAfter: number): Promise<void> {
  const stale = `${staleAfter} milliseconds`;
  await pool.query(
    'INSERT INTO worker_pools (id, seen) SELECT id, now() FROM unnest($1::text[]) id ON CONFLICT (id) DO UPDATE SET seen = now()',
    [alive],
  );
  await pool.query(
    `SELECT graphile_worker.force_unlock_workers(array_agg(DISTINCT locked_by)) FROM graphile_worker.jobs
     WHERE locked_at < now() - $1::interval
       AND locked_by NOT IN (SELECT id FROM worker_pools WHERE seen > now() - $1::interval)
     HAVING count(*) > 0`,
    [stale],
  );
  await pool.query('DELETE FROM worker_pools WHERE seen < now() - $1::interval * 10', [stale]);
}

async function hastenRetries(pool: pg.Pool): Promise<void> {
  // A retry waits five minutes at most, but where a mail server refused the message: there it waits up to six hours.
  await pool.query(
    `SELECT graphile_worker.reschedule_jobs(array_agg(j.id), run_at => now() + interval '5 minutes', attempts => 7)
     FROM graphile_worker.jobs j WHERE j.run_at > now() + interval '5 minutes' AND j.locked_at IS NULL AND j.attempts > 0
       AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.refused
         AND j.key = concat_ws(':', 'deliver', d.event, d.type_id, d.subscriber_id))
     HAVING count(*) > 0`,
  );
}

function poolEvents(alive: Set<string>): WorkerEvents {
  const events = new EventEmitter() as WorkerEvents;
  events.on('pool:create', ({ workerPool }) => alive.add(workerPool.id));
  events.on('pool:release', ({ workerPool }) => alive.delete(workerPool.id));
  return events;
}

async function forgetPools(pool: pg.Pool, ids: string[]): Promise<void> {
  await pool.query('DELETE FROM worker_pools WHERE id = ANY($1)', [ids]);
}

async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => undefined);
}

/** The library's own messages: its failures are warnings here, and none of them carries a job's payload. */
function quietLogger(log: Logger): WorkerLogger {
  return new WorkerLogger(() => (level, message) => {
    if (level === 'error') log.warn({ worker: message }, 'a job failed');
    else if (level === 'warning') log.warn({ worker: message }, 'job worker');
    else log.debug({ worker: message }, 'job worker');
  });
}
