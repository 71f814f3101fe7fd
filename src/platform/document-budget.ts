// Limits what the documents of tenants cost a process (decision 0090). A tenant chooses their number and size. Cached
// documents take memory, and the main thread parses each document that is fetched.
import type { Clock } from '../service/clock.ts';
import { FairQueue } from '../service/limits/fair-queue.ts';
import { PlatformError } from './platform-error.ts';
import { createTokenBuckets, type TokenBuckets } from './token-buckets.ts';

/** A fetched document and its estimated memory in bytes. */
export interface Fetched<V> {
  value: V;
  bytes: number;
}

export interface DocumentBudget {
  /** Maximum estimated memory of all documents of a cache, in bytes. The least recently used ones are removed first. */
  memory: number;
  /**
   * Fetches a document for the cache with `load`, and charges it to the tenant `share`. Throws PlatformError
   * `over-budget` if the documents of this tenant that were fetched lately were too many or too large, or if too many
   * fetches of this tenant wait. Without `share`, the document belongs to the platform, and is fetched at once.
   * `sizeOf` returns the estimated memory of the document.
   */
  fetch<V>(share: string | undefined, load: () => Promise<V>, sizeOf: (value: V) => number): Promise<Fetched<V>>;
  /** Like `fetch`, for documents that are not cached. */
  read<V>(share: string | undefined, load: () => Promise<V>): Promise<V>;
}

const mib = 1_048_576;
/**
 * Estimated memory of the documents that a cache keeps, and that it fetches for a tenant in one burst. Also the maximum
 * for one response of a platform service.
 */
const documentMemory = 64 * mib;
/** The total is five times a share, as for unknown names. */
const ratesOf = (perSecond: number, burst: number) => ({
  share: { perSecond, burst },
  total: { perSecond: 5 * perSecond, burst: 5 * burst },
});
const rates = {
  cached: ratesOf(4 * mib, documentMemory),
  // The rate is higher, because these documents only take time to parse, and drive none out of the cache. It allows an
  // administrator three changes a second of a register of 1 MiB.
  uncached: ratesOf(16 * mib, 2 * documentMemory),
};
/**
 * The size of a document is known only after the fetch, so the documents of the running fetches may exceed the budget.
 * There are therefore only a few of them.
 */
const fetches = {
  slots: { total: 20, perTenant: 2, perMember: 2 },
  waiting: { total: 2_000, perTenant: 400, perMember: 400 },
  waitMs: 5_000,
};

/** For a process that serves requests. */
export function createDocumentBudget(clock: Clock): DocumentBudget {
  const [cached, uncached] = [createTokenBuckets(clock, rates.cached), createTokenBuckets(clock, rates.uncached)];
  const queue = new FairQueue({ ...fetches, detail: 'Too many documents are being fetched.', retryAfterSeconds: 5 });
  const overBudget = () => new PlatformError('configuration', 'over-budget', { retryAfter: 5 });

  async function charged<V>(buckets: TokenBuckets, share: string, fetchNow: () => Promise<Fetched<V>>) {
    const release = await queue.take({ tenant: share, member: share }).catch(() => {
      throw overBudget();
    });
    try {
      if (buckets.left(share) <= 0) throw overBudget();
      const fetched = await fetchNow();
      buckets.take(share, fetched.bytes);
      return fetched;
    } finally {
      release();
    }
  }

  return {
    memory: documentMemory,
    async fetch(share, load, sizeOf) {
      const fetchNow = () => measured(load, sizeOf);
      return share === undefined ? fetchNow() : charged(cached, share, fetchNow);
    },
    async read(share, load) {
      if (share === undefined) return load();
      return (await charged(uncached, share, () => measured(load, memoryOf))).value;
    },
  };
}

async function measured<V>(load: () => Promise<V>, sizeOf: (value: V) => number): Promise<Fetched<V>> {
  const value = await load();
  return { value, bytes: sizeOf(value) };
}

/**
 * For a process that reads the documents of all tenants once, such as the reconciler: limits the memory, but not the
 * fetches.
 */
export const memoryBudget: DocumentBudget = {
  memory: documentMemory,
  fetch: (_share, load, sizeOf) => measured(load, sizeOf),
  read: (_share, load) => load(),
};

/** Bytes that V8 takes for an object or array without members, and for a member in addition to its name and value. */
const bytesOf = { object: 56, member: 32 };

/**
 * Returns whether the value of a JSON text may take more memory than `documentMemory`. The estimate is made before the
 * text is parsed, and is higher than that of `memoryOf`: a character takes up to two bytes, and each bracket and comma
 * stands for an object or a member.
 */
export function exceedsMemory(json: string): boolean {
  if (json.length * (bytesOf.object + 2) < documentMemory) return false;
  let bytes = 2 * json.length;
  for (let at = 0; at < json.length && bytes <= documentMemory; at += 1) {
    const code = json.charCodeAt(at);
    if (code === 0x7b || code === 0x5b) bytes += bytesOf.object;
    else if (code === 0x2c) bytes += bytesOf.member;
  }
  return bytes > documentMemory;
}

/**
 * Estimates the bytes of memory that a parsed JSON value takes. Does not use recursion, because a value may be nested
 * more deeply than the stack allows.
 */
export function memoryOf(value: unknown): number {
  let bytes = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    // A text with one character above U+00FF takes two bytes for each of its characters.
    if (typeof next === 'string') bytes += 24 + 2 * next.length;
    else if (typeof next !== 'object' || next === null) bytes += 16;
    else if (Array.isArray(next)) {
      bytes += 32 + 8 * next.length;
      for (const item of next) waiting.push(item);
    } else {
      bytes += bytesOf.object;
      // Object.entries would allocate an array for each member, and take four times as long.
      for (const name of Object.keys(next)) {
        bytes += bytesOf.member + 2 * name.length;
        waiting.push((next as Record<string, unknown>)[name]);
      }
    }
  }
  return bytes;
}
