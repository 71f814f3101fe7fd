// Reads JSON values by path, and returns changed copies. Values are never changed in place, so that views detect
// changes.

export type JsonObject = Record<string, unknown>;
/** Member names and array indexes from the root of the form data. */
export type Path = readonly string[];

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value at the path; undefined if there is none. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/** Returns a copy with a new value at the path. Undefined removes a member. Creates missing objects and lists. */
export function withValueAt(root: unknown, path: Path, value: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (Array.isArray(root) && /^\d+$/.test(name)) {
    const list: unknown[] = [...root];
    list[Number(name)] = withValueAt(list[Number(name)], rest, value) ?? null;
    return list;
  }
  const object: JsonObject = isObject(root) ? { ...root } : {};
  const member = withValueAt(Object.hasOwn(object, name) ? object[name] : undefined, rest, value);
  // A plain assignment to __proto__ would change the prototype.
  if (member === undefined) delete object[name];
  else Object.defineProperty(object, name, { value: member, enumerable: true, configurable: true, writable: true });
  return object;
}

/**
 * Like `withValueAt`, but a removed value also removes the objects around it that become empty, because an optional
 * object with required members would make the form invalid. The root and list items stay.
 */
export function withAnswer(root: unknown, path: Path, value: unknown): unknown {
  const changed = withValueAt(root, path, value);
  const around = path.slice(0, -1);
  const object = valueAt(changed, around);
  const isItem = Array.isArray(valueAt(changed, around.slice(0, -1)));
  const isEmpty = isObject(object) && Object.keys(object).length === 0;
  return value === undefined && around.length > 0 && isEmpty && !isItem
    ? withAnswer(changed, around, undefined)
    : changed;
}

/** Returns the JSON pointer (RFC 6901) of a path. */
export function pointerOf(path: Path): string {
  return path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Parses a JSON pointer, which may be in a URI fragment (RFC 6901 section 6). */
export function pathOf(pointer: string): string[] {
  return pointer
    .replace(/^#/, '')
    .split('/')
    .slice(1)
    .map((name) => decoded(name).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function startsWith(path: Path, start: Path): boolean {
  return start.length <= path.length && start.every((name, index) => path[index] === name);
}

/**
 * Returns the new path of a value after item `index` was removed from the list at the path `list`. Undefined if the
 * value was in that item.
 */
export function pathWithoutItem(path: Path, list: Path, index: number): Path | undefined {
  if (!startsWith(path, list) || path.length === list.length) return path;
  const at = Number(path[list.length]);
  if (at === index) return undefined;
  return at < index ? path : path.with(list.length, String(at - 1));
}

/** True if two JSON values are equal. The order of members does not matter. */
export function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isEqual(Reflect.get(one, name), Reflect.get(other, name)))
  );
}
