// Who may change a register now. Changes of one register run one after the other across replicas, because the
// configuration service has no compare-and-set: an advisory lock of a transaction, which holds behind a
// transaction-pooling PgBouncer too. Few connections are ever spent on it, and none is held without an end.
import type pg from 'pg';
import { Problem } from '../../service/problem.ts';
import { createQueue, type Queue } from './queue.ts';

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
  pool: pg.Pool;
  /** Turns of this process that hold a connection at once. */
  connections?: number | undefined;
  /** Longest wait in this process, and then again for the lock; in milliseconds. */
  waitMs?: number | undefined;
  /** Longest time for all steps of a turn, and for one of them; in milliseconds. */
  turnMs?: number | undefined;
  stepMs?: number | undefined;
}

export interface Turns {
  /** Problem `unavailable` (503, Retry-After) for who waited in vain: nothing was done. */
  take<T>(tenantId: string, name: string, work: (turn: Turn) => Promise<T>): Promise<T>;
}

export function createTurns(options: TurnOptions): Turns {
  const { pool, connections = 4, waitMs = 10_000, turnMs = 30_000, stepMs = 10_000 } = options;
  const queue: Queue = createQueue({ places: connections, waitMs });
  return {
    take: (tenantId, name, work) =>
      // Waiting here first: changes of one register never wait on several connections of one process.
      queue.run(JSON.stringify([tenantId, name]), () =>
        withLock(pool, waitMs, async (client, isLost) => {
          await lock(client, ['register', tenantId, name]);
          const end = performance.now() + turnMs;
          return work({
            lockDefinitions: () => lock(client, ['register definitions', tenantId]),
            timeForStep() {
              if (isLost()) throw new Problem('unavailable', 'The connection to the database was lost.', retrySoon);
              const left = Math.floor(end - performance.now());
              if (left > 0) return Math.min(left, stepMs);
              throw new Problem('dependency-failed', 'The configuration service took too long.');
            },
          });
        }),
      ),
  };
}

const retrySoon = { headers: { 'Retry-After': '5' } };

async function withLock<T>(
  pool: pg.Pool,
  waitMs: number,
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
      `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
        set_config('idle_in_transaction_session_timeout', '60s', true)`,
      [`${waitMs}ms`, `${waitMs + 5_000}ms`],
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

async function lock(client: pg.PoolClient, key: string[]): Promise<void> {
  try {
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [JSON.stringify(key)]);
  } catch (error) {
    // lock_not_available, query_canceled
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== '55P03' && code !== '57014') throw error;
    throw new Problem('unavailable', 'Other changes of this register are still running.', {
      ...retrySoon,
      cause: error,
    });
  }
}
