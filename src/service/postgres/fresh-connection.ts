// Checks Postgres over a new connection, independent of any pool.
import pg from 'pg';

/** True if a new connection opens and responds, each within `limit` milliseconds. Never rejects. */
export async function canConnect(url: string, limit = 2_000): Promise<boolean> {
  return (await ask(url, 'SELECT 1', limit)) !== undefined;
}

/** A connection as `pg_stat_activity` describes it. */
export interface Backend {
  pid: number;
  /** `active` while the connection runs a statement. */
  state: string | null;
  opened: Date;
}

/**
 * Returns the connections of this role to this database, except the connection that this function opens. Returns
 * undefined if Postgres does not respond within `limit` milliseconds. Never rejects.
 */
export function readBackends(url: string, limit = 2_000): Promise<Backend[] | undefined> {
  const sql = `SELECT pid, state, backend_start AS opened FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()`;
  return ask<Backend>(url, sql, limit);
}

async function ask<R extends pg.QueryResultRow>(url: string, sql: string, limit: number): Promise<R[] | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: limit, query_timeout: limit });
  // Without a listener, a connection that breaks would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<R>(sql)).rows;
  } catch {
    return undefined;
  } finally {
    // The end of the connection is not awaited, because Postgres may never confirm it.
    client.end().catch(() => undefined);
  }
}
