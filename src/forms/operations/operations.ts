// Collects the data of the operations page, for all tenants or for one. The administrator of a tenant sees only the
// data of that tenant. Core clients and the counts of runs are then left out, because both cover all tenants.
import { hostname } from 'node:os';
import type { Clock } from '../../service/clock.ts';
import type { Refusals, RefusedRequests } from '../../service/operations/refusals.ts';
import { createShortCache } from '../../service/short-cache.ts';
import type { Policy } from '../expiry/expiry.ts';
import type { RunHistory, RunRecord } from '../expiry/run-store.ts';
import type { Bounded, OperationsStore, Quarantined, Undelivered } from './store.ts';

export interface Operations {
  asOf: Date;
  isForAll: boolean;
  runs: RunRecord[];
  history: RunHistory | undefined;
  /**
   * In the view of all tenants, these figures come from the last run of the reconciler. A run does not count the
   * overdue drafts, so `drafts` is then null.
   */
  overdue: { drafts: Bounded | null; oldest: Date | null; deletions: Bounded | null };
  quarantine: Quarantined;
  outbox: Undelivered;
  /** Undefined in the view of all tenants. */
  storage: { bytes: number; limit: number; measured: Date | null } | undefined;
  limits: { pod: string; since: Date; refused: RefusedRequests[] };
}

export type ReadOperations = (tenantId: string | undefined) => Promise<Operations>;

export interface OperationsOptions {
  store: OperationsStore;
  /** Returns the last runs, newest first. */
  readRuns(count: number): Promise<RunRecord[]>;
  readHistory(): Promise<RunHistory | undefined>;
  /** Returns how long the forms of a definition are kept. Undefined if the definition cannot be used. */
  policyOf(key: { tenantId: string; definitionId: string }): Promise<Policy | undefined>;
  refusals: Pick<Refusals, 'since' | 'of'>;
  storageOf(tenantId: string): Promise<Operations['storage']>;
  clock: Clock;
}

const day = 86_400_000;
/**
 * A draft counts as overdue if its lock is overdue by more than this number of milliseconds. A shorter delay is no sign
 * of a fault, because the reconciler may run only every few hours.
 */
const lockGrace = day / 4;
const shownRuns = 10;
/** The cache key for the data of all tenants. */
const all = '';

/**
 * Returns a function that collects the data of the operations page. Calls within five seconds, or while the data are
 * being read, share one result for each tenant.
 */
export function createReadOperations(options: OperationsOptions): ReadOperations {
  const { store, policyOf, refusals, clock } = options;
  async function overdueOf(tenantId: string): Promise<Operations['overdue']> {
    const keys = (await store.definitions(tenantId)).map((definitionId) => ({ tenantId, definitionId }));
    const policies: Policy[] = [];
    // Definitions are read one after another, because the operations page must not compete with applicants' requests.
    for (const key of keys) {
      const policy = await policyOf(key);
      if (policy) policies.push(policy);
    }
    const about = { tenantId, policies, now: clock() };
    const drafts = await store.overdue('lock', { ...about, grace: lockGrace });
    return { drafts, oldest: drafts.oldest, deletions: await store.overdue('delete', { ...about, grace: day }) };
  }

  function overdueOfAll(history: RunHistory | undefined): Operations['overdue'] {
    const { oldestOverdue = null, overdueDeletions = null } = history ?? {};
    const deletions = overdueDeletions === null ? null : { count: overdueDeletions, isMinimum: false };
    return { drafts: null, oldest: oldestOverdue, deletions };
  }

  const cached = createShortCache({
    freshFor: 5_000,
    most: 1_000,
    clock,
    async read(key) {
      const tenantId = key === all ? undefined : key;
      const [runs, history, quarantine, outbox, storage] = await Promise.all([
        options.readRuns(shownRuns),
        options.readHistory(),
        store.quarantined(tenantId),
        store.undelivered(tenantId, clock()),
        tenantId === undefined ? undefined : options.storageOf(tenantId),
      ]);
      const overdue = tenantId === undefined ? overdueOfAll(history) : await overdueOf(tenantId);
      const isForAll = tenantId === undefined;
      return { asOf: clock(), isForAll, runs, history, overdue, quarantine, outbox, storage };
    },
  });

  return async (tenantId) => ({
    ...(await cached(tenantId ?? all)),
    limits: { pod: hostname(), since: refusals.since, refused: refusals.of(tenantId) },
  });
}
