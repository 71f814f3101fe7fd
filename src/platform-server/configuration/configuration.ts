// What a configuration is and how a PATCH changes its value. Pure: it reads and writes nothing, and it never changes a
// value that it is given.
import { isObject } from '../../service/json-value.ts';

export type JsonObject = Record<string, unknown>;

export interface Revision {
  revision: number;
  created: Date;
  lastUpdated: Date;
  configuration: unknown;
}

/** Whose configuration: a tenant's id (the last segment of its URN) or core's. */
export type Scope = string;
export const coreScope: Scope = 'core';

export interface ConfigurationKey {
  scope: Scope;
  namespace: string;
  name: string;
}

/** Conditions of a list; all must hold, or any with `useOr`. */
export interface Criteria {
  nameContains?: string;
  createDateAfter?: Date;
  createDateBefore?: Date;
  useOr: boolean;
  /** Dotted path into the configuration to the value that stands there. */
  fields: Record<string, unknown>;
}

export type Edit =
  | { operation: 'UPDATE'; update: JsonObject }
  | { operation: 'REPLACE'; configuration: unknown }
  | { operation: 'DELETE'; property: string };

/** A change that cannot be made on this value; its message may be shown to the client. */
export class EditError extends Error {}

/** The value after an edit. `latest` is undefined when the configuration has no revision yet. */
export function applyEdit(latest: unknown, edit: Edit): unknown {
  switch (edit.operation) {
    case 'REPLACE':
      return edit.configuration;
    case 'UPDATE':
      return mergeUpdate(latest, edit.update);
    case 'DELETE':
      return deleteProperty(latest, edit.property);
  }
}

/**
 * Merges per top-level key: two objects merge one level deep; an array of strings is appended; from an array of objects
 * the first is taken and replaces the entry with an equal (even absent) `url`, or is appended; anything else replaces.
 */
export function mergeUpdate(latest: unknown, update: JsonObject): JsonObject {
  if (latest !== undefined && !isObject(latest))
    throw new EditError('The value is not an object: it can only be replaced whole.');
  const merged = new Map(Object.entries(latest ?? {}));
  for (const [key, value] of Object.entries(update)) merged.set(key, mergeMember(merged.get(key), value, key));
  return Object.fromEntries(merged);
}

function mergeMember(present: unknown, value: unknown, key: string): unknown {
  if (value === null) {
    if (isObject(present)) return present;
    throw new EditError(`The update of '${key}' is null: delete the property instead.`);
  }
  if (Array.isArray(value)) return mergeArray(present, value);
  return isObject(present) && isObject(value) ? { ...present, ...value } : value;
}

function mergeArray(present: unknown, value: unknown[]): unknown {
  const first: unknown = value[0];
  if (present !== undefined && !Array.isArray(present)) return value;
  if (typeof first === 'string') return [...(present ?? []), ...value];
  if (!isObject(first)) return value;
  if (!present) return [first];
  const index = present.findIndex((item) => isObject(item) && item.url === first.url);
  return index === -1 ? [...present, first] : present.with(index, first);
}

/** Removes a literal key, or what a dotted path leads to. A path that leads nowhere changes nothing. */
export function deleteProperty(latest: unknown, property: string): unknown {
  if (latest === undefined) return {};
  if (!isObject(latest)) return latest;
  return Object.hasOwn(latest, property) ? without(latest, property) : deletePath(latest, property.split('.'));
}

function deletePath(value: JsonObject, path: string[]): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined || !Object.hasOwn(value, key)) return value;
  if (rest.length === 0) return without(value, key);
  const member = value[key];
  if (!isObject(member)) return value;
  const shortened = deletePath(member, rest);
  return shortened === member
    ? value
    : Object.fromEntries(Object.entries(value).map(([name, item]) => [name, name === key ? shortened : item]));
}

function without(value: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
}
