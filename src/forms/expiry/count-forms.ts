// Counts the forms by status for a metric. The statement reads a whole index of the forms. A run of the reconciler
// therefore executes it only once, and outside of the transactions that hold the lease.
import type pg from 'pg';
import type { Logger } from '../../service/operations/log.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { type FormStatus, formStatuses } from '../forms/catalogue.ts';

/** Maximum time in milliseconds: the pool closes a connection that is silent for 20 seconds. */
export const longestCount = 18_000;

export interface CountOptions {
  pool: pg.Pool;
  log: Logger;
  /** Milliseconds after which the statement is cancelled. */
  limit?: number;
}

/**
 * Returns the number of forms by status. Returns undefined if the count fails or takes too long. The promise never
 * rejects, because a failed count must not fail a run whose expiry succeeded.
 */
export async function countForms({ pool, log, limit = longestCount }: CountOptions) {
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
