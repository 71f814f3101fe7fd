// The explanation of a mutant that survives.
export interface Explanation {
  file: string;
  /** The first line of the changed code, without indentation. */
  text: string;
  /** The changed code and what replaced it, as in the results. */
  changes: readonly (readonly [original: string, replacement: string])[];
  kind: 'equivalent' | 'text for people' | 'performance only' | 'second barrier' | 'killed elsewhere';
  why: string;
}
