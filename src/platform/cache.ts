// Caches responses of platform services, so that frequent reads make no calls and short outages go unnoticed. A
// response that grants permission is served for at most 5 minutes. If a call fails and no earlier response is cached,
// the read throws the failure.
import type { Clock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import { createEntries, type Entry, type Source } from './cache-entries.ts';
import { createCacheMisses } from './cache-misses.ts';
import type { DocumentBudget } from './document-budget.ts';
import type { MissBudget } from './miss-budget.ts';
import type { CacheReads, PlatformMetrics } from './platform-metrics.ts';

/** The times that determine when a cache serves and fetches values, in milliseconds. */
export interface CacheTimes {
  /** A value that is younger than this is served without a call. */
  fresh: number;
  /** Like `fresh`, but for the value undefined, which stands for a resource that does not exist. */
  negative: number;
  /** A value younger than this is served while a new one is fetched. If it is older, reads wait for the new one. */
  background: number;
  /** While the platform service fails, the last value is served up to this age. */
  stale: number;
  /** Like `stale`, but for reads of values that grant permission. */
  permission: number;
  /** Minimum time between two fetches of a key while the platform service fails. */
  retry: number;
  /** Minimum time between two fetches of a key whose value lacks the item that callers look for. */
  lack: number;
  /** Time after a failure during which reads do not wait for another fetch. */
  failing: number;
}

const minutes = 60_000;
/** Makes a lookup return an entry of any age. */
const anyAge = { allowStale: true };

/** Returns the times that docs/configuration.md describes under "Cached responses". */
export function cacheTimes(fresh = minutes): CacheTimes {
  return {
    fresh,
    negative: Math.min(10_000, fresh),
    background: Math.max(5 * minutes, fresh),
    stale: 24 * 60 * minutes,
    permission: 5 * minutes,
    retry: 5_000,
    lack: 1_000,
    failing: minutes,
  };
}

export interface CacheOptions {
  /** Name of the service, for logs and metrics. */
  service: string;
  clock: Clock;
  times: CacheTimes;
  /** Maximum number of keys. The least recently used key is removed first. */
  maxEntries: number;
  metrics: Pick<PlatformMetrics, 'staleServes' | 'cacheReads'>;
  /** Limits the fetches that callers can cause with names that do not exist. */
  budget: MissBudget;
  /** Limits the memory of the values, and how much of them may be fetched for a tenant. By default, nothing does. */
  documents?: DocumentBudget | undefined;
  log: Logger;
}

export interface ReadOptions<V> {
  /**
   * True if the value grants permission (roles, anonymousRead, targets …). A value that is older than 5 minutes is then
   * never served.
   */
  permission?: boolean | undefined;
  /**
   * Returns true if the value lacks the item that the caller looks for. A cached value is then fetched again within the
   * budget, so that new items are found: at most once a second, and less often if it is large. The read throws if the
   * fetch fails.
   */
  lacks?: ((value: V) => boolean) | undefined;
  /**
   * True if callers choose the key. Callers can invent any number of keys, so each fetch of a key without a known value
   * is also charged to the budget. The read throws Problem `busy` if the budget is used up.
   */
  isChosen?: boolean | undefined;
}

export interface Cache<V> {
  /**
   * Returns the value of a key. If a new value equals the cached one, the cached object is returned again, so that
   * results derived from it stay valid. `share` is the tenant whose shares of the budgets are charged. By default, the
   * whole service has one share of the miss budget, and the document budget does not apply. The read throws
   * PlatformError `over-budget` if the tenant's share of the document budget is used up and no value is cached.
   */
  get(key: string, load: () => Promise<V>, options?: ReadOptions<V>, share?: string): Promise<V>;
  /** Returns the cached value if it is fresh, otherwise undefined. Makes no call, and allocates nothing. */
  peek(key: string, options?: Pick<ReadOptions<V>, 'permission'>): V | undefined;
  /**
   * Returns the item that `pick` selects from the value of a key. If the cached value does not contain the item, the
   * value is fetched again; see `lacks`. Pass the tenant that has chosen the key, if any; see `isChosen`.
   */
  find<R>(
    key: string,
    load: () => Promise<V>,
    pick: (value: V) => R | undefined,
    tenant?: string,
  ): Promise<R | undefined>;
  /** Removes a key after a write. The response to a request that was sent before the write is then not cached. */
  invalidate(key: string): void;
}

export function createCache<V>({ clock, times, maxEntries, budget, documents, ...reporting }: CacheOptions): Cache<V> {
  const now = () => clock().getTime();
  const { since, limitOf, isFresh, mayServe } = createAges(now, times);
  const entries = createEntries<V>({ maxEntries, documents, stale: times.stale, now, since });
  const reads = reporting.metrics.cacheReads(reporting.service);
  const misses = createCacheMisses<Entry<V>>({ ...reporting, reads, clock, budget, maxEntries, interval: times.lack });
  const report = failureReporter(clock, reporting);
  /** Keys whose first fetch is running and was charged. Reads that wait for the same fetch are not charged. */
  const charged = new Set<string>();

  // The type of `fetch` allows undefined, which fetchEntry never returns.
  const refresh = (key: string, context: Source<V>, allowStale = false) =>
    entries.fetch(key, { context, forceRefresh: true, allowStale }) as Promise<Entry<V>>;

  async function read(key: string, source: Source<V>, limit: number): Promise<Entry<V>> {
    const known = entries.get(key, anyAge);
    const usable = known && since(known.at) < limit ? known : undefined;
    let outcome: keyof CacheReads = 'miss';
    try {
      const entry = usable && isFresh(usable) ? usable : await refresh(key, source, usable && mayServe(usable));
      if (entry === usable) outcome = 'hit';
      if (!entry.failure) return entry;
      if (since(entry.at) >= limit) throw entry.failure;
      outcome = report(entry.failure);
      return entry;
    } finally {
      reads[outcome] += 1;
    }
  }

  /** Nearly every read ends here, so this function is kept short. */
  const freshEntry = (key: string, limit: number) => {
    const known = entries.get(key, anyAge);
    return known && !known.failure && isFresh(known) && since(known.at) < limit ? known : undefined;
  };

  async function readChosen(key: string, source: Source<V>, limit: number) {
    const known = entries.get(key, anyAge);
    if (known?.value !== undefined || charged.has(key)) return read(key, source, limit);
    misses.charge(source.share ?? reporting.service);
    charged.add(key);
    return read(key, source, limit).finally(() => charged.delete(key));
  }

  async function readAgain(key: string, source: Source<V>, known: Entry<V>) {
    if (known.failure && isFresh(known)) return known;
    return misses.fetch(key, known, source.share ?? reporting.service, () => refresh(key, source));
  }

  async function get(key: string, load: () => Promise<V>, options?: ReadOptions<V>, share?: string): Promise<V> {
    const limit = limitOf(options);
    const fresh = freshEntry(key, limit);
    if (fresh) reads.hit += 1;
    if (fresh && !options?.lacks?.(fresh.value)) return fresh.value;
    const asked = now();
    const source = { load, share };
    const entry = fresh ?? (await (options?.isChosen ? readChosen : read)(key, source, limit));
    if (!options?.lacks?.(entry.value) || (!fresh && entry.at >= asked)) return entry.value;
    const later = await readAgain(key, source, entry);
    if (later.failure && options.lacks(later.value)) throw later.failure;
    return later.value;
  }

  const peek: Cache<V>['peek'] = (key, options) => {
    const fresh = freshEntry(key, limitOf(options));
    if (fresh) reads.hit += 1;
    return fresh?.value;
  };
  return { get, peek, find: createFind(get), invalidate: (key) => entries.delete(key) };
}

function createFind<V>(get: Cache<V>['get']): Cache<V>['find'] {
  return async <R>(key: string, load: () => Promise<V>, pick: (value: V) => R | undefined, tenant?: string) => {
    let picked: R | undefined;
    // Keeps the picked item, because the value may be a long list that should be searched only once.
    const lacks = (value: V) => {
      picked = pick(value);
      return picked === undefined;
    };
    const value = await get(key, load, { lacks, isChosen: tenant !== undefined }, tenant);
    return picked ?? pick(value);
  };
}

function createAges(now: () => number, times: CacheTimes) {
  /** Returns the time since `time`. If the clock was set back, the age is unknown, and the result is infinity. */
  const since = (time: number) => {
    const age = now() - time;
    return age < 0 ? Number.POSITIVE_INFINITY : age;
  };
  return {
    since,
    /** Returns the age up to which a value may be served. */
    limitOf: (options?: { permission?: boolean | undefined }) => (options?.permission ? times.permission : times.stale),
    isFresh: ({ value, checkedAt, failure }: Entry<unknown>) =>
      since(checkedAt) < (failure ? times.retry : value === undefined ? times.negative : times.fresh),
    /** True if the entry may be served while a new one is fetched. */
    mayServe: ({ value, checkedAt, failure }: Entry<unknown>) =>
      since(checkedAt) < (failure ? times.failing : value === undefined ? 0 : times.background),
  };
}

/**
 * Returns a function that returns the outcome of a read that got an old value. If the reason is that the platform
 * service fails, the function also counts the read, and logs at most one warning a minute.
 */
function failureReporter(clock: Clock, { service, metrics, log }: Pick<CacheOptions, 'service' | 'metrics' | 'log'>) {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (failure: Entry<unknown>['failure']): 'stale' | 'refused' => {
    if (failure?.kind === 'over-budget' || failure?.kind === 'busy') return 'refused';
    metrics.staleServes.inc({ dependency: service });
    const now = clock().getTime();
    if (now - warnedAt >= minutes) {
      warnedAt = now;
      log.warn({ dependency: service }, 'platform service fails; its last responses are served');
    }
    return 'stale';
  };
}
