// Counts the forms by status for a metric. The statement reads an index of all forms, so a run counts only once,
// and outside of the transactions that hold the lease. The count ends after 18 seconds at most, because the pool closes
// a connection that is silent for 20 seconds.
import type pg from 'pg';
import type { Logger } from '../../service/operations/log.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { type FormStatus, formStatuses } from '../forms/catalogue.ts';

export interface CountOptions {
  pool: pg.Pool;
  log: Logger;
  /** Milliseconds. */
  limit?: number;
}

/** Returns undefined if the count fails or takes too long. Never rejects, because the expiry itself has succeeded. */
export async function countForms({ pool, log, limit = 18_000 }: CountOptions) {
  try {
    return await withTransaction(pool, async (client) => {
      await client.query(`SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = ${limit}`);
      const { rows } = await client.query<{ status: FormStatus; count: number }>(
        'SELECT status, count(*)::float8 AS count FROM forms GROUP BY status',
      );
      const counts: Record<string, number> = Object.fromEntries(formStatuses.map((status) => [status, 0]));
      for (const { status, count } of rows) counts[status] = count;
      return counts;
    });
  } catch (error) {
    log.warn({ err: error }, 'forms not counted');
    return undefined;
  }
}
