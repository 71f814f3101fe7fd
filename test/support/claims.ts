// Records the claim of each statement on a pool of Postgres connections. A claim names the tenant and the member whose
// share of the connections the statement uses.
import type pg from 'pg';
import type { Claim } from '../../src/service/limits/fair-queue.ts';
import { type SharedPool, unsharedPool } from '../../src/service/postgres/shared-pool.ts';

export function recordClaims(pool: pg.Pool): { pool: SharedPool; claims: Claim[] } {
  const claims: Claim[] = [];
  const { query, transaction } = unsharedPool(pool);
  return {
    claims,
    pool: {
      query: (claim, text, values) => {
        claims.push(claim);
        return query(claim, text, values);
      },
      transaction: (claim, work) => {
        claims.push(claim);
        return transaction(claim, work);
      },
    },
  };
}
