// Asks Postgres by a connection of its own, so that the answer says nothing about a pool and waits for nobody.
import pg from 'pg';

/** Whether a new connection can be made and answers, both within `limit` milliseconds. Never rejects. */
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
    // Not awaited: the other side may never confirm it.
    client.end().catch(() => undefined);
  }
}
