// Finds the platform's tenants by realm, id and name. The realm core belongs to no tenant. While the tenant service
// fails, the lookup of an unknown tenant throws instead of returning undefined.
import { z } from 'zod';
import type { Tenant, Tenants } from '../service/auth/identity.ts';
import type { Clock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import { type CacheTimes, createCache } from './cache.ts';
import type { PlatformClient } from './http-client.ts';
import type { MissBudget } from './miss-budget.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface TenantsOptions {
  client: Pick<PlatformClient, 'request'>;
  clock: Clock;
  times: CacheTimes;
  budget: MissBudget;
  metrics: Pick<PlatformMetrics, 'staleServes' | 'cacheReads'>;
  log: Logger;
}

export interface TenantDirectory extends Tenants {
  /** Fetches the list of tenants before it is needed. Throws PlatformError. */
  preload(): Promise<void>;
  /** Returns any one of the tenants. Undefined if there are none. Throws PlatformError. */
  any(): Promise<Tenant | undefined>;
  /** Returns all active tenants. Throws PlatformError. */
  all(): Promise<readonly Tenant[]>;
}

const responseSchema = z.looseObject({
  results: z.array(
    z.looseObject({
      id: z.string().min(1),
      name: z.string().min(1),
      realm: z.string().min(1),
      status: z.string().nullish(),
    }),
  ),
});

export function createTenants({ client, ...options }: TenantsOptions): TenantDirectory {
  const cache = createCache<Tenant[]>({ ...options, service: 'tenants', maxEntries: 1 });
  const load = async (): Promise<Tenant[]> => {
    const { results } = await client.request({
      operation: 'list tenants',
      method: 'GET',
      path: '/tenants',
      response: responseSchema,
      isFixed: true,
    });
    const usable = results.filter(({ realm, status }) => realm !== 'core' && (!status || status === 'active'));
    return usable.map(({ id, name, realm }) => ({ id, name, realm }));
  };
  const find = (isWanted: (tenant: Tenant) => boolean) =>
    cache.find('tenants', load, (tenants) => tenants.findLast(isWanted));
  return {
    // The users of realm core belong to no tenant.
    byRealm: (realm) => (realm === 'core' ? Promise.resolve(undefined) : find((tenant) => tenant.realm === realm)),
    byId: (urn) => find(({ id }) => id === urn),
    byName: (name) => {
      const key = nameKey(name);
      return find((tenant) => nameKey(tenant.name) === key);
    },
    any: () => find(() => true),
    all: () => cache.get('tenants', load),
    preload: async () => {
      await cache.get('tenants', load);
    },
  };
}

/**
 * Returns a key for the comparison of names. Callers may use any case, and hyphens instead of spaces. Names themselves
 * contain no hyphens.
 */
function nameKey(name: string): string {
  return name.toLowerCase().replaceAll('-', ' ');
}
