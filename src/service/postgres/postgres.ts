// Creates connection pools for Postgres, runs transactions, and maps database errors to problems. Uses no session
// state, so that the product works behind a transaction-pooling PgBouncer.
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import { codeOfError } from '../error-code.ts';
import { Problem } from '../http/problem.ts';
import { parseJson } from '../json-parser.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import { outsideRequests } from '../operations/request-scope.ts';
import { tracePool, transactionSpan } from '../tracing/database-span.ts';
import { traced } from '../tracing/tracing.ts';
import { isTlsFailure } from './database-failure.ts';
import { borrow, endsConnection, keepConnections } from './kept-connections.ts';
import { endSilentConnections, type SilenceLimits, silenceLimits } from './silent-connections.ts';

/** A pool, or a client that runs a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>;

/**
 * Creates a pool of at most `size` connections (default 10). A statement waits at most 5 s for a connection. Timeouts
 * of statements and locks are settings of the role (see migrate), because startup parameters and SET do not work with
 * transaction pooling.
 */
export function createPool(options: {
  url: string;
  size?: number | undefined;
  /**
   * Label of the pool's metrics. Without a name, the pool has no metrics. In `pg_stat_activity`, the connections are
   * named `formgate <name>`.
   */
  name?: string;
  /** Required if a statement of the pool may take longer than the statement timeout of the role (`silenceFor`). */
  silence?: SilenceLimits;
  log: Logger;
  metrics: Metrics;
}): pg.Pool {
  let hasWarned = false;
  const noteCertificate = (stream: TLSSocket) => {
    options.metrics.certificates.recordServer('postgres', stream.getPeerCertificate());
    if (stream.authorized || hasWarned) return;
    hasWarned = true;
    const facts = { dependency: 'postgres', reason: String(stream.authorizationError) };
    outsideRequests(() =>
      options.log.warn(facts, 'the certificate of Postgres is invalid, but DATABASE_URL accepts any'),
    );
  };
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.size ?? 10,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    types: jsonTypes,
    ...(options.name !== undefined && { application_name: `formgate ${options.name}` }),
  });
  if (options.name !== undefined) options.metrics.postgresPools.addPool(options.name, pool);
  endSilentConnections(pool, options.url, options.silence ?? silenceLimits);
  pool.on('connect', (client) => {
    const { stream } = client.connection;
    if (stream instanceof TLSSocket) noteCertificate(stream);
    // Without a listener, an `error` event would end the process. The next statement on this connection fails anyway.
    client.on('error', () => undefined);
  });
  // The pool replaces an idle connection that breaks. Without a listener, the `error` event would end the process.
  pool.on('error', (error) => {
    options.metrics.dependencyFailures.inc({ dependency: 'postgres', kind: 'connection' });
    // Logs outside of any request: this event runs in the scope of the request that opened the connection.
    outsideRequests(() => options.log.warn({ err: error }, 'idle Postgres connection broke'));
  });
  keepConnections(pool);
  tracePool(pool);
  return pool;
}

// Form data must be read with exactly the property names that were stored (see json-parser.ts).
const jsonTypes = new pg.TypeOverrides();
for (const type of [pg.types.builtins.JSON, pg.types.builtins.JSONB]) jsonTypes.setTypeParser(type, parseJson);

/**
 * Runs `work` in one transaction. Commits when `work` resolves, and rolls back when it throws. A connection that breaks
 * is not used again.
 */
export function withTransaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return traced(transactionSpan, () => transact(pool, work));
}

function transact<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return borrow(pool, async (client, { isBroken, discard }) => {
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      // If the rollback fails, the connection may still be in the transaction, so it must not be used again.
      if (!isBroken()) await client.query('ROLLBACK').catch(discard);
      throw error;
    }
  });
}

const lockNotAvailable = '55P03';
const queryCanceled = '57014';
// SQLSTATEs (PostgreSQL, appendix A). 08: broken connection; 28, 3D: connection refused, after a password rotation or
// while the database is restored; 53, 57P: too busy, shutting down, terminated; 25006: a primary became a standby.
const unavailableStates = /^(08|28|3D|53|57P|25006$)/;
// Statement timeout, lock timeout, serialization failure and deadlock: a retry of the request may succeed.
const retryableStates = new Set([queryCanceled, lockNotAvailable, '40001', '40P01']);
// The message of pg-pool when the wait for a connection timed out because all connections were in use.
const fullPool = 'timeout exceeded when trying to connect';
/** Codes of the errors of open connections that break. */
const brokenCodes = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);
/**
 * System calls that open a connection. If one of them fails, Postgres counts as unavailable. The code of the error does
 * not matter, because some network policies cause EPERM.
 */
const connectingCalls = new Set<unknown>(['connect', 'getaddrinfo']);
// Messages of errors of pg and pg-pool that have no code.
const unavailableMessages =
  /^(Connection terminated|timeout expired|Postgres does not respond|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/;
// Codes of errors about values that jsonb and text cannot hold. The checks of bodies and URLs reject most of these
// values first.
const unstorableStates = new Set(['22P02', '22P05', '22021', '54001']);

/** Returns the problem for a database error, or undefined for an unexpected error. */
export function databaseProblem(error: unknown): Problem | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOfError(error) ?? '';
  if (unstorableStates.has(code) && 'severity' in error)
    return new Problem('invalid-request', 'The request contains a value that cannot be stored.', { cause: error });
  if (retryableStates.has(code) || error.message === fullPool)
    return new Problem('busy', 'The database is busy.', { cause: error, headers: { 'Retry-After': '1' } });
  const unavailable =
    endsConnection(error) ||
    unavailableStates.test(code) ||
    brokenCodes.has(code) ||
    isFailedConnection(error) ||
    isTlsFailure(error) ||
    unavailableMessages.test(error.message);
  if (!unavailable) return undefined;
  return new Problem('unavailable', 'The database cannot be reached at the moment.', {
    cause: error,
    headers: { 'Retry-After': '5' },
  });
}

/**
 * True if no connection could be opened. If a host has several addresses, Node tries them all, and throws an
 * AggregateError, which has no `syscall` itself.
 */
function isFailedConnection(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isFailedConnection);
  return error instanceof Error && 'syscall' in error && connectingCalls.has(error.syscall);
}

export function isLockTimeout(error: unknown): boolean {
  return codeOfError(error) === lockNotAvailable;
}

/** True if a row refers to one that does not exist, for example because a concurrent transaction has deleted it. */
export function isMissingReference(error: unknown): boolean {
  return codeOfError(error) === '23503';
}

/** True if Postgres ended a statement that exceeded `statement_timeout`, or that an operator cancelled. */
export function isStatementTimeout(error: unknown): boolean {
  return codeOfError(error) === queryCanceled;
}
