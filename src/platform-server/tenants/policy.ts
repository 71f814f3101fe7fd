// Decides which tenants a caller may see. Core callers see all tenants; a tenant's users see only their own. A caller
// without a token must name the tenant.
import type { Caller } from '../../service/auth/identity.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantKey } from '../tenant-key.ts';

/** Admits a caller without a token only if the query contains `name` or `realm`. */
export const nameOrRealm: Guard = {
  name: 'nameOrRealm',
  admits: ['none'],
  check({ query }) {
    if (query.name || query.realm) return;
    throw new Problem('unauthenticated', 'A caller without a token must give a name or a realm.');
  },
};

/** Returns the id of the only tenant that the caller may see. Undefined if the caller may see all tenants. */
export function onlyVisibleTenant(caller: Caller | undefined): string | undefined {
  return caller?.tenant && tenantKey(caller.tenant.id);
}
