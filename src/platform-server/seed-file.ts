// Reads the seed: a JSON file of tenants and directory entries that an operator maintains.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError } from '../service/operations/config.ts';
import { tenantIdPattern } from './tenant-key.ts';

const mailDomain = /^([A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}$/;

/**
 * Rejects tenants with the same id, name or realm. Otherwise, the second tenant would silently replace the first, or
 * fail in the database.
 */
function refuseDuplicates(tenants: { id: string; name: string; realm: string }[], context: z.RefinementCtx): void {
  for (const member of ['id', 'name', 'realm'] as const) {
    const first = new Map<string, number>();
    for (const [index, tenant] of tenants.entries()) {
      // The database also ignores case when it compares names.
      const value = member === 'name' ? tenant.name.toLowerCase() : tenant[member];
      const at = first.get(value);
      const message = `duplicates the ${member} of tenants.${at}`;
      if (at === undefined) first.set(value, index);
      else context.addIssue({ code: 'custom', path: [index, member], message });
    }
  }
}

const element = '[A-Za-z0-9-]{1,50}';

export const seedSchema = z.strictObject({
  tenants: z
    .array(
      z.strictObject({
        id: z.string().regex(tenantIdPattern, 'must be 24 hexadecimal digits'),
        name: z.string().regex(/^[0-9A-Za-z _]{1,50}$/, 'must be 1 to 50 letters, digits, spaces and underscores'),
        realm: z.string().min(1).max(50),
        adminEmail: z.email().optional(),
        mailDomains: z.array(z.string().regex(mailDomain, 'must be a domain').toLowerCase()).max(50).optional(),
      }),
    )
    .superRefine(refuseDuplicates)
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

/** Throws ConfigError if the file cannot be read or is invalid. */
export function readSeed(file: string): Seed {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw new ConfigError([{ name: 'SEED_FILE', problem: 'cannot be read as JSON' }]);
  }
  const seed = seedSchema.safeParse(parsed);
  if (seed.success) return seed.data;
  throw new ConfigError(
    seed.error.issues.map(({ path, message }) => ({ name: 'SEED_FILE', problem: `${path.join('.')}: ${message}` })),
  );
}
