// Caches the result of an expensive read for a few seconds, and shares it between callers. Failures are not cached.
import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

export interface ShortCacheOptions<T> {
  /** Milliseconds after the begin of a read for which its result is reused. */
  freshFor: number;
  /** Maximum number of keys whose results are cached. */
  most: number;
  clock: Clock;
  read(key: string): Promise<T>;
}

/**
 * Creates the cache. Callers with the same key share one read while it runs, however long it takes: a second read would
 * take as long, and compete with the first one. A read must therefore have a time limit.
 */
export function createShortCache<T>({
  freshFor,
  most,
  clock,
  read,
}: ShortCacheOptions<T>): (key: string) => Promise<T> {
  const readings = new LRUCache<string, { begun: number; isRunning: boolean; reading: Promise<T> }>({ max: most });
  return (key) => {
    const now = clock().getTime();
    const present = readings.get(key);
    if (present && (present.isRunning || Math.abs(now - present.begun) < freshFor)) return present.reading;
    const entry = { begun: now, isRunning: true, reading: read(key) };
    readings.set(key, entry);
    entry.reading.then(
      () => {
        entry.isRunning = false;
      },
      () => {
        if (readings.peek(key) === entry) readings.delete(key);
      },
    );
    return entry.reading;
  };
}
