// Limits the lists whose criteria compare fields. Such a list reads every value of the namespace or configuration, so it
// holds a connection for much longer than any other request.
import { createFairQueue } from '../../service/limits/fair-queue.ts';
import { comparesFields } from './criteria-sql.ts';
import type { ConfigurationStore } from './store.ts';

/** Returns the store with a fair queue before these lists. */
export function limitSearches(store: ConfigurationStore): ConfigurationStore {
  const searches = createFairQueue({
    slots: { total: 4, perTenant: 1, perMember: 1 },
    waiting: { total: 40, perTenant: 4, perMember: 4 },
    waitMs: 10_000,
    detail: 'Other lists with criteria of this tenant are still running. Try again.',
    retryAfterSeconds: 5,
  });
  async function inTurn<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    const release = await searches.take({ tenant, member: tenant });
    try {
      return await work();
    } finally {
      release();
    }
  }
  return {
    ...store,
    list(scope, namespace, options) {
      const list = () => store.list(scope, namespace, options);
      return comparesFields(options.criteria) ? inTurn(scope, list) : list();
    },
    revisions(key, options) {
      const list = () => store.revisions(key, options);
      return comparesFields(options.criteria) ? inTurn(key.scope, list) : list();
    },
  };
}
