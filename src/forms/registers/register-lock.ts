// The per-register lock. It serialises the changes of a register across replicas, because the configuration service has
// no compare-and-set operation. The lock is a transaction-level advisory lock, so it also works behind a PgBouncer in
// transaction mode. Each change uses a connection of a pool that form requests do not use. The deadline of a change
// includes its wait for the lock.
import type pg from 'pg';
import { Problem } from '../../service/http/problem.ts';
import { FairQueue } from '../../service/limits/fair-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { borrow } from '../../service/postgres/kept-connections.ts';
import { isLockTimeout, isStatementTimeout } from '../../service/postgres/postgres.ts';
import { silenceFor } from '../../service/postgres/silent-connections.ts';

export interface RegisterLock {
  /**
   * Locks the tenant's document of all definitions. No other change of a register can write the document until this
   * change ends.
   */
  lockDefinitions(): Promise<void>;
  /**
   * Returns the milliseconds that the next step may take. Call it before each step. Throws Problem `dependency-failed`
   * when the deadline of the change has passed, and `unavailable` when the lock is lost.
   */
  timeForStep(): number;
}

export interface RegisterLockOptions {
  /** A pool with `registerConnections` connections that only changes of registers use. */
  pool: pg.Pool;
  metrics: Metrics;
  /** Maximum number of concurrent changes; one tenant may use half of them. */
  connections?: number | undefined;
  /** Maximum total wait for a connection and for the lock, in milliseconds. */
  waitMs?: number | undefined;
  /** Maximum time for one step of a change, in milliseconds. */
  stepMs?: number | undefined;
}

/**
 * Runs `work` while holding the lock of a register. Throws Problem `busy` (503, Retry-After) if the wait was too long.
 */
export type HoldRegister = <T>(tenantId: string, name: string, work: (lock: RegisterLock) => Promise<T>) => Promise<T>;

/** Maximum number of concurrent changes of registers in one process. Each uses one connection. */
export const registerConnections = 6;
/** Label of the register pool in the metrics. */
export const registerPoolName = 'registers';
/** Maximum time in milliseconds from the request to the last step, including the wait for the lock. */
export const longestChange = 45_000;
/** Limits of the register pool. A wait for a lock is one statement, during which Postgres sends nothing. */
export const registerSilence = silenceFor(longestChange);

export function createRegisterLock(options: RegisterLockOptions): HoldRegister {
  const { pool, metrics, connections = registerConnections, waitMs = 30_000, stepMs = 10_000 } = options;
  const { postgresPools } = metrics;
  // Changes first wait in this queue. Otherwise, several changes of one register would occupy several connections.
  const queue = new FairQueue({
    slots: { total: connections, perTenant: Math.ceil(connections / 2), perMember: 1 },
    waiting: { total: 100, perTenant: 50, perMember: 25 },
    waitMs,
    detail: 'Other changes of registers are still running.',
    retryAfterSeconds: 5,
    onRefused: (reason) => postgresPools.refused(registerPoolName, reason),
  });
  postgresPools.addQueue(registerPoolName, queue);

  return async (tenant, member, work) => {
    const begun = performance.now();
    const left = (limit: number) => begun + limit - performance.now();
    const requester = { tenant, member };
    const release = await queue.take(requester);
    const waited = performance.now() - begun;
    if (waited >= 1) postgresPools.waited(registerPoolName, waited / 1_000);
    try {
      return await inTransaction(pool, async (client, isLost) => {
        await takeAdvisoryLock(client, ['register', tenant, member], left(waitMs));
        return work({
          lockDefinitions: () =>
            takeAdvisoryLock(client, ['register definitions', tenant], Math.min(waitMs, left(longestChange))),
          timeForStep() {
            if (isLost()) throw new Problem('unavailable', 'The connection to the database was lost.', retrySoon);
            const time = Math.floor(left(longestChange));
            if (time > 0) return Math.min(time, stepMs);
            throw new Problem('dependency-failed', 'The configuration service took too long.');
          },
        });
      });
    } finally {
      release();
    }
  };
}

const retrySoon = { headers: { 'Retry-After': '5' } };

function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, isLost: () => boolean) => Promise<T>,
): Promise<T> {
  return borrow(pool, async (client, { isBroken, discard }) => {
    try {
      await client.query('BEGIN');
      await client.query(
        `SELECT set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', '60s', true)`,
        [`${longestChange}ms`],
      );
      const result = await work(client, isBroken);
      // The change is complete at this point, so a lost lock no longer matters.
      await client.query('COMMIT').catch(discard);
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch(discard);
      throw error;
    }
  });
}

async function takeAdvisoryLock(client: pg.PoolClient, key: string[], waitMs: number): Promise<void> {
  // A lock_timeout of 0 would mean no limit.
  const timeout = `${Math.max(1, Math.ceil(waitMs))}ms`;
  try {
    await client.query("SELECT set_config('lock_timeout', $1, true)", [timeout]);
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [JSON.stringify(key)]);
  } catch (error) {
    if (!isLockTimeout(error) && !isStatementTimeout(error)) throw error;
    const detail = 'The register is being changed by other requests.';
    throw new Problem('busy', detail, { ...retrySoon, cause: error });
  }
}
