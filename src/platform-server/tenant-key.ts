// The key of a tenant in the tables of the platform server: the last segment of the tenant's URN. The key does not
// contain the URN prefix, so tenants keep their data if the prefix changes.

export const tenantIdPattern = /^[0-9a-f]{24}$/;

/** Returns the last segment of a tenant's URN. */
export function tenantKey(urn: string): string {
  return urn.slice(urn.lastIndexOf('/') + 1);
}
