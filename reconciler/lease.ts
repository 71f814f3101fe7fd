// Acquires, renews and releases the lease of a run, and runs the transactions of that run. A run acquires the lease by
// increasing its generation. Each transaction of the run locks the row of the lease and checks the generation. A run
// that lost the lease therefore writes nothing, even if it resumes much later. If a run dies, its lease expires. Each
// transaction and renewal also compares the clocks, so that a run whose clock becomes wrong writes nothing.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from '../src/service/operations/log.ts';
import { borrow } from '../src/service/postgres/kept-connections.ts';
import {
  databaseProblem,
  isStatementTimeout,
  type Queryable,
  withTransaction,
} from '../src/service/postgres/postgres.ts';
import { databaseRefusal } from '../src/service/quarantine/quarantine.ts';
import { type ClockCheck, checkClock } from './clock-check.ts';

/** Thrown if another run has taken the lease. */
export class LeaseLostError extends Error {
  constructor() {
    super('Another run has taken the lease.');
    this.name = 'LeaseLostError';
  }
}

export interface RetryRules {
  /**
   * True to throw statement timeouts instead of retrying them. The caller then handles them, for example with a smaller
   * batch.
   */
  throwsTimeouts?: boolean;
}

/**
 * The transactions of a run. They commit only while the run holds the lease. Transactions of a dry run cannot write.
 */
export interface Writer {
  dryRun: boolean;
  /**
   * Runs a transaction, and retries it after a failure of the infrastructure. Rejects with LeaseLostError if the lease
   * is lost.
   */
  transact<T>(work: (client: pg.PoolClient) => Promise<T>, rules?: RetryRules): Promise<T>;
}

export interface Lease extends Pick<Writer, 'transact'> {
  /** The generation of the lease; a bigint, as text. */
  readonly generation: string;
  /** Extends the lease. Rejects with LeaseLostError if another run has taken it. */
  renew(): Promise<void>;
  /**
   * Runs `work` and ends the lease, in one transaction, which is retried after a failure of the infrastructure. Rejects
   * with LeaseLostError if another run has taken the lease.
   */
  release(work: (client: pg.PoolClient) => Promise<void>): Promise<void>;
  /** Stops the renewal of the lease, so that the lease expires. */
  stopRenewing(): void;
}

export interface RetryOptions {
  log: Logger;
  /** If this signal is aborted, failures are no longer retried. */
  signal: AbortSignal;
}

/** The pause before each retry, in milliseconds. */
const pauses = [200, 1_000, 3_000];

/**
 * Retries `work` after a failure of the infrastructure: a deadlock, a lock or statement timeout, or a broken
 * connection. Does not retry a failure that a row has caused, because a retry would fail again.
 */
async function retryFailures<T>(
  { log, signal, throwsTimeouts = false }: RetryOptions & RetryRules,
  work: () => Promise<T>,
): Promise<T> {
  for (const pause of pauses) {
    try {
      return await work();
    } catch (error) {
      if (!databaseProblem(error) || databaseRefusal(error) || signal.aborted) throw error;
      if (throwsTimeouts && isStatementTimeout(error)) throw error;
      log.warn({ err: error }, 'statement failed, will be retried');
      await sleep(pause);
    }
  }
  return work();
}

export interface LeaseOptions extends RetryOptions, ClockCheck {
  pool: pg.Pool;
  /** Lifetime of the lease in milliseconds. If it is not renewed for this time, another run may take it. */
  duration: number;
}

/**
 * Milliseconds. LEASE_DURATION is at most an hour, so a lease that ends later than this from now was acquired while a
 * clock was wrong. It counts as expired. Otherwise, if its run has died, no run could begin until that time.
 */
const longestLease = 86_400_000;

// The lease is stored in the table reconciler_turn. If a transaction of another run has locked the row, that run holds
// the lease, and SKIP LOCKED finds no row.
const acquireSql = `
WITH free AS (
  SELECT only_row FROM reconciler_turn WHERE held_until IS NULL OR held_until <= $1 OR held_until > $3
  FOR UPDATE SKIP LOCKED
)
UPDATE reconciler_turn t SET generation = t.generation + 1, held_until = $2
FROM free WHERE t.only_row = free.only_row
RETURNING t.generation`;

// The condition on `held_until` prevents a late renewal from reviving a released lease.
const renewSql = 'UPDATE reconciler_turn SET held_until = $2 WHERE generation = $1 AND held_until IS NOT NULL';

// Only the run with this generation can have released the lease.
const releasedSql = 'SELECT FROM reconciler_turn WHERE generation = $1 AND held_until IS NULL';

/** Acquires the lease. Returns undefined if another run holds it. */
export async function acquireLease(options: LeaseOptions): Promise<Lease | undefined> {
  const { pool, clock, duration } = options;
  const end = () => new Date(clock().getTime() + duration);
  const latest = new Date(clock().getTime() + longestLease);
  const [acquired] = (await pool.query<{ generation: string }>(acquireSql, [clock(), end(), latest])).rows;
  if (!acquired) return undefined;
  const { generation } = acquired;

  async function hold(db: Queryable, until: Date | null): Promise<void> {
    await checkClock(db, options);
    const { rowCount } = await db.query(renewSql, [generation, until]);
    if (rowCount !== 1) throw new LeaseLostError();
  }

  const renew = () => hold(pool, end());
  // The heartbeat keeps the lease while a run waits for the platform and runs no transactions. Failed renewals are
  // ignored, because the next transaction checks the lease.
  const heartbeat = setInterval(() => void renew().catch(() => undefined), Math.max(duration / 3, 10));
  heartbeat.unref();
  return {
    generation,
    renew,
    transact: (work, rules) =>
      retryFailures({ ...options, ...rules }, () =>
        withTransaction(pool, async (client) => {
          await hold(client, end());
          return work(client);
        }),
      ),
    async release(work) {
      clearInterval(heartbeat);
      let attempts = 0;
      await retryFailures(options, () =>
        withTransaction(pool, async (client) => {
          attempts += 1;
          // If the connection broke at the commit of an earlier attempt, the commit may have succeeded.
          if (attempts > 1 && (await client.query(releasedSql, [generation])).rowCount === 1) return;
          await hold(client, end());
          await work(client);
          await hold(client, null);
        }),
      );
    },
    stopRenewing: () => clearInterval(heartbeat),
  };
}

/** Returns the writer of a dry run, whose transactions are read-only. */
export function readOnlyWriter({ pool, ...options }: RetryOptions & { pool: pg.Pool }): Writer {
  return {
    dryRun: true,
    transact: (work, rules) =>
      retryFailures({ ...options, ...rules }, () =>
        borrow(pool, async (client, { discard }) => {
          try {
            await client.query('BEGIN READ ONLY');
            return await work(client);
          } finally {
            await client.query('ROLLBACK').catch(discard);
          }
        }),
      ),
  };
}
