// Caches responses of platform services, so that hot paths make no calls and short outages go unnoticed. A response
// that grants permission is served for at most 5 minutes. If a call fails and no earlier response is cached, the
// failure is thrown.
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import { isOutage, type PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

/** Times in milliseconds. */
export interface CacheTimes {
  /** A value younger than this is served without a call. */
  fresh: number;
  /** As `fresh`, for the value undefined, which means that the resource does not exist. */
  negative: number;
  /**
   * A value younger than this is served while a new value is fetched. For an older value, reads wait for the new one.
   */
  background: number;
  /** While the service fails, the last value is served until it is this old. */
  stale: number;
  /** As `stale`, for reads of values that grant permission. */
  permission: number;
  /**
   * Minimum time between two fetches of a key while the service fails, or while `find` does not find its item in the
   * value.
   */
  retry: number;
  /** Time after a failure in which reads do not wait for another fetch. */
  failing: number;
}

const minutes = 60_000;

/** The times that decisions.md specifies under "Platform clients". */
export function cacheTimes(fresh = minutes): CacheTimes {
  return {
    fresh,
    negative: Math.min(10_000, fresh),
    background: Math.max(5 * minutes, fresh),
    stale: 24 * 60 * minutes,
    permission: 5 * minutes,
    retry: 5_000,
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
  metrics: Pick<PlatformMetrics, 'staleServes'>;
  log: Logger;
}

export interface ReadOptions {
  /**
   * True if the value grants permission (roles, anonymousRead, targets …). It is then never served when older than 5
   * minutes.
   */
  permission?: boolean | undefined;
}

export interface Cache<V> {
  /**
   * Returns the value of a key. If a new value equals the cached one, the cached object stays, so that results compiled
   * from the object stay valid.
   */
  get(key: string, load: () => Promise<V>, options?: ReadOptions): Promise<V>;
  /**
   * Returns the item that `pick` selects from the value of a key. If the value lacks the item, fetches a newer value
   * and picks again. Such fetches happen at most every `retry` milliseconds, so that random names cannot cause a flood
   * of calls. Throws if the value lacks the item and the service cannot be reached.
   */
  find<R>(key: string, load: () => Promise<V>, pick: (value: V) => R | undefined): Promise<R | undefined>;
  /** Removes a key after a write. A response to a request that was sent before the write is not cached. */
  invalidate(key: string): void;
}

interface Entry<V> {
  value: V;
  /** When the value was requested. */
  at: number;
  /** When the service was last called for the value, or last failed. */
  checkedAt: number;
  /** Set while the service fails. */
  failure: PlatformError | undefined;
}

export function createCache<V>({ clock, times, maxEntries, ...names }: CacheOptions): Cache<V> {
  const entries = new LRUCache<string, Entry<V>, () => Promise<V>>({
    max: maxEntries,
    // A write aborts the running fetches of its key. Callers that wait for such a fetch get the result, but it is not
    // cached.
    ignoreFetchAbort: true,
    fetchMethod: (_key, known, { context }) => fetchEntry(context, known),
  });
  const reportStale = staleReporter(clock, names);
  const now = () => clock().getTime();
  /**
   * Returns the time since `time`, or infinity if the clock was set back, because the age of the value is then unknown.
   */
  const since = (time: number) => {
    const age = now() - time;
    return age < 0 ? Number.POSITIVE_INFINITY : age;
  };

  async function fetchEntry(load: () => Promise<V>, known: Entry<V> | undefined): Promise<Entry<V>> {
    const at = now();
    try {
      const value = await load();
      return { value: keepIdentity(known, value), at, checkedAt: at, failure: undefined };
    } catch (error) {
      if (!known || !isOutage(error) || since(known.at) >= times.stale) throw error;
      return { ...known, checkedAt: now(), failure: error };
    }
  }

  // The type of `fetch` allows undefined, which fetchEntry never returns.
  const refresh = (key: string, load: () => Promise<V>, allowStale = false) =>
    entries.fetch(key, { context: load, forceRefresh: true, allowStale }) as Promise<Entry<V>>;

  const isFresh = ({ value, checkedAt, failure }: Entry<V>) =>
    since(checkedAt) < (failure ? times.retry : value === undefined ? times.negative : times.fresh);

  /** True if the entry may be served while a new one is fetched. */
  const mayServe = ({ value, checkedAt, failure }: Entry<V>) =>
    since(checkedAt) < (failure ? times.failing : value === undefined ? 0 : times.background);

  async function read(key: string, load: () => Promise<V>, limit: number): Promise<Entry<V>> {
    const known = entries.get(key, { allowStale: true });
    const usable = known && since(known.at) < limit ? known : undefined;
    const entry = usable && isFresh(usable) ? usable : await refresh(key, load, usable && mayServe(usable));
    if (!entry.failure) return entry;
    if (since(entry.at) >= limit) throw entry.failure;
    reportStale();
    return entry;
  }

  /** Nearly every read returns here, so this path is kept short. */
  const freshEntry = (key: string, limit: number) => {
    const known = entries.get(key, { allowStale: true });
    return known && !known.failure && isFresh(known) && since(known.at) < limit ? known : undefined;
  };

  return {
    async get(key, load, options) {
      const limit = options?.permission ? times.permission : times.stale;
      const entry = freshEntry(key, limit) ?? (await read(key, load, limit));
      return entry.value;
    },
    async find(key, load, pick) {
      const known = freshEntry(key, times.stale) ?? (await read(key, load, times.stale));
      const picked = pick(known.value);
      if (picked !== undefined) return picked;
      const entry = Math.abs(now() - known.checkedAt) < times.retry ? known : await refresh(key, load);
      if (entry.failure) throw entry.failure;
      return pick(entry.value);
    },
    invalidate: (key) => entries.delete(key),
  };
}

function keepIdentity<V>(known: Entry<V> | undefined, value: V): V {
  try {
    return known && isDeepStrictEqual(known.value, value) ? known.value : value;
  } catch {
    // The value is nested more deeply than the stack allows.
    return value;
  }
}

/** Returns a function that counts a stale read and logs at most one warning a minute. */
function staleReporter(clock: Clock, { service, metrics, log }: Pick<CacheOptions, 'service' | 'metrics' | 'log'>) {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return () => {
    metrics.staleServes.inc({ service });
    const now = clock().getTime();
    if (now - warnedAt < minutes) return;
    warnedAt = now;
    log.warn({ dependency: service }, 'platform service fails; its last responses are served');
  };
}
