// Keeps answers of platform services for a while, so that hot paths make no calls and outages are bridged. It refuses
// to stretch an answer that grants permission beyond minutes, and to invent: without any answer, the failure is thrown.
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import { isOutage } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

/** Times in milliseconds. */
export interface CacheTimes {
  /** An answer younger than this is served as it is. */
  fresh: number;
  /** An answer younger than this is served while a new one is fetched; beyond it, reads wait for the new one. */
  background: number;
  /** While the service fails, the last answer serves until it is this old. */
  stale: number;
  /** The same for reads of what grants permission. */
  permission: number;
  /** "There is none" (undefined) is believed for so long, and never during an outage. */
  negative: number;
  /** Background fetches of a failing key, and reloads on a miss, start at most this often. */
  retry: number;
  /** So long after a failure, old answers are served without waiting for another failure. */
  failing: number;
}

const minutes = 60_000;

/** The times of decisions.md "Platform clients". */
export function cacheTimes(fresh = minutes): CacheTimes {
  return {
    fresh,
    background: Math.max(5 * minutes, fresh),
    stale: 24 * 60 * minutes,
    permission: 5 * minutes,
    negative: Math.min(10_000, fresh),
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

export interface Cached<V> {
  readonly value: V;
  /** When the answer was asked for, in milliseconds since the epoch. */
  readonly at: number;
  /** True when the service fails and this is what it last said. */
  readonly stale: boolean;
}

export interface ReadOptions {
  /** The value grants permission (roles, anonymousRead, targets …): never served when older than 5 minutes. */
  permission?: boolean | undefined;
}

export interface Cache<V> {
  /** The value of a key. Equal answers keep the identity of the first, so that what was compiled from it stays valid. */
  get(key: string, load: () => Promise<V>, options?: ReadOptions): Promise<Cached<V>>;
  /**
   * Picks something out of the value of a key; when it is not there, fetches a newer value (at most every `retry`
   * milliseconds, so that a stream of random names cannot become a stream of calls) and picks again. Throws when the
   * value is not there and the service cannot be asked.
   */
  find<R>(key: string, load: () => Promise<V>, pick: (value: V) => R | undefined): Promise<R | undefined>;
  /** Forgets a key after a write. What was asked for before the write is not kept when it arrives. */
  invalidate(key: string): void;
}

interface Entry<V> {
  value: V;
  at: number;
  freshFor: number;
  /** Made once, so that a cached read allocates no promise. */
  answer: Promise<Cached<V>>;
  staleAnswer: Promise<Cached<V>>;
  attemptedAt: number;
  failedAt: number;
  failure: unknown;
}

export function createCache<V>(options: CacheOptions): Cache<V> {
  const { clock, times } = options;
  const entries = new LRUCache<string, Entry<V>>({ max: options.maxEntries });
  const { refresh, forget } = createRefresher(entries, clock, times);
  const reportStale = staleReporter(options);

  function serveStale(entry: Entry<V>): Promise<Cached<V>> {
    reportStale();
    return entry.staleAnswer;
  }

  async function fetchOrServeStale(key: string, load: () => Promise<V>, entry: Entry<V>, limit: number) {
    try {
      return await refresh(key, load);
    } catch (error) {
      if (!isOutage(error) || ageOf(entry, clock) >= limit) throw error;
      return serveStale(entry);
    }
  }

  function get(key: string, load: () => Promise<V>, read?: ReadOptions): Promise<Cached<V>> {
    const entry = entries.get(key);
    if (!entry) return refresh(key, load);
    const age = ageOf(entry, clock);
    const limit = read?.permission ? times.permission : times.stale;
    if (age < entry.freshFor && age < limit) return entry.answer;
    if (entry.value === undefined || age >= limit) return refresh(key, load);
    const now = entry.at + age;
    const failing = now - entry.failedAt < times.failing;
    if (age >= times.background && !failing) return fetchOrServeStale(key, load, entry, limit);
    if (!failing || now - entry.attemptedAt >= times.retry) refresh(key, load).catch(() => undefined);
    return failing ? serveStale(entry) : entry.answer;
  }

  async function find<R>(key: string, load: () => Promise<V>, pick: (value: V) => R | undefined) {
    const { value, at } = await get(key, load);
    const picked = pick(value);
    const now = clock().getTime();
    if (picked !== undefined || Math.abs(now - at) < times.retry) return picked;
    const entry = entries.get(key);
    if (entry && now - entry.failedAt < times.retry) throw entry.failure;
    return pick((await refresh(key, load)).value);
  }

  return { get, find, invalidate: forget };
}

/** Fetches into the entries: one fetch per key at a time, and everybody who waits shares it. */
function createRefresher<V>(entries: LRUCache<string, Entry<V>>, clock: Clock, times: CacheTimes) {
  const flights = new Map<string, Promise<Cached<V>>>();

  function refresh(key: string, load: () => Promise<V>): Promise<Cached<V>> {
    const running = flights.get(key);
    if (running) return running;
    const at = clock().getTime();
    const known = entries.get(key);
    if (known) known.attemptedAt = at;
    const isCurrent = () => flights.get(key) === flight;
    const keep = (value: V) => {
      const entry = createEntry(keepIdentity(known, value), at, times);
      if (isCurrent()) entries.set(key, entry);
      return entry.answer;
    };
    const noteFailure = (error: unknown): never => {
      const entry = isCurrent() ? entries.get(key) : undefined;
      if (entry && isOutage(error)) Object.assign(entry, { failedAt: clock().getTime(), failure: error });
      else if (entry) entries.delete(key);
      throw error;
    };
    const land = () => {
      if (isCurrent()) flights.delete(key);
    };
    const flight: Promise<Cached<V>> = Promise.resolve().then(load).then(keep, noteFailure).finally(land);
    flights.set(key, flight);
    return flight;
  }

  function forget(key: string): void {
    entries.delete(key);
    flights.delete(key);
  }

  return { refresh, forget };
}

/** Infinite when the clock has gone back: an age that cannot be known is too old. */
function ageOf(entry: { at: number }, clock: Clock): number {
  const age = clock().getTime() - entry.at;
  return age < 0 ? Number.POSITIVE_INFINITY : age;
}

function createEntry<V>(value: V, at: number, times: CacheTimes): Entry<V> {
  return {
    value,
    at,
    freshFor: value === undefined ? times.negative : times.fresh,
    answer: Promise.resolve({ value, at, stale: false }),
    staleAnswer: Promise.resolve({ value, at, stale: true }),
    attemptedAt: at,
    failedAt: Number.NEGATIVE_INFINITY,
    failure: undefined,
  };
}

function keepIdentity<V>(known: Entry<V> | undefined, value: V): V {
  try {
    return known && isDeepStrictEqual(known.value, value) ? known.value : value;
  } catch {
    // Nested beyond the stack: take the new one.
    return value;
  }
}

/** Counts every stale serve and warns of them once a minute. */
function staleReporter({ service, clock, metrics, log }: CacheOptions): () => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return () => {
    metrics.staleServes.inc({ service });
    const now = clock().getTime();
    if (now - warnedAt < minutes) return;
    warnedAt = now;
    log.warn({ dependency: service }, 'the service fails; its last answers are served');
  };
}
