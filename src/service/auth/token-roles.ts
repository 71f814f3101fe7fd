// Reads the names of a caller's roles from the claims of an access token, as Keycloak writes them.
import { z } from 'zod';

const rolesSchema = z.object({ roles: z.array(z.string()).default([]) });

/** The claims that contain roles. */
export const roleClaims = {
  realm_access: rolesSchema.optional(),
  resource_access: z.record(z.string(), rolesSchema).optional(),
};

/**
 * Maximum length of all `<client>:` together. Each role repeats the name of its client, so that a token of 16 KiB could
 * otherwise name megabytes.
 */
const longestPrefixes = 131_072;

/**
 * Returns realm roles by their names, and client roles as `<client>:<role>`. A role of `ownClient` is returned twice:
 * with and without `<client>:`. Returns undefined if the names are too long in total.
 */
export function rolesOf(
  { realm_access, resource_access = {} }: z.output<z.ZodObject<typeof roleClaims>>,
  ownClient: string,
): ReadonlySet<string> | undefined {
  const clients = Object.entries(resource_access).map(([client, access]) => ({ client, names: access.roles }));
  const prefixes = clients.reduce((length, { client, names }) => length + names.length * (client.length + 1), 0);
  if (prefixes > longestPrefixes) return undefined;
  const roles = new Set(realm_access?.roles);
  for (const { client, names } of clients)
    for (const role of names) {
      roles.add(`${client}:${role}`);
      if (client === ownClient) roles.add(role);
    }
  return roles;
}

/** Estimates the bytes of memory that the names take. */
export function memoryOfRoles(roles: ReadonlySet<string>): number {
  let bytes = 0;
  for (const role of roles) bytes += 100 + role.length;
  return bytes;
}
