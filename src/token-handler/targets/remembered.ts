// Caches a decision about texts that clients and upstreams choose. Keeps a bounded number of short texts, so that
// nobody can fill the memory. For any other text, makes the decision again each time.

export interface RememberedLimits {
  /** Greatest number of cached texts. */
  most: number;
  /** Length of the longest cached text. */
  longest: number;
}

/** Returns a function that calls `decide` only once for each cached text. */
export function remembered<T>(decide: (text: string) => T, { most, longest }: RememberedLimits): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const cached = known.get(text);
    if (cached !== undefined) return cached;
    const decision = decide(text);
    if (known.size < most && text.length <= longest) known.set(text, decision);
    return decision;
  };
}
