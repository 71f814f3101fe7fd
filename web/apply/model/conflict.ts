// A three-way merge of form data: combines the changes that this browser and another browser made to the same base, and
// finds conflicts.
import { isEqual, isObject, type Path, valueAt, withValueAt } from './json.ts';

export interface Difference {
  path: Path;
  mine: unknown;
  theirs: unknown;
}

export interface Merge {
  /** The other browser's data, with this browser's values where only this browser changed something. */
  merged: unknown;
  /** Values that both browsers have changed. For these, `merged` has the other browser's values. */
  conflicts: readonly Difference[];
}

/**
 * Merges the changes that `mine` and `theirs` made to `base`. Compares objects member by member, and lists as a whole.
 */
export function merge(base: unknown, mine: unknown, theirs: unknown): Merge {
  const conflicts: Difference[] = [];
  let merged = theirs;
  for (const path of changedPaths(base, mine)) {
    const [ours, before, others] = [mine, base, theirs].map((data) => valueAt(data, path));
    if (isEqual(ours, others)) continue;
    if (isEqual(before, others)) merged = withValueAt(merged, path, ours);
    else conflicts.push({ path, mine: ours, theirs: others });
  }
  return { merged, conflicts };
}

function changedPaths(before: unknown, after: unknown, path: Path = []): Path[] {
  if (isEqual(before, after)) return [];
  const isInner = (isObject(before) || before === undefined) && isObject(after);
  if (!isInner && path.length > 0) return [path];
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names].flatMap((name) => changedPaths(valueAt(before, [name]), valueAt(after, [name]), [...path, name]));
}
