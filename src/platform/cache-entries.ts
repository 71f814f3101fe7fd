// Keeps the entries of a cache, and fetches their values. Concurrent fetches of a key share one call. While the service
// fails, an entry keeps its last value.
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import { isOutage, type PlatformError } from './platform-error.ts';

export interface Entry<V> {
  value: V;
  /** When the value was requested. */
  at: number;
  /** When the last successful call for the value began, or when the last call failed. */
  checkedAt: number;
  /** Set while the service fails. */
  failure: PlatformError | undefined;
}

export interface EntriesOptions {
  /** Age in milliseconds up to which a value is kept while the service fails. */
  stale: number;
  maxEntries: number;
  now(): number;
  since(time: number): number;
}

export function createEntries<V>({ maxEntries, stale, now, since }: EntriesOptions) {
  async function fetchEntry(load: () => Promise<V>, known: Entry<V> | undefined): Promise<Entry<V>> {
    const at = now();
    try {
      const value = await load();
      return { value: keepIdentity(known, value), at, checkedAt: at, failure: undefined };
    } catch (error) {
      if (!known || !isOutage(error) || since(known.at) >= stale) throw error;
      return { ...known, checkedAt: now(), failure: error };
    }
  }
  return new LRUCache<string, Entry<V>, () => Promise<V>>({
    max: maxEntries,
    // A write aborts the running fetches of its key. Callers that wait for such a fetch get the result, but it is not
    // cached.
    ignoreFetchAbort: true,
    fetchMethod: (_key, known, { context }) => fetchEntry(context, known),
  });
}

function keepIdentity<V>(known: Entry<V> | undefined, value: V): V {
  try {
    return known && isDeepStrictEqual(known.value, value) ? known.value : value;
  } catch {
    // The value is nested more deeply than the stack allows.
    return value;
  }
}
