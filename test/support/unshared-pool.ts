// A pool as the form service's stores take it, without shares: for a test or a bench that calls a store itself.
import type pg from 'pg';
import { withTransaction } from '../../src/service/postgres.ts';
import type { SharedPool } from '../../src/service/shared-pool.ts';

export function unsharedPool(pool: pg.Pool): SharedPool {
  return {
    query: (_claim, text, values) => pool.query(text, values),
    transaction: (_claim, work) => withTransaction(pool, work),
  };
}
