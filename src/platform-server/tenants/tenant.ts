// Tenants: how they are stored, shown and looked up by name. They come from the seed; no request creates or changes a
// tenant.
import type { Tenant } from '../../service/auth/identity.ts';
import type { Urns } from '../../service/urn.ts';

/** A tenant as it is stored: `id` is the last segment of its URN. */
export interface StoredTenant {
  id: string;
  name: string;
  realm: string;
  adminEmail: string | null;
  /** Domains that the tenant may send mail from, in addition to the operator's domain. */
  mailDomains?: string[];
}

/** A tenant in a response. Only callers with a token see the administrator's address. */
export interface ShownTenant {
  id: string;
  name: string;
  realm: string;
  status: 'active';
  adminEmail?: string;
}

export function showTenant(urns: Urns, tenant: StoredTenant, withAddress: boolean): ShownTenant {
  return {
    id: urns.tenant(tenant.id),
    name: tenant.name,
    realm: tenant.realm,
    status: 'active',
    ...(withAddress && tenant.adminEmail !== null && { adminEmail: tenant.adminEmail }),
  };
}

export function toIdentity(urns: Urns, tenant: StoredTenant): Tenant {
  return { id: urns.tenant(tenant.id), name: tenant.name, realm: tenant.realm };
}

/** Returns the stored names that match a name case-insensitively. Hyphens also match spaces. */
export function namesFor(name: string): string[] {
  return [name.toLowerCase(), name.toLowerCase().replaceAll('-', ' ')];
}
