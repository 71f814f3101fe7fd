// Counts by key in fixed windows of time. A lookup takes constant time, and a flood of keys cannot exceed the bound on
// memory: the least used of the oldest keys is forgotten, so that a flood costs more requests than it resets.
export interface WindowCount {
  /** Counted in this process since the last exchange. */
  own: number;
  /** The total of all processes at the last exchange. */
  total: number;
}

/** About 20 MiB. A Map of this size, a power of two, is rebuilt least often while keys come and go. */
const mostKeys = 131_072;
/** Number of oldest keys of which the least used is forgotten. */
const candidates = 8;

export class WindowCounts {
  readonly #length: number;
  readonly #most: number;
  #index = -1;
  #counts = new Map<string, WindowCount>();
  /**
   * Walks the keys from the oldest. It is kept, because a new iterator would pass every forgotten key again, which took
   * 86 microseconds for each key of a flood.
   */
  #oldest = this.#counts.entries();
  #end: NodeJS.Timeout | undefined;

  /** `length` in milliseconds; windows of all processes begin and end together. */
  constructor(length: number, most = mostKeys) {
    this.#length = length;
    this.#most = most;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** The count of a key in the window `index`. */
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
    // Without further requests, memory would stay in use.
    clearTimeout(this.#end);
    if (index !== -1) this.#end = setTimeout(() => this.#begin(-1), this.#length).unref();
  }

  /** The keys that are kept become the newest, so that the next call looks at others. */
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

/** The window of a moment, and the seconds until it ends, at least 1. Arguments are in milliseconds. */
export function windowAt(now: number, length: number): { index: number; secondsLeft: number } {
  const index = Math.floor(now / length);
  return { index, secondsLeft: Math.max(1, Math.ceil(((index + 1) * length - now) / 1_000)) };
}

function used({ own, total }: WindowCount): number {
  return own + total;
}
