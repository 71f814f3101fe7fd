// Checks the free connections of a pool.
import type pg from 'pg';
import { within } from '../time-limit.ts';

/** True if requests use all connections of the pool. A connection that is being opened counts as used. */
export function isFullNow({ waitingCount, idleCount, totalCount, options }: pg.Pool): boolean {
  return waitingCount > 0 || (idleCount === 0 && totalCount >= options.max);
}

/**
 * True if a free connection responds. Also true if no connection became free in time because the pool is busy. Closes a
 * connection that does not respond, so that no request gets it.
 */
export async function responds(pool: pg.Pool, patience: number): Promise<boolean> {
  const connecting = pool.connect();
  let client: pg.PoolClient | undefined;
  try {
    client = await within(connecting, patience, undefined);
  } catch {
    return false;
  }
  if (!client) {
    connecting.then((late) => late.release()).catch(() => undefined);
    // A full pool is only busy. If the pool is not full, it was opening a connection, and Postgres did not respond in
    // time.
    return isFullNow(pool);
  }
  // The pool does not listen to a borrowed connection. Without a listener, an error of the connection would end the
  // process.
  client.on('error', ignore);
  const query = client.query('SELECT 1').then(
    () => true,
    () => false,
  );
  const isAlive = await within(query, patience, false);
  client.off('error', ignore);
  client.release(!isAlive);
  return isAlive;
}

/** Closes the free connections that do not respond. */
export async function closeDeadConnections(pool: pg.Pool, patience: number): Promise<void> {
  await Promise.all(Array.from({ length: pool.idleCount }, () => responds(pool, patience)));
}

const ignore = () => undefined;
