// Limits what the documents of tenants cost a process (decision 0090). A tenant chooses their number and size. Cached
// documents take memory, and the main thread parses each document that is fetched.
import type { Clock } from '../service/clock.ts';
import { PlatformError } from './platform-error.ts';
import { createTokenBuckets } from './token-buckets.ts';

export interface DocumentBudget {
  /** Maximum estimated memory of all documents of a cache, in bytes. The least recently used ones are removed first. */
  memory: number;
  /**
   * Throws PlatformError `over-budget` if the documents of this tenant that were fetched lately were too many or too
   * large.
   */
  require(share: string): void;
  /** Charges a fetched document to its tenant. `bytes` is its estimated memory. */
  charge(share: string, bytes: number): void;
}

const mib = 1_048_576;
/** Estimated memory of the documents that a cache keeps, and that it fetches again for a tenant in one burst. */
const memory = 64 * mib;
/** The total is five times a share, as for unknown names. */
const rates = { share: { perSecond: 4 * mib, burst: memory }, total: { perSecond: 20 * mib, burst: 5 * memory } };

/** For a process that serves requests. */
export function createDocumentBudget(clock: Clock): DocumentBudget {
  const buckets = createTokenBuckets(clock, rates);
  return {
    memory,
    require(share) {
      // The size of a document is known only after the fetch, so the last fetch may exceed the budget.
      if (buckets.left(share) <= 0) throw new PlatformError('configuration', 'over-budget', { retryAfter: 5 });
    },
    charge: buckets.take,
  };
}

/**
 * For a process that reads the documents of all tenants once, such as the reconciler: limits the memory, but not the
 * fetches.
 */
export const memoryBudget: DocumentBudget = { memory, require: () => undefined, charge: () => undefined };

/**
 * Estimates the bytes of memory that a parsed JSON value takes. Does not use recursion, because a value may be nested
 * more deeply than the stack allows.
 */
export function memoryOf(value: unknown): number {
  let bytes = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === 'string') bytes += 24 + next.length;
    else if (typeof next !== 'object' || next === null) bytes += 16;
    else if (Array.isArray(next)) {
      bytes += 32 + 8 * next.length;
      for (const item of next) waiting.push(item);
    } else {
      bytes += 56;
      for (const [name, item] of Object.entries(next)) {
        bytes += 32 + name.length;
        waiting.push(item);
      }
    }
  }
  return bytes;
}
