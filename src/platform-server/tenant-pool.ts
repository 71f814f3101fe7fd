// Shares the request pool between tenants (decision 0032). The statements of one tenant use at most half of the
// connections, however many requests it sends, and further ones wait in a queue with a limit.
import type pg from 'pg';
import type { Metrics } from '../service/operations/metrics.ts';
import type { Queryable } from '../service/postgres/postgres.ts';
import { createSharedPool } from '../service/postgres/shared-pool.ts';

/** `tenant` is the key of a tenant, or `core`. */
export interface TenantPool {
  /** Returns an object that runs statements in the share of the tenant. */
  of(tenant: string): Queryable;
  /** Runs `work` in a transaction, in the share of the tenant. `work` must use this transaction for all statements. */
  transaction<T>(tenant: string, work: (transaction: pg.PoolClient) => Promise<T>): Promise<T>;
}

export function createTenantPool(options: { pool: pg.Pool; size: number; name: string; metrics: Metrics }): TenantPool {
  const shared = createSharedPool({
    ...options,
    perMember: options.size,
    details: {
      busy: 'Too many requests of this tenant are running. Try again.',
      locked: 'Another request is changing the same data. Try again.',
    },
  });
  const requesterOfTenant = (tenant: string) => ({ tenant, member: tenant });
  return {
    of(tenant) {
      const query = (text: string, values: unknown[] = []) => shared.query(requesterOfTenant(tenant), text, values);
      return { query: query as Queryable['query'] };
    },
    transaction: (tenant, work) => shared.transaction(requesterOfTenant(tenant), work),
  };
}

/** Returns a store whose methods run on the database that `databaseOf` returns for their first argument. */
export function storeOf<First, Store extends object>(
  create: (database: Queryable) => Store,
  databaseOf: (first: First) => Queryable,
): Store {
  type Method = (first: First, ...rest: unknown[]) => unknown;
  const unused = { query: () => Promise.reject(new Error('no tenant')) } as unknown as Queryable;
  const names = Object.keys(create(unused));
  const methods = names.map((name): [string, Method] => [
    name,
    (first, ...rest) => (create(databaseOf(first)) as Record<string, Method>)[name]?.(first, ...rest),
  ]);
  return Object.fromEntries(methods) as unknown as Store;
}
