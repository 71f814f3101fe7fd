// Finds the platform's tenants by realm, id and name. Realm core is never a tenant's. While the tenant service fails,
// an unknown tenant is an error and not absent.
import { z } from 'zod';
import type { Tenant, Tenants } from '../service/auth/identity.ts';
import type { Clock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import { type CacheTimes, createCache } from './cache.ts';
import type { PlatformClient } from './http-client.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface TenantsOptions {
  client: Pick<PlatformClient, 'request'>;
  clock: Clock;
  times: CacheTimes;
  metrics: Pick<PlatformMetrics, 'staleServes'>;
  log: Logger;
}

export interface TenantDirectory extends Tenants {
  /** Fetches the list before it is needed. Throws PlatformError. */
  preload(): Promise<void>;
}

interface Index {
  byRealm: Map<string, Tenant>;
  byId: Map<string, Tenant>;
  byName: Map<string, Tenant>;
}

const answerSchema = z.looseObject({
  results: z.array(
    z.looseObject({
      id: z.string().min(1),
      name: z.string().min(1),
      realm: z.string().min(1),
      status: z.string().nullish(),
    }),
  ),
});

export function createTenants({ client, clock, times, metrics, log }: TenantsOptions): TenantDirectory {
  const cache = createCache<Index>({ service: 'tenants', clock, times, maxEntries: 1, metrics, log });
  const load = async (): Promise<Index> => {
    const { results } = await client.request({
      operation: 'list tenants',
      method: 'GET',
      path: '/tenants',
      answer: answerSchema,
    });
    return createIndex(results);
  };
  const find = (pick: (index: Index) => Tenant | undefined) => cache.find('tenants', load, pick);
  return {
    // The users of realm core belong to no tenant.
    byRealm: (realm) => (realm === 'core' ? Promise.resolve(undefined) : find(({ byRealm }) => byRealm.get(realm))),
    byId: (urn) => find(({ byId }) => byId.get(urn)),
    byName: (name) => find(({ byName }) => byName.get(nameKey(name))),
    preload: async () => {
      await cache.get('tenants', load);
    },
  };
}

function createIndex(results: z.output<typeof answerSchema>['results']): Index {
  const index: Index = { byRealm: new Map(), byId: new Map(), byName: new Map() };
  for (const { id, name, realm, status } of results) {
    if (realm === 'core' || (status && status !== 'active')) continue;
    const tenant: Tenant = { id, name, realm };
    index.byRealm.set(realm, tenant);
    index.byId.set(id, tenant);
    index.byName.set(nameKey(name), tenant);
  }
  return index;
}

/** Names match in any case, and with hyphens in place of spaces: names contain no hyphens. */
function nameKey(name: string): string {
  return name.toLowerCase().replaceAll('-', ' ');
}
