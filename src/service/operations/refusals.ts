// Counts the requests that this process refused because a limit was reached (429), or because it was busy or lacked a
// dependency (503). A page shows administrators the recent refusals. Metrics have no label for the tenant, but these
// counts are kept by tenant. The number of counts is limited.
import { LRUCache } from 'lru-cache';

export interface RefusedRequests {
  method: string;
  /** The pattern of the route. */
  route: string;
  status: number;
  /**
   * Number of refusals since the process started. The count is lost if entries with more recent refusals replace this
   * entry.
   */
  count: number;
  last: Date;
}

export interface Refusals {
  since: Date;
  note(request: { method: string; route: string; status: number; tenant: string | undefined }): void;
  /**
   * Returns the latest refusals first. If `tenant` is undefined, includes all tenants, and callers without a tenant.
   */
  of(tenant: string | undefined): RefusedRequests[];
}

type Counts = LRUCache<string, RefusedRequests>;

/** Maximum number of kinds of requests that are remembered for one tenant, and maximum number of tenants. */
const most = { kinds: 50, tenants: 1_000 };

export const isRefusal = (status: number): boolean => status === 429 || status === 503;

export function createRefusals(clock: () => Date): Refusals {
  const newCounts = (): Counts => new LRUCache({ max: most.kinds });
  const all = newCounts();
  const byTenant = new LRUCache<string, Counts>({ max: most.tenants });

  function count(counts: Counts, { method, route, status }: Omit<RefusedRequests, 'count' | 'last'>): void {
    const key = `${status} ${method} ${route}`;
    counts.set(key, { method, route, status, count: (counts.get(key)?.count ?? 0) + 1, last: clock() });
  }

  return {
    since: clock(),
    note({ tenant, ...request }) {
      count(all, request);
      if (tenant === undefined) return;
      const own = byTenant.get(tenant) ?? newCounts();
      byTenant.set(tenant, own);
      count(own, request);
    },
    of(tenant) {
      const counts = tenant === undefined ? all : byTenant.peek(tenant);
      return [...(counts?.values() ?? [])].sort((a, b) => b.last.getTime() - a.last.getTime());
    },
  };
}
