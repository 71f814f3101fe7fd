// Functions on parsed JSON values, and on the members of objects.

/** True for a JSON object; false for null and arrays. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a member of a JSON object, and nothing that the object inherits, such as `toString`. */
export function memberOf(object: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Returns the members that are not undefined. */
export function definedMembers<T>(object: Record<string, T | undefined>): Record<string, T> {
  return Object.fromEntries(Object.entries(object).filter((member): member is [string, T] => member[1] !== undefined));
}

/** Returns undefined for a text that is not JSON. */
export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a JSON text that is the same for values that differ only in the order of members. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`;
}
