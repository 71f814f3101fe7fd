// Checks Postgres over a new connection, independent of any pool.
import pg from 'pg';

/** True if a new connection opens and responds, each within `limit` milliseconds. Never rejects. */
export async function canConnect(url: string, limit = 2_000): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: limit, query_timeout: limit });
  // Without a listener, a connection that breaks would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    // Not awaited, because Postgres may never confirm the end.
    client.end().catch(() => undefined);
  }
}
