// Keeps the entries of a cache, and fetches their values. Concurrent fetches of a key share one call. An entry keeps
// its last value while the platform service fails.
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import { type DocumentBudget, memoryOf } from './document-budget.ts';
import { isPlatformOutage, type PlatformError } from './platform-error.ts';

export interface Entry<V> {
  value: V;
  /** The time at which the value was requested, in milliseconds since 1970. */
  at: number;
  /** The time at which the last successful call for the value began, or at which the last call failed. */
  checkedAt: number;
  /** The error of the last call, set while the platform service fails, or while the document budget is used up. */
  failure: PlatformError | undefined;
  /** Estimated memory of the value; 0 if there is no document budget. */
  bytes: number;
}

/** How to fetch a value. `share` is the tenant whose share of the document budget is charged. */
export interface Source<V> {
  load: () => Promise<V>;
  share: string | undefined;
}

export interface EntriesOptions {
  /** Age in milliseconds up to which an entry keeps its value while the platform service fails. */
  stale: number;
  maxEntries: number;
  documents: DocumentBudget | undefined;
  now(): number;
  since(time: number): number;
}

export function createEntries<V>({ maxEntries, documents, stale, now, since }: EntriesOptions) {
  const sizeOf = (value: V, known: Entry<V> | undefined) =>
    known && known.value === value ? known.bytes : memoryOf(value);

  async function fetchEntry({ load, share }: Source<V>, known: Entry<V> | undefined): Promise<Entry<V>> {
    const at = now();
    try {
      const read = async () => keepIdentity(known, await load());
      const { value, bytes } = documents
        ? await documents.fetch(share, read, (found) => sizeOf(found, known))
        : { value: await read(), bytes: 0 };
      return { value, at, checkedAt: at, failure: undefined, bytes };
    } catch (error) {
      if (!known || !isPlatformOutage(error) || since(known.at) >= stale) throw error;
      return { ...known, checkedAt: now(), failure: error };
    }
  }
  return new LRUCache<string, Entry<V>, Source<V>>({
    max: maxEntries,
    ...(documents && { maxSize: documents.memory, sizeCalculation: ({ bytes }: Entry<V>) => bytes }),
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
