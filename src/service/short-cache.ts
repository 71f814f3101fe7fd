// Caches the result of an expensive read for a few seconds, and shares it between callers. Failures are not cached.
import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

export interface ShortCacheOptions<T> {
  /** Milliseconds for which a result is reused. */
  freshFor: number;
  /** Maximum number of keys whose results are cached. */
  most: number;
  clock: Clock;
  read(key: string): Promise<T>;
}

/** Creates the cache. Concurrent callers with the same key share one read. */
export function createShortCache<T>({
  freshFor,
  most,
  clock,
  read,
}: ShortCacheOptions<T>): (key: string) => Promise<T> {
  const readings = new LRUCache<string, { begun: number; reading: Promise<T> }>({ max: most });
  return (key) => {
    const now = clock().getTime();
    const present = readings.get(key);
    if (present && Math.abs(now - present.begun) < freshFor) return present.reading;
    const entry = { begun: now, reading: read(key) };
    readings.set(key, entry);
    entry.reading.catch(() => {
      if (readings.peek(key) === entry) readings.delete(key);
    });
    return entry.reading;
  };
}
