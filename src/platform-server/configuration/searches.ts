// Limits the lists with criteria, because such a list reads every configuration of the namespace, or every revision of
// the configuration.
import { createSearchQueue } from '../../service/limits/search-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Criteria } from './configuration.ts';
import { criteriaSql } from './criteria-sql.ts';
import type { ConfigurationStore } from './store.ts';

/** Returns the store with a fair queue before these lists. */
export function limitSearches(store: ConfigurationStore, metrics: Pick<Metrics, 'queueRefusals'>): ConfigurationStore {
  const detail = 'Other lists with criteria of this tenant are still running. Try again.';
  const searches = createSearchQueue({ name: 'criteria', detail, metrics });
  const inTurn = <T>(tenant: string, work: () => Promise<T>) => searches.run({ tenant, member: '' }, work);
  return {
    ...store,
    list(scope, namespace, options) {
      const list = () => store.list(scope, namespace, options);
      return filters(options.criteria) ? inTurn(scope, list) : list();
    },
    revisions(key, options) {
      const list = () => store.revisions(key, options);
      return filters(options.criteria) ? inTurn(key.scope, list) : list();
    },
  };
}

/** False for criteria such as `{}`: their list costs no more than one without criteria. */
const filters = (criteria: Criteria | undefined) => criteriaSql(criteria, [], 'name', 'revision') !== '';
