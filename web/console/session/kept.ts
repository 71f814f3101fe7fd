// Keeps unsent input in this tab, so that it survives the end of the session and the next sign-in. Secrets are never
// kept. The input of one person is never shown to another person.
import { useCallback, useState } from 'preact/hooks';
import { isEqual } from '../../apply/model/json.ts';

const prefix = 'formgate-console:kept:';
const ownerKey = 'formgate-console:owner';

interface Kept {
  /** A description of the value for people. */
  label: string;
  value: unknown;
}

function read(key: string): Kept | undefined {
  try {
    const text = sessionStorage.getItem(prefix + key);
    return text === null ? undefined : (JSON.parse(text) as Kept);
  } catch {
    return undefined;
  }
}

/** Keys of the values that could not be stored, because the storage is full or forbidden. */
const refused = new Set<string>();

/** True if the storage accepted everything that was typed and not sent yet. */
export function keepsEverything(): boolean {
  return refused.size === 0;
}

/** Stores a value, or removes it if `kept` is undefined. A value that cannot be stored is only remembered as such. */
function write(key: string, kept: Kept | undefined): void {
  refused.delete(key);
  try {
    // If the new value is refused, an older one must not come back in its place.
    sessionStorage.removeItem(prefix + key);
    if (kept) sessionStorage.setItem(prefix + key, JSON.stringify(kept));
  } catch {
    if (kept) refused.add(key);
  }
}

export interface KeptValue<T> {
  value: T;
  /** True if the value was typed and not sent yet. */
  isKept: boolean;
  set(value: T): void;
  /** Forgets the typed value, because it was sent or discarded. */
  forget(next?: T): void;
}

/**
 * Like `useState`, but keeps unsent input. `key` names the resource; `label` describes the kept input for people. If
 * `initial` changes, because its resource was loaded again, it replaces a value that nobody has edited.
 */
export function useKept<T>(key: string, label: string, initial: T): KeptValue<T> {
  const [state, setState] = useState(() => {
    const kept = read(key);
    return { value: kept ? (kept.value as T) : initial, isKept: kept !== undefined, initial };
  });
  const isOutdated = !state.isKept && !isEqual(state.initial, initial);
  if (isOutdated) setState({ value: initial, isKept: false, initial });
  const set = useCallback(
    (value: T) => {
      write(key, { label, value });
      setState({ value, isKept: true, initial });
    },
    [key, label, initial],
  );
  const forget = useCallback(
    (next: T = initial) => {
      write(key, undefined);
      setState({ value: next, isKept: false, initial });
    },
    [key, initial],
  );
  const { value, isKept } = state;
  return { value: isOutdated ? initial : value, isKept, set, forget };
}

function keys(): string[] {
  try {
    return Object.keys(sessionStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}

/** Returns the labels of all kept values. */
export function keptLabels(): string[] {
  return keys().flatMap((key) => read(key.slice(prefix.length))?.label ?? []);
}

export function forgetAll(): void {
  refused.clear();
  for (const key of keys()) sessionStorage.removeItem(key);
}

/**
 * Makes `owner` the owner of the kept values, and forgets the values if they belong to another person. `owner`
 * identifies the person who is signed in. People of different tenants have different owners.
 */
export function claimKept(owner: string): void {
  try {
    if (sessionStorage.getItem(ownerKey) !== owner) forgetAll();
    sessionStorage.setItem(ownerKey, owner);
  } catch {}
}
