// Admits one run at a time, and runs its transactions. A run acquires the lease by increasing its generation. Each of its
// transactions locks the row of the lease and checks the generation, so that a run that lost the lease writes nothing,
// however late it resumes. A run that died loses the lease when it expires.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Clock } from '../src/service/clock.ts';
import type { Logger } from '../src/service/operations/log.ts';
import { databaseProblem, withTransaction } from '../src/service/postgres/postgres.ts';
import { databaseRefusal } from '../src/service/quarantine/quarantine.ts';

/** Another run holds the lease now. */
export class LeaseLostError extends Error {
  constructor() {
    super('Another run has taken the lease.');
    this.name = 'LeaseLostError';
  }
}

/** The transactions of a run. They commit only while it holds the lease; those of a dry run cannot write. */
export interface Writer {
  dryRun: boolean;
  /** Retries failures of the infrastructure. Rejects with LeaseLostError if another run has taken the lease. */
  transact<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T>;
}

export interface Lease extends Pick<Writer, 'transact'> {
  /** A bigint, as text. */
  readonly generation: string;
  /** Extends the lease. Rejects with LeaseLostError. */
  renew(): Promise<void>;
  /** Ends the lease in a transaction, after `work`. Rejects with LeaseLostError. */
  release(work: (client: pg.PoolClient) => Promise<void>): Promise<void>;
  /** Stops renewing the lease, which then expires. */
  abandon(): void;
}

export interface RetryOptions {
  log: Logger;
  /** Aborted to end the retries. */
  signal: AbortSignal;
}

/** Milliseconds before each retry. */
const pauses = [200, 1_000, 3_000];

/**
 * Retries after a failure of the infrastructure: a deadlock, a lock or statement timeout, a broken connection. A failure that
 * a row causes is not retried, because it would repeat.
 */
export async function retryFailures<T>({ log, signal }: RetryOptions, work: () => Promise<T>): Promise<T> {
  for (const pause of pauses) {
    try {
      return await work();
    } catch (error) {
      if (!databaseProblem(error) || databaseRefusal(error) || signal.aborted) throw error;
      log.warn({ err: error }, 'statement failed, will be retried');
      await sleep(pause);
    }
  }
  return work();
}

export interface LeaseOptions extends RetryOptions {
  pool: pg.Pool;
  clock: Clock;
  /** Milliseconds from the last renewal until another run may take the lease. */
  duration: number;
}

// The table of the lease is called reconciler_turn. SKIP LOCKED: a locked row belongs to a run that is in a transaction.
const acquireSql = `
WITH free AS (
  SELECT only_row FROM reconciler_turn WHERE held_until IS NULL OR held_until <= $1 FOR UPDATE SKIP LOCKED
)
UPDATE reconciler_turn t SET generation = t.generation + 1, held_until = $2
FROM free WHERE t.only_row = free.only_row
RETURNING t.generation`;

// A renewal that arrives late does not revive a released lease.
const renewSql = 'UPDATE reconciler_turn SET held_until = $2 WHERE generation = $1 AND held_until IS NOT NULL';

/** Undefined when another run holds the lease. */
export async function acquireLease(options: LeaseOptions): Promise<Lease | undefined> {
  const { pool, clock, duration } = options;
  const end = () => new Date(clock().getTime() + duration);
  const [acquired] = (await pool.query<{ generation: string }>(acquireSql, [clock(), end()])).rows;
  if (!acquired) return undefined;
  const { generation } = acquired;

  async function hold(db: Pick<pg.PoolClient, 'query'>, until: Date | null): Promise<void> {
    const { rowCount } = await db.query(renewSql, [generation, until]);
    if (rowCount !== 1) throw new LeaseLostError();
  }

  const renew = () => hold(pool, end());
  // While a run waits for the platform it has no transactions. After a failed renewal, the next transaction fails.
  const heartbeat = setInterval(() => void renew().catch(() => undefined), Math.max(duration / 3, 10));
  heartbeat.unref();
  return {
    generation,
    renew,
    transact: (work) =>
      retryFailures(options, () =>
        withTransaction(pool, async (client) => {
          await hold(client, end());
          return work(client);
        }),
      ),
    async release(work) {
      clearInterval(heartbeat);
      await withTransaction(pool, async (client) => {
        await hold(client, end());
        await work(client);
        await hold(client, null);
      });
    },
    abandon: () => clearInterval(heartbeat),
  };
}

/** The transactions of a dry run. */
export function readOnlyWriter({ pool, ...options }: RetryOptions & { pool: pg.Pool }): Writer {
  return {
    dryRun: true,
    transact: (work) =>
      retryFailures(options, async () => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN READ ONLY');
          return await work(client);
        } finally {
          await client.query('ROLLBACK').catch(() => undefined);
          client.release();
        }
      }),
  };
}
