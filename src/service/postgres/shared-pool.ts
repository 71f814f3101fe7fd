// Shares a pool of Postgres connections fairly. One member (such as a form or a client) and one tenant can each use
// only a limited number of the connections. Further statements wait in a bounded queue.
import type pg from 'pg';
import { Problem } from '../http/problem.ts';
import { FairQueue, type ReleaseSlot, type Requester } from '../limits/fair-queue.ts';
import type { Metrics } from '../operations/metrics.ts';
import { databaseProblem, isLockTimeout, withTransaction } from './postgres.ts';

export interface SharedPool {
  query<R extends pg.QueryResultRow>(requester: Requester, text: string, values: unknown[]): Promise<pg.QueryResult<R>>;
  /** Runs `work` in a transaction, like `withTransaction`. */
  transaction<T>(requester: Requester, work: (client: pg.PoolClient) => Promise<T>): Promise<T>;
}

export interface SharedPoolOptions {
  pool: pg.Pool;
  /** Number of connections of the pool. */
  size: number;
  /** Label of the pool's metrics. */
  name: string;
  /**
   * Details of the problem `busy`. `busy` is used if no connection became free in time, `locked` if a row stayed
   * locked.
   */
  details: { busy: string; locked: string };
  /** Number of connections that one member may hold: 2 by default, and never more than one tenant may hold. */
  perMember?: number;
  metrics: Metrics;
}

/** Maximum number of statements that may wait. Each of them holds the body of its request in memory. */
const waiting = { total: 400, perTenant: 200, perMember: 100 };
/** Longest wait in the queue, in milliseconds. `createPool` has the same limit. */
const longestWait = 5_000;

/** Creates a shared pool, in which one tenant may hold at most half of the connections. */
export function createSharedPool(options: SharedPoolOptions): SharedPool {
  const { pool, size, name, details, perMember = 2, metrics } = options;
  const { postgresPools } = metrics;
  const half = Math.max(1, Math.floor(size / 2));
  const queue = new FairQueue({
    slots: { total: size, perTenant: half, perMember: Math.min(perMember, half) },
    waiting,
    waitMs: longestWait,
    detail: details.busy,
    retryAfterSeconds: 1,
    onRefused: (reason) => postgresPools.refused(name, reason),
  });
  postgresPools.addQueue(name, queue);
  let lastFailure: unknown;

  async function run<T>(release: ReleaseSlot, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      lastFailure = undefined;
      return result;
    } catch (error) {
      lastFailure = error;
      throw isLockTimeout(error) ? busy(details.locked, error) : error;
    } finally {
      release();
    }
  }

  async function wait(requester: Requester): Promise<ReleaseSlot> {
    const begun = performance.now();
    try {
      const release = await queue.take(requester);
      postgresPools.waited(name, (performance.now() - begun) / 1_000);
      return release;
    } catch (refusal) {
      // If Postgres is down, reports the outage, because the full queue is only a consequence.
      const outage = databaseProblem(lastFailure);
      throw outage?.slug === 'unavailable' ? outage : refusal;
    }
  }

  function take<T>(requester: Requester, work: () => Promise<T>): Promise<T> {
    const release = queue.tryTake(requester);
    return release ? run(release, work) : wait(requester).then((late) => run(late, work));
  }

  return {
    query: <R extends pg.QueryResultRow>(requester: Requester, text: string, values: unknown[]) =>
      take(requester, () => pool.query<R>(text, values)),
    transaction: (requester, work) => take(requester, () => withTransaction(pool, work)),
  };
}

/**
 * Gives a pool the interface of SharedPool, but without limits and without a queue. For background work and commands.
 */
export function unsharedPool(pool: pg.Pool): SharedPool {
  return {
    query: (_requester, text, values) => pool.query(text, values),
    transaction: (_requester, work) => withTransaction(pool, work),
  };
}

/**
 * Gives the client of an open transaction the interface of SharedPool, so that the statements of a store belong to this
 * transaction.
 */
export function poolOfTransaction(client: pg.PoolClient): SharedPool {
  return {
    query: (_requester, text, values) => client.query(text, values),
    transaction: (_requester, work) => work(client),
  };
}

function busy(detail: string, cause: unknown): Problem {
  return new Problem('busy', detail, { cause, headers: { 'Retry-After': '1' } });
}
