// Records the requester of each statement on a pool of Postgres connections: the tenant and the member whose share of
// the connections the statement uses.
import type pg from 'pg';
import type { Requester } from '../../src/service/limits/fair-queue.ts';
import { type SharedPool, unsharedPool } from '../../src/service/postgres/shared-pool.ts';

export function recordRequesters(pool: pg.Pool): { pool: SharedPool; requesters: Requester[] } {
  const requesters: Requester[] = [];
  const { query, transaction } = unsharedPool(pool);
  return {
    requesters,
    pool: {
      query: (requester, text, values) => {
        requesters.push(requester);
        return query(requester, text, values);
      },
      transaction: (requester, work) => {
        requesters.push(requester);
        return transaction(requester, work);
      },
    },
  };
}
