// Finds the tenants whose own clients a core client shadows. A client is shadowed if a core client has the same id: the
// token handler then ignores the tenant's client. This module reads the configuration of each tenant, for a limited
// time. If a tenant's configuration cannot be read, the tenant is reported as unread and does not affect the others.
import type { Configuration } from '../../src/platform/configuration.ts';
import { failureFields, PlatformError } from '../../src/platform/platform-error.ts';
import type { TenantDirectory } from '../../src/platform/tenants.ts';
import type { Tenant } from '../../src/service/auth/identity.ts';
import { clientEntries } from '../../src/service/clients/client-entries.ts';
import { clientsName, clientsNamespace } from '../../src/service/clients/client-rules.ts';
import { forEachConcurrent } from '../../src/service/for-each-concurrent.ts';
import type { Logger } from '../../src/service/operations/log.ts';

export interface Shadows {
  /** For each core client's id, the tenants that have their own client with this id. */
  affected: ReadonlyMap<string, readonly Tenant[]>;
  /** The tenants whose configuration could not be read, or not within the time limit. */
  unread: readonly Tenant[];
  /** Number of tenants whose configuration was read. */
  read: number;
}

export interface ShadowsOptions {
  tenants: Pick<TenantDirectory, 'all'>;
  configuration: Pick<Configuration, 'read'>;
  log: Logger;
  signal?: AbortSignal | undefined;
  /** Time limit in milliseconds for all tenants together. */
  timeLimit?: number | undefined;
}

/**
 * Maximum number of concurrent reads. It is high enough for a thousand tenants in a few seconds, and low enough that
 * the configuration service can still serve other callers.
 */
const parallel = 8;
/** Time limit in milliseconds for one tenant. If one read hangs, time remains for the other tenants. */
const readTimeout = 3_000;
/** Number of failed reads that are logged individually. The last log line contains the total number. */
const loggedFailures = 5;

/**
 * Finds the tenants that have their own client with one of `ids`, the ids of all core clients. Returns undefined if the
 * tenants cannot be listed.
 */
export async function findShadows(ids: ReadonlySet<string>, options: ShadowsOptions): Promise<Shadows | undefined> {
  const { tenants, log } = options;
  if (ids.size === 0) return { affected: new Map(), unread: [], read: 0 };
  try {
    return await readTenants(ids, inRandomOrder(await tenants.all()), options);
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    log.warn({ kind: error.kind, dependency: error.service }, 'tenants cannot be listed: shadowed clients are unknown');
    return undefined;
  }
}

async function readTenants(ids: ReadonlySet<string>, tenants: Tenant[], options: ShadowsOptions): Promise<Shadows> {
  const { configuration, log, signal, timeLimit = 60_000 } = options;
  const affected = new Map<string, Tenant[]>();
  const unread: Tenant[] = [];
  const left: Tenant[] = [];
  const deadline = performance.now() + timeLimit;
  const isOver = () => signal?.aborted || performance.now() >= deadline;
  const add = (id: string, tenant: Tenant) => {
    const known = affected.get(id);
    if (known) known.push(tenant);
    else affected.set(id, [tenant]);
  };
  let read = 0;

  await forEachConcurrent(tenants, parallel, async (tenant) => {
    if (isOver()) {
      left.push(tenant);
      return;
    }
    try {
      const owner = { tenantId: tenant.id, timeoutMs: readTimeout };
      const { latest } = await configuration.read(clientsNamespace, clientsName, owner);
      read += 1;
      for (const id of clientEntries(latest?.configuration).keys()) if (ids.has(id)) add(id, tenant);
    } catch (error) {
      unread.push(tenant);
      if (unread.length <= loggedFailures)
        log.warn({ tenant: tenant.id, ...failureFields(error) }, 'clients of a tenant cannot be read');
    }
  });
  unread.push(...left);
  if (unread.length > 0) log.warn({ read, unread: unread.length }, 'clients of some tenants were not read');
  return { affected, unread, read };
}

/** Shuffles the tenants. If a run has too little time to read all of them, several runs together still read all. */
function inRandomOrder<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, rank: Math.random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}
