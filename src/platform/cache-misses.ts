// Fetches a cached value again if it lacks the item that a caller looks for. Each key is fetched at most once a second,
// and less often if its value is large. Each fetch is charged to the miss budget. Concurrent fetches of a key share one
// call.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../service/clock.ts';
import { Problem } from '../service/http/problem.ts';
import type { MissBudget } from './miss-budget.ts';
import type { CacheReads } from './platform-metrics.ts';

export interface CacheMissesOptions {
  service: string;
  clock: Clock;
  budget: MissBudget;
  reads: Pick<CacheReads, 'refused'>;
  maxEntries: number;
  /** Minimum milliseconds between two fetches of a key whose value is small. */
  interval: number;
}

/**
 * Bytes of a large value that are fetched again in each millisecond on average: about one mebibyte a second, a quarter
 * of a tenant's document budget. Without this limit, callers without an account could use up the whole budget.
 */
const bytesPerMs = 1_048;

/** `E` is the type of the cache's entries. */
export function createCacheMisses<E extends { bytes: number }>(options: CacheMissesOptions) {
  const { service, clock, budget, reads, maxEntries, interval } = options;
  const fetchedAt = new LRUCache<string, number>({ max: maxEntries });
  const running = new Map<string, Promise<E>>();

  function isDue(key: string, { bytes }: E): boolean {
    const last = fetchedAt.get(key);
    // The difference is negative if the clock was set back.
    return last === undefined || Math.abs(clock().getTime() - last) >= Math.max(interval, bytes / bytesPerMs);
  }

  return {
    /**
     * Charges the budget for the fetch of a key that the caller chose and that has no known value. Throws Problem
     * `busy` if the budget is used up.
     */
    charge(share: string): void {
      if (budget.take(service, share)) return;
      reads.refused += 1;
      const headers = { 'Retry-After': '1' };
      throw new Problem('busy', 'Too many names that do not exist are being looked up. Try again.', { headers });
    },

    /**
     * Returns the entry that `fetch` returns. Returns `known` instead if it is too early to fetch the key again, or if
     * the budget is used up.
     */
    async fetch(key: string, known: E, share: string, fetch: () => Promise<E>): Promise<E> {
      const joined = running.get(key);
      if (joined) return joined;
      if (!isDue(key, known) || !budget.take(service, share)) return known;
      fetchedAt.set(key, clock().getTime());
      const fetched = fetch().finally(() => running.delete(key));
      running.set(key, fetched);
      return fetched;
    },
  };
}
