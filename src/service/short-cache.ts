// Shares an expensive reading between callers for a few seconds. Failures are not kept.
import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

export interface ShortCacheOptions<T> {
  /** Milliseconds for which a reading is reused. */
  freshFor: number;
  /** Maximum number of keys whose readings are kept. */
  most: number;
  clock: Clock;
  read(key: string): Promise<T>;
}

/** Concurrent callers of a key wait for one reading. */
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
