// Compares the clock of this process with that of Postgres.
import type { Clock } from '../clock.ts';
import type { Queryable } from './postgres.ts';

/**
 * Returns the milliseconds by which the clock of this process is ahead of that of Postgres, negative if it is behind.
 * While the query runs, the process may be suspended, so the result is the smallest difference that explains the times.
 */
export async function clockOffset(db: Queryable, clock: Clock): Promise<number> {
  const before = clock().getTime();
  const { rows } = await db.query<{ now: Date }>('SELECT clock_timestamp() AS now');
  const after = clock().getTime();
  const now = rows[0]?.now.getTime() ?? Number.NaN;
  return now < before ? before - now : Math.min(after - now, 0);
}
