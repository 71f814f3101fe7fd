// Who may change a register now. Changes of one register run one after the other across replicas, because the
// configuration service has no compare-and-set: an advisory lock of a transaction, which holds behind a
// transaction-pooling PgBouncer too. Each change holds a connection of a pool that requests for forms do not use, and
// each has a deadline, which includes its waiting.
import type pg from 'pg';
import { Problem } from '../../service/http/problem.ts';
import { type Claim, createFairQueue, type FairQueue } from '../../service/limits/fair-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { isLockTimeout } from '../../service/postgres/postgres.ts';

export interface Turn {
  /**
   * From here to the end of the turn, no other turn of the tenant writes definitions: they are all in one document.
   */
  lockDefinitions(): Promise<void>;
  /**
   * Milliseconds that the next step may take. Throws Problem `dependency-failed` when the turn's time is over, and
   * `unavailable` when the lock is lost: no step may start then.
   */
  timeForStep(): number;
}

export interface TurnOptions {
  /** Used by changes of registers only, with `registerConnections` connections. */
  pool: pg.Pool;
  metrics: Metrics;
  /** Changes that run at the same time; a tenant has half of them. */
  connections?: number | undefined;
  /** Longest wait in all: in this process, and for the lock. In milliseconds. */
  waitMs?: number | undefined;
  /** Longest time from the request to the last step, the wait included. In milliseconds. */
  changeMs?: number | undefined;
  /** Longest time for one step. In milliseconds. */
  stepMs?: number | undefined;
}

export interface Turns {
  /** Problem `busy` (503, Retry-After) when the wait was too long: nothing was done. */
  take<T>(tenantId: string, name: string, work: (turn: Turn) => Promise<T>): Promise<T>;
}

/** Changes of registers that run in one process at the same time, each on a connection. */
export const registerConnections = 6;
/** Label of the metrics of their pool. */
export const registerPoolName = 'registers';

export function createTurns(options: TurnOptions): Turns {
  const { pool, waitMs = 30_000, changeMs = 45_000, stepMs = 10_000 } = options;
  const queue = createChangeQueue(options, waitMs);
  const { postgresPools } = options.metrics;

  async function take<T>(claim: Claim, work: (turn: Turn) => Promise<T>): Promise<T> {
    const begun = performance.now();
    // Waiting here first: changes of one register never wait on several connections of one process.
    const release = queue.tryTake(claim) ?? (await queue.take(claim));
    const waited = performance.now() - begun;
    if (waited >= 1) postgresPools.waited(registerPoolName, waited / 1_000);
    try {
      return await withLock(pool, changeMs, async (client, isLost) => {
        const { tenant, member } = claim;
        const left = (limit: number) => begun + limit - performance.now();
        await lock(client, ['register', tenant, member], left(waitMs));
        return work({
          lockDefinitions: () => lock(client, ['register definitions', tenant], Math.min(waitMs, left(changeMs))),
          timeForStep() {
            if (isLost()) throw new Problem('unavailable', 'The connection to the database was lost.', retrySoon);
            const time = Math.floor(left(changeMs));
            if (time > 0) return Math.min(time, stepMs);
            throw new Problem('dependency-failed', 'The configuration service took too long.');
          },
        });
      });
    } finally {
      release();
    }
  }

  return { take: (tenant, member, work) => take({ tenant, member }, work) };
}

function createChangeQueue({ metrics, connections = registerConnections }: TurnOptions, waitMs: number): FairQueue {
  const { postgresPools } = metrics;
  const queue = createFairQueue({
    slots: { total: connections, perTenant: Math.ceil(connections / 2), perMember: 1 },
    waiting: { total: 100, perTenant: 50, perMember: 25 },
    waitMs,
    detail: 'Other changes of registers are still running.',
    retryAfterSeconds: 5,
    onRefused: (reason) => postgresPools.refused(registerPoolName, reason),
  });
  postgresPools.addQueue(registerPoolName, queue);
  return queue;
}

const retrySoon = { headers: { 'Retry-After': '5' } };

async function withLock<T>(
  pool: pg.Pool,
  changeMs: number,
  work: (client: pg.PoolClient, isLost: () => boolean) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let lost: Error | undefined;
  const lose = (error: Error) => {
    lost = error;
  };
  // Between statements nobody else hears that the connection broke.
  client.on('error', lose);
  try {
    await client.query('BEGIN');
    await client.query(
      `SELECT set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', '60s', true)`,
      [`${changeMs}ms`],
    );
    const result = await work(client, () => lost !== undefined);
    // All is done by now. A lock that was lost on the way out takes nothing back.
    await client.query('COMMIT').catch(lose);
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(lose);
    throw error;
  } finally {
    client.off('error', lose);
    client.release(lost);
  }
}

async function lock(client: pg.PoolClient, key: string[], waitMs: number): Promise<void> {
  // 0 would be no limit at all.
  const timeout = `${Math.max(1, Math.ceil(waitMs))}ms`;
  try {
    await client.query("SELECT set_config('lock_timeout', $1, true)", [timeout]);
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [JSON.stringify(key)]);
  } catch (error) {
    if (!isLockTimeout(error) && !isCancelled(error)) throw error;
    const detail = 'The register is being changed by other requests.';
    throw new Problem('busy', detail, { ...retrySoon, cause: error });
  }
}

function isCancelled(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014';
}
