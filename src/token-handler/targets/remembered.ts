// Caches decisions about strings that clients and upstreams choose. Caches only a limited number of short strings,
// because anyone could otherwise fill the memory. For any other string, each call makes the decision again.

export interface RememberedLimits {
  /** Maximum number of cached strings. */
  most: number;
  /** Maximum length of a cached string. */
  longest: number;
}

/** Returns a function that calls `decide` only once for each string while the string is cached. */
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
