// Counts requests by key in fixed windows of time. A lookup takes constant time. To bound memory, the least used of the
// oldest keys is forgotten. Resetting a count by a flood of keys therefore costs an attacker more requests than it
// gains.
export interface WindowCount {
  /** Counted in this process since the last exchange. */
  own: number;
  /** The total of all processes at the last exchange. */
  total: number;
}

/** About 16 MiB. A Map of this size, a power of two, is rebuilt least often while keys come and go. */
const mostKeys = 131_072;
/** Number of oldest keys that are compared; the least used of them is forgotten. */
const candidates = 8;

export class WindowCounts {
  readonly #length: number;
  readonly #most: number;
  #index = -1;
  #counts = new Map<string, WindowCount>();
  /**
   * An iterator over the keys from the oldest. It is reused, because a new iterator would pass every forgotten key
   * again, which took 86 microseconds for each key of a flood.
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
    // Frees the memory after the window, even if no further request arrives.
    clearTimeout(this.#end);
    if (index !== -1) this.#end = setTimeout(() => this.#begin(-1), this.#length).unref();
  }

  /**
   * Forgets the least used of the next keys. The other keys become the newest, so that the next call compares different
   * keys.
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
 * Returns the index of the window that contains `now`, and the seconds until it ends, at least 1. Arguments are in
 * milliseconds.
 */
export function windowAt(now: number, length: number): { index: number; secondsLeft: number } {
  const index = Math.floor(now / length);
  return { index, secondsLeft: Math.max(1, Math.ceil(((index + 1) * length - now) / 1_000)) };
}

function used({ own, total }: WindowCount): number {
  return own + total;
}
