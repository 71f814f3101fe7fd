// Tenants: how they are stored, shown and found by name. All tenants come from the seed. No request creates or changes
// a tenant.
import type { Tenant } from '../../service/auth/identity.ts';
import type { Urns } from '../../service/urn.ts';

/** A tenant in the form in which it is stored. `id` is the last segment of its URN. */
export interface StoredTenant {
  id: string;
  name: string;
  realm: string;
  adminEmail: string | null;
  /** Domains from which the tenant may send mail, in addition to the operator's address. */
  mailDomains?: string[];
}

/** A tenant in the form in which a response shows it. Only callers with a token see the administrator's address. */
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

/** Returns the names in lower case that match a given name. Hyphens in the given name also match spaces. */
export function namesFor(name: string): string[] {
  return [name.toLowerCase(), name.toLowerCase().replaceAll('-', ' ')];
}
