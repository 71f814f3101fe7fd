// Deletes old rows in batches. A statement that deleted everything that has piled up while the server was down could
// exceed the statement timeout each time it is tried.
import type { Queryable } from '../service/postgres/postgres.ts';

/** Maximum number of rows that one statement deletes. */
const batchSize = 10_000;

export interface OldRows {
  table: string;
  /** The column with the time from which the age of a row counts. It needs an index. */
  column: string;
  /** An SQL condition for old rows that are still needed. The table has the alias `t`. */
  unless?: string;
}

/**
 * Deletes the rows whose time is before `limit`, the oldest first. Skips rows that another process has locked. Stops
 * after a batch if `signal` is aborted.
 */
export async function deleteOldRows(
  database: Queryable,
  { table, column, unless = 'false' }: OldRows,
  limit: Date,
  signal: AbortSignal,
): Promise<void> {
  const sql = `
DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
  SELECT t.ctid FROM ${table} t WHERE t.${column} < $1 AND NOT (${unless})
  ORDER BY t.${column} LIMIT ${batchSize} FOR UPDATE SKIP LOCKED))`;
  let isLast = false;
  while (!isLast && !signal.aborted) {
    const { rowCount } = await database.query(sql, [limit]);
    isLast = (rowCount ?? 0) < batchSize;
  }
}
