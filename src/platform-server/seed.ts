// Applies the seed (see seed-file.ts): adds and changes tenants and directory entries, but removes none.
import type pg from 'pg';
import { ConfigError } from '../service/operations/config.ts';
import { withTransaction } from '../service/postgres/postgres.ts';
import { createDirectoryStore } from './directory/store.ts';
import type { Seed } from './seed-file.ts';
import { createTenantStore } from './tenants/store.ts';

/**
 * Saves the whole seed in one transaction. Throws ConfigError if a tenant that the seed does not list has the name or
 * the realm of a listed one.
 */
export async function applySeed(pool: pg.Pool, seed: Seed): Promise<void> {
  await withTransaction(pool, async (transaction) => {
    const tenants = createTenantStore(transaction);
    const directory = createDirectoryStore(transaction);
    const listed = seed.tenants ?? [];
    const clash = await tenants.findClash(listed);
    if (clash) {
      const problem = `the name or realm of tenant ${clash} belongs to a tenant that the file does not list`;
      throw new ConfigError([{ name: 'SEED_FILE', problem }]);
    }
    // Names and realms are unique, and the seed may exchange them between tenants.
    await tenants.vacate(listed.map(({ id }) => id));
    for (const { adminEmail = null, mailDomains = [], ...tenant } of listed)
      await tenants.save({ ...tenant, adminEmail, mailDomains });
    for (const entry of seed.directory ?? []) await directory.save(entry);
  });
}
