// Applies the seed (see seed-file.ts): adds and changes tenants and directory entries, but removes none.
import type pg from 'pg';
import { withTransaction } from '../service/postgres/postgres.ts';
import { createDirectoryStore } from './directory/store.ts';
import type { Seed } from './seed-file.ts';
import { createTenantStore } from './tenants/store.ts';

/** Saves the whole seed in one transaction. */
export async function applySeed(pool: pg.Pool, seed: Seed): Promise<void> {
  await withTransaction(pool, async (transaction) => {
    const tenants = createTenantStore(transaction);
    const directory = createDirectoryStore(transaction);
    for (const { adminEmail = null, mailDomains = [], ...tenant } of seed.tenants ?? [])
      await tenants.save({ ...tenant, adminEmail, mailDomains });
    for (const entry of seed.directory ?? []) await directory.save(entry);
  });
}
