// Finds the properties that a data schema describes, for the paths of a UI schema, such as
// #/properties/address/properties/city. The search follows references, combinations and conditions.
import { isObject, memberOf } from '../../service/json-value.ts';
import type { SchemaObject } from './schema-tree.ts';
import { sharedSchema } from './shared-schemas.ts';

/** A schema, and the document in which its references are resolved. */
export interface Place {
  root: SchemaObject;
  schema: unknown;
}

/** Maximum number of schemas that one step of the search follows. A schema may combine many others. */
const mostPlaces = 500;

/**
 * Returns the schemas at a path below one of the places. Returns undefined if no place describes a value at this path.
 * Returns an empty list if the search reaches a schema that allows any value, because a value may then exist at this
 * path.
 */
export function lookUp(places: readonly Place[], path: readonly string[]): Place[] | undefined {
  let current = expand(places);
  for (let index = 0; index < path.length; index += 1) {
    const keyword = path[index] ?? '';
    const isNamed = keyword === 'properties';
    if (isNamed) index += 1;
    const name = isNamed ? path[index] : undefined;
    if (current.some((place) => isOpen(place, keyword))) return [];
    current = expand(current.flatMap((place) => step(place, keyword, name)));
    if (current.length === 0) return undefined;
  }
  return current;
}

/** Returns the schemas of a list's items. The `detail` of a list control refers to these items. */
export function itemsOf(places: readonly Place[]): Place[] {
  return places.flatMap((place) => step(place, 'items', undefined));
}

/**
 * True if the schema also allows values that it does not describe. A value may then exist at a path without a schema.
 */
function isOpen({ schema }: Place, keyword: string): boolean {
  if (!isObject(schema)) return schema === true;
  return keyword === 'properties' && (Object.keys(schema).length === 0 || schema.patternProperties !== undefined);
}

function step({ root, schema }: Place, keyword: string, name: string | undefined): Place[] {
  const held = isObject(schema) && Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  const isMap = name !== undefined;
  const next = isMap ? (isObject(held) ? memberOf(held, name) : undefined) : held;
  if (next === undefined) return [];
  return (Array.isArray(next) ? next : [next]).map((inner: unknown) => ({ root, schema: inner }));
}

/** Returns the given schemas, the schemas to which they refer, and the schemas that they combine. */
function expand(places: readonly Place[]): Place[] {
  const found: Place[] = [];
  const seen = new Set<unknown>();
  const waiting = [...places];
  while (waiting.length > 0 && found.length < mostPlaces) {
    const place = waiting.pop();
    if (!place || (isObject(place.schema) && seen.has(place.schema))) continue;
    seen.add(place.schema);
    found.push(place);
    waiting.push(...referred(place), ...combined(place));
  }
  return found;
}

function combined(place: Place): Place[] {
  const keywords = ['allOf', 'anyOf', 'oneOf', 'then', 'else', 'if'];
  return keywords.flatMap((keyword) => step(place, keyword, undefined));
}

function referred({ root, schema }: Place): Place[] {
  if (!isObject(schema) || typeof schema.$ref !== 'string') return [];
  const [document = '', fragment = ''] = schema.$ref.split('#');
  const target = document === '' ? root : sharedSchema(document);
  // If the reference points to an anchor or is invalid, the search assumes that any value is allowed. `compileFaults`
  // reports the invalid reference.
  if (!target || (fragment !== '' && !fragment.startsWith('/'))) return [{ root, schema: true }];
  let found: unknown = target;
  for (const name of pathOf(fragment)) {
    const held: unknown = found;
    found = isObject(held) ? memberOf(held, name) : undefined;
  }
  return [{ root: target, schema: found ?? true }];
}

/**
 * Splits a JSON pointer into its names. Also decodes percent-encoding, which a pointer has in a URI fragment (RFC 6901
 * section 6).
 */
export function pathOf(pointer: string): string[] {
  return pointer
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
