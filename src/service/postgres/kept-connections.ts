// Keeps a pooled connection open after Postgres has refused a statement. The `pool.query` of pg closes the connection
// after each failed statement. Without this module, a client with many refused requests would make the pool open new
// connections continually.
import pg from 'pg';

export interface Usability {
  isBroken(): boolean;
  /** Prevents the pool from using the connection again. */
  discard(error: Error): void;
}

/** Runs `work` with a connection of the pool. A connection that breaks is not used again. */
export async function borrow<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, usability: Usability) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // The pool does not listen to a borrowed connection. Without a listener, an error of the connection would end the
  // process.
  const discard = (error: Error) => {
    broken = error;
  };
  client.on('error', discard);
  try {
    return await work(client, { isBroken: () => broken !== undefined, discard });
  } catch (error) {
    if (error instanceof pg.DatabaseError && isUnusable(error)) discard(error);
    throw error;
  } finally {
    client.off('error', discard);
    client.release(broken);
  }
}

/** Replaces `pool.query`. The new method returns a promise, and supports no callback. */
export function keepConnections(pool: pg.Pool): void {
  const query = (...given: [string, unknown[]?]) =>
    borrow(pool, async (client, { discard }) => {
      try {
        return await client.query(...given);
      } catch (error) {
        // The statement may be half sent.
        if (!(error instanceof pg.DatabaseError)) discard(error as Error);
        throw error;
      }
    });
  Object.assign(pool, { query });
}

// PostgreSQL, appendix A. 08: broken connection; 57P: shutting down, terminated; 25006: the server is a standby, and a
// new connection may lead to the primary.
const brokenStates = /^(?:08|57P|25006$)/;

/**
 * True if the connection must not be used again. A connection is kept if Postgres, or a pooler, only refused a
 * statement.
 */
function isUnusable(error: pg.DatabaseError): boolean {
  return endsConnection(error) || brokenStates.test(error.code ?? '');
}

/** True if Postgres closes the connection after this error. */
export function endsConnection(error: Error): boolean {
  return 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC');
}
