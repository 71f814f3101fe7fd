// What a platform server starts with: tenants and directory entries, from a JSON file that an administrator keeps.
// Applying it again changes what has changed; it removes nothing.
import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { z } from 'zod';
import { ConfigError } from '../service/config.ts';
import { withTransaction } from '../service/postgres.ts';
import { createDirectoryStore } from './directory/store.ts';
import { tenantIdPattern } from './tenant-key.ts';
import { createTenantStore } from './tenants/store.ts';

const element = '[A-Za-z0-9-]{1,50}';

export const seedSchema = z.strictObject({
  tenants: z
    .array(
      z.strictObject({
        id: z.string().regex(tenantIdPattern, 'must be 24 hexadecimal digits'),
        name: z.string().regex(/^[0-9A-Za-z _]{1,50}$/, 'must be 1 to 50 letters, digits, spaces and underscores'),
        realm: z.string().min(1).max(50),
        adminEmail: z.email().optional(),
      }),
    )
    .default([]),
  directory: z
    .array(
      z.strictObject({
        namespace: z.string().regex(new RegExp(`^${element}$`)),
        service: z.string().regex(new RegExp(`^${element}(:${element})?$`), 'must be a service or service:api'),
        url: z.url({ protocol: /^https?$/ }),
      }),
    )
    .default([]),
});

export type Seed = z.input<typeof seedSchema>;

/** Throws ConfigError when the file cannot be read or is no seed. */
export async function readSeed(file: string): Promise<Seed> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(file, 'utf8'));
  } catch {
    throw new ConfigError([{ name: 'SEED_FILE', problem: 'cannot be read as JSON' }]);
  }
  const seed = seedSchema.safeParse(parsed);
  if (seed.success) return seed.data;
  throw new ConfigError(
    seed.error.issues.map(({ path, message }) => ({ name: 'SEED_FILE', problem: `${path.join('.')}: ${message}` })),
  );
}

/** Saves all of a seed, or nothing of it. */
export async function applySeed(pool: pg.Pool, seed: Seed): Promise<void> {
  await withTransaction(pool, async (transaction) => {
    const tenants = createTenantStore(transaction);
    const directory = createDirectoryStore(transaction);
    for (const { adminEmail = null, ...tenant } of seed.tenants ?? []) await tenants.save({ ...tenant, adminEmail });
    for (const entry of seed.directory ?? []) await directory.save(entry);
  });
}
