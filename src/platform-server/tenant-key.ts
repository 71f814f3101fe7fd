// How this process's tables name a tenant: by the last segment of its URN, so that a changed URN prefix loses nothing.

export const tenantIdPattern = /^[0-9a-f]{24}$/;

/** The last segment of a tenant's URN. */
export function tenantKey(urn: string): string {
  return urn.slice(urn.lastIndexOf('/') + 1);
}
