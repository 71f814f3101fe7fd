// Caches responses of platform services, so that hot paths make no calls and short outages go unnoticed. A response
// that grants permission is served for at most 5 minutes. Without an earlier response, the failure is thrown.
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
  /** The same for undefined ("there is none"). */
  negative: number;
  /** A value younger than this is served while a new one is fetched; older, reads wait for the new one. */
  background: number;
  /** While the service fails, the last value is served until it is this old. */
  stale: number;
  /** The same for reads of values that grant permission. */
  permission: number;
  /** While the service fails, a key is fetched at most this often. So is a key whose value lacks what `find` seeks. */
  retry: number;
  /** For so long after a failure, reads do not wait for another fetch to fail. */
  failing: number;
}

const minutes = 60_000;

/** The times of decisions.md "Platform clients". */
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
  /** Most keys kept; the least recently used goes first. */
  maxEntries: number;
  metrics: Pick<PlatformMetrics, 'staleServes'>;
  log: Logger;
}

export interface ReadOptions {
  /** The value grants permission (roles, anonymousRead, targets …): never served when older than 5 minutes. */
  permission?: boolean | undefined;
}

export interface Cache<V> {
  /** The value of a key. If a new value equals the last one, the last object is kept, and what was compiled from it. */
  get(key: string, load: () => Promise<V>, options?: ReadOptions): Promise<V>;
  /**
   * Picks something out of the value of a key; when it is not there, fetches a newer value (at most every `retry`
   * milliseconds, so that a stream of random names cannot become a stream of calls) and picks again. Throws when the
   * value is not there and the service cannot be asked.
   */
  find<R>(key: string, load: () => Promise<V>, pick: (value: V) => R | undefined): Promise<R | undefined>;
  /** Forgets a key after a write. A response to a request before the write is not kept when it arrives. */
  invalidate(key: string): void;
}

interface Entry<V> {
  value: V;
  /** When the value was requested. */
  at: number;
  /** When the service was last asked for it, or failed to answer. */
  checkedAt: number;
  /** Set while the service fails. */
  failure: PlatformError | undefined;
}

export function createCache<V>({ clock, times, maxEntries, ...names }: CacheOptions): Cache<V> {
  const entries = new LRUCache<string, Entry<V>, () => Promise<V>>({
    max: maxEntries,
    // A write aborts the fetches of its key: those who wait for one get its result, the cache does not.
    ignoreFetchAbort: true,
    fetchMethod: (_key, known, { context }) => fetchEntry(context, known),
  });
  const reportStale = staleReporter(clock, names);
  const now = () => clock().getTime();
  /** Infinite if the clock was set back: a value of unknown age counts as too old. */
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

  // `fetch` is typed for methods that may return undefined; fetchEntry does not.
  const refresh = (key: string, load: () => Promise<V>, allowStale = false) =>
    entries.fetch(key, { context: load, forceRefresh: true, allowStale }) as Promise<Entry<V>>;

  const isFresh = ({ value, checkedAt, failure }: Entry<V>) =>
    since(checkedAt) < (failure ? times.retry : value === undefined ? times.negative : times.fresh);

  /** Whether to serve the entry while a new one is fetched. */
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

  /** Nearly every read finds one, so this path is short. */
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
    // Nested deeper than the stack allows.
    return value;
  }
}

/** Counts every read that is served stale and logs one warning a minute. */
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
