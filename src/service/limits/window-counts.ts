// Counts requests by key in fixed windows of time. A lookup takes constant time. When too many keys are stored, the
// least used of the oldest keys is dropped. An attacker could reset a count by a flood of keys, but the flood costs
// more requests than the reset gains.
export interface WindowCount {
  /** Number of requests that this process has counted since the last exchange. */
  own: number;
  /** Number of requests that all processes had counted at the last exchange. */
  total: number;
}

/**
 * Maximum number of keys, which take about 16 MiB. A power of two, because a Map of this size is rebuilt least often
 * while keys are added and removed.
 */
const mostKeys = 131_072;
/** Number of the oldest keys that are compared. The least used of them is dropped. */
const candidates = 8;

export class WindowCounts {
  readonly #length: number;
  readonly #most: number;
  #index = -1;
  #counts = new Map<string, WindowCount>();
  /**
   * Iterates over the keys, the oldest first. The iterator is reused, because a new iterator would have to skip all
   * dropped keys again. That took 86 microseconds for each key of a flood.
   */
  #oldest = this.#counts.entries();
  #end: NodeJS.Timeout | undefined;

  /** `length` is in milliseconds. The windows of all processes begin and end at the same time. */
  constructor(length: number, most = mostKeys) {
    this.#length = length;
    this.#most = most;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Returns the count of a key in the window `index`. */
  at(index: number, key: string): WindowCount {
    if (index !== this.#index) this.#begin(index);
    const known = this.#counts.get(key);
    if (known) return known;
    if (this.#counts.size >= this.#most) this.#forgetOne();
    const count = { own: 0, total: 0 };
    this.#counts.set(key, count);
    return count;
  }

  #begin(index: number): void {
    this.#index = index;
    this.#counts = new Map();
    this.#oldest = this.#counts.entries();
    // Frees the memory of the counts after the window, even if no further request arrives.
    clearTimeout(this.#end);
    if (index !== -1) this.#end = setTimeout(() => this.#begin(-1), this.#length).unref();
  }

  /**
   * Drops the least used of the next `candidates` keys. The other keys become the newest, so that the next call
   * compares different keys.
   */
  #forgetOne(): void {
    let least: [string, WindowCount] | undefined;
    for (let looked = 0; looked < candidates; looked += 1) {
      const { value: entry } = this.#oldest.next();
      if (!entry) return;
      this.#counts.delete(entry[0]);
      if (!least) least = entry;
      else if (used(entry[1]) >= used(least[1])) this.#counts.set(...entry);
      else {
        this.#counts.set(...least);
        least = entry;
      }
      if (used(least[1]) <= 1) return;
    }
  }
}

/**
 * Returns the index of the window that contains `now`, and the seconds until the window ends, at least 1. Arguments are
 * in milliseconds.
 */
export function windowAt(now: number, length: number): { index: number; secondsLeft: number } {
  const index = Math.floor(now / length);
  return { index, secondsLeft: Math.max(1, Math.ceil(((index + 1) * length - now) / 1_000)) };
}

function used({ own, total }: WindowCount): number {
  return own + total;
}
