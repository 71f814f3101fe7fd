// Changes single entries, and compares two lists of entries. An entry has a key: a string is its own key; the key of an
// object is its member `keyField`.
import { isDeepStrictEqual } from 'node:util';
import { invalidRequest, jsonPointer, Problem } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';

export interface EntryChange {
  change: 'added' | 'changed' | 'removed';
  /** The key of the changed entry; null for an object without a key. */
  key: string | null;
  before?: unknown;
  after?: unknown;
}

export interface Comparison {
  added: number;
  changed: number;
  removed: number;
  unchanged: number;
  /** True if the entries that both lists contain are in a different order. */
  reordered: boolean;
  /** The first changes, at most `maxChanges`. */
  changes: EntryChange[];
  truncated: boolean;
}

export const maxChanges = 1_000;

/**
 * Returns the key of an entry. Undefined for an empty string. Also undefined for an object whose member `keyField` is
 * missing, empty, or neither a string nor a number.
 */
export function keyOf(entry: unknown, keyField: string): string | undefined {
  const value = isObject(entry) && Object.hasOwn(entry, keyField) ? entry[keyField] : entry;
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the index of the entry with this key, or -1. Throws Problem `conflict` if several entries have this key. */
function indexOfKey(entries: readonly unknown[], key: string, keyField: string): number {
  const index = entries.findIndex((entry) => keyOf(entry, keyField) === key);
  if (index < 0) return index;
  if (entries.findLastIndex((entry) => keyOf(entry, keyField) === key) === index) return index;
  throw new Problem('conflict', 'Several entries have this key. Change them with a PATCH of all entries.');
}

/**
 * Replaces the entry whose key is `key`. If there is no such entry, appends the new entry, but throws Problem
 * `not-found` if the new entry has another key. A replacement may change the key. Throws Problem `conflict` if another
 * entry already has the new key, and `invalid-request` if the new entry has no key.
 */
export function putEntry(entries: readonly unknown[], key: string, entry: unknown, keyField: string) {
  const newKey = keyOf(entry, keyField);
  if (newKey === undefined) throw withoutKey(entry, keyField);
  const index = indexOfKey(entries, key, keyField);
  if (newKey === key)
    return { entries: index < 0 ? [...entries, entry] : entries.with(index, entry), added: index < 0 };
  if (index < 0) throw noEntry();
  if (indexOfKey(entries, newKey, keyField) >= 0) throw new Problem('conflict', 'Another entry has the new key.');
  return { entries: entries.with(index, entry), added: false };
}

/** Removes the entry with this key. Throws Problem `not-found` if no entry has the key. */
export function removeEntry(entries: readonly unknown[], key: string, keyField: string): unknown[] {
  const index = indexOfKey(entries, key, keyField);
  if (index < 0) throw noEntry();
  return entries.toSpliced(index, 1);
}

function withoutKey(entry: unknown, keyField: string): Problem {
  const pointer = isObject(entry) ? jsonPointer([keyField]) : '';
  return invalidRequest([{ pointer, detail: 'must be the key of the entry: a text that is not empty, or a number' }]);
}

const noEntry = () => new Problem('not-found', 'The register has no entry with this key.');

/**
 * Compares two lists by the keys of their entries. Entries that share a key are compared in their order, and objects
 * without a key by their content.
 */
export function compareEntries(before: readonly unknown[], after: readonly unknown[], keyField: string): Comparison {
  const [old, current] = [identified(before, keyField), identified(after, keyField)];
  const changes: EntryChange[] = [];
  let unchanged = 0;
  for (const [id, entry] of current) {
    const key = keyOf(entry, keyField) ?? null;
    if (!old.has(id)) changes.push({ change: 'added', key, after: entry });
    else if (isDeepStrictEqual(old.get(id), entry)) unchanged += 1;
    else changes.push({ change: 'changed', key, before: old.get(id), after: entry });
  }
  for (const [id, entry] of old)
    if (!current.has(id)) changes.push({ change: 'removed', key: keyOf(entry, keyField) ?? null, before: entry });
  const count = (kind: EntryChange['change']) => changes.filter(({ change }) => change === kind).length;
  const [keptBefore, keptAfter] = [[...old.keys()].filter((id) => current.has(id)), [...current.keys()]];
  return {
    ...{ added: count('added'), changed: count('changed'), removed: count('removed'), unchanged },
    reordered: !isDeepStrictEqual(
      keptBefore,
      keptAfter.filter((id) => old.has(id)),
    ),
    changes: changes.slice(0, maxChanges),
    truncated: changes.length > maxChanges,
  };
}

/**
 * Returns the entries by id. The id consists of the key or the content, and a number that distinguishes entries with
 * the same key or content.
 */
function identified(entries: readonly unknown[], keyField: string): Map<string, unknown> {
  const seen = new Map<string, number>();
  return new Map(
    entries.map((entry) => {
      const key = keyOf(entry, keyField);
      const name = key === undefined ? `content ${JSON.stringify(entry)}` : `key ${key}`;
      const nth = seen.get(name) ?? 0;
      seen.set(name, nth + 1);
      return [`${nth} ${name}`, entry];
    }),
  );
}
