// Connections to Postgres: pool, transactions, and what a failed connection means to a client.
// Nothing here keeps session state, so a transaction-pooling PgBouncer may stand in between.
import pg from 'pg';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import { Problem } from './problem.ts';

/** A pool or a client inside a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>;

/**
 * A pool of at most `size` connections (10). Waiting for one takes at most 5 s. Time limits of statements and locks are
 * settings of the role (see migrate), because a startup parameter or a SET does not survive transaction pooling.
 */
export function createPool(options: {
  url: string;
  size?: number | undefined;
  log: Logger;
  metrics: Metrics;
}): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.size ?? 10,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    // Beyond what a statement may take (15 s): only a connection that is dead or held up on its way gets here.
    query_timeout: 20_000,
  });
  // An idle connection that breaks is replaced by the pool; unheard, the event would end the process.
  pool.on('error', (error) => {
    options.metrics.dependencyFailures.inc({ dependency: 'postgres', kind: 'connection' });
    options.log.warn({ err: error }, 'an idle Postgres connection broke');
  });
  return pool;
}

/**
 * Runs `work` in one transaction: commits when it resolves, rolls back when it throws. A connection that breaks on the
 * way is not used again.
 */
export async function withTransaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // The pool does not listen to a connection that is lent out; unheard, its break would end the process.
  const onBreak = (error: Error) => {
    broken = error;
  };
  client.on('error', onBreak);
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // A connection that has not answered in time would not answer a ROLLBACK either.
    if (error instanceof Error && error.message === readTimeout) broken = error;
    if (!broken) await client.query('ROLLBACK').catch(onBreak);
    throw error;
  } finally {
    client.off('error', onBreak);
    client.release(broken);
  }
}

const readTimeout = 'Query read timeout';

/** Whether Postgres answers. */
export async function isReachable(pool: pg.Pool): Promise<boolean> {
  return pool.query('SELECT 1').then(
    () => true,
    () => false,
  );
}

// Postgres, appendix A. 08: connection broken; 28, 3D: refused (a rotated password, a database that is being restored);
// 53, 57P: too busy, shutting down, terminated; 25006: a primary that became a standby.
const unavailableStates = /^(08|28|3D|53|57P|25006$)/;
// Statement time-out, lock time-out, serialisation failure and deadlock: the same request may succeed in a moment.
const retryableStates = new Set(['57014', '55P03', '40001', '40P01']);
const unavailableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
// What pg and pg-pool say without a code.
const unavailableMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/;
// What Postgres' jsonb and text cannot hold. The checks of bodies and addresses refuse these first; they are a client's
// mistake all the same.
const unstorableStates = new Set(['22P02', '22P05', '22021', '54001']);

/** The problem that a database error is to the client, undefined if it is none of the expected ones. */
export function databaseProblem(error: unknown): Problem | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (unstorableStates.has(code) && 'severity' in error)
    return new Problem('invalid-request', 'The request holds a value that cannot be stored.', { cause: error });
  const unavailable =
    endsConnection(error) ||
    unavailableStates.test(code) ||
    retryableStates.has(code) ||
    unavailableCodes.has(code) ||
    unavailableMessages.test(error.message);
  if (!unavailable) return undefined;
  return new Problem('unavailable', 'The database cannot be reached at the moment.', {
    cause: error,
    headers: { 'Retry-After': '5' },
  });
}

/** Postgres closes the connection after such an error, whatever its state says. */
function endsConnection(error: Error): boolean {
  return 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC');
}
