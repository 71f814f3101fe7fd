// Keeps the entries of a cache, and fetches their values. Concurrent fetches of a key share one call. An entry keeps
// its last value while the platform service fails.
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import { isOutage, type PlatformError } from './platform-error.ts';

export interface Entry<V> {
  value: V;
  /** The time at which the value was requested, in milliseconds since 1970. */
  at: number;
  /** The time at which the last successful call for the value began, or at which the last call failed. */
  checkedAt: number;
  /** The error of the last call, set while the platform service fails. */
  failure: PlatformError | undefined;
}

export interface EntriesOptions {
  /** Age in milliseconds up to which an entry keeps its value while the platform service fails. */
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
    // A write to a key aborts the running fetches of that key. Callers that wait for an aborted fetch still get its
    // result, but the result is not cached.
    ignoreFetchAbort: true,
    fetchMethod: (_key, known, { context }) => fetchEntry(context, known),
  });
}

function keepIdentity<V>(known: Entry<V> | undefined, value: V): V {
  try {
    return known && isDeepStrictEqual(known.value, value) ? known.value : value;
  } catch {
    // The comparison throws if the value is nested more deeply than the stack allows.
    return value;
  }
}
