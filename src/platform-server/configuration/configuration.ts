// Defines configurations, and how a PATCH changes their values. All functions are pure.
import { maxDepth } from '../../service/http/json-body.ts';
import type { FieldError } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';

export type JsonObject = Record<string, unknown>;

export interface Revision<Value = unknown> {
  revision: number;
  created: Date;
  lastUpdated: Date;
  configuration: Value;
}

/** The owner of a configuration: a tenant's id (the last segment of its URN), or the platform's core. */
export type Scope = string;
export const coreScope: Scope = 'core';

export interface ConfigurationKey {
  scope: Scope;
  namespace: string;
  name: string;
}

/** The filters of a list. All filters must match, or with `useOr` at least one. */
export interface Criteria {
  nameContains?: string;
  createDateAfter?: Date;
  createDateBefore?: Date;
  useOr: boolean;
  /**
   * Values that a listed configuration must have. The key of each is the dotted path to a field of the configuration.
   */
  fields: Record<string, unknown>;
}

export type Edit =
  | { operation: 'UPDATE'; update: JsonObject }
  | { operation: 'REPLACE'; configuration: unknown }
  | { operation: 'DELETE'; property: string };

/** Thrown if an edit cannot be applied to a value. Its message may be shown to the client. */
export class EditError extends Error {}

/** Returns the value after an edit. `latest` is undefined if the configuration has no revision yet. */
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
 * Merges each top-level key as the contract requires. Two objects are merged one level deep. An array of strings is
 * appended to the current array. Of an array of objects, only the first object is used: it replaces the element with
 * the same `url`, or is appended if no element has that `url`. Elements without `url` count as having the same `url`.
 * Null leaves a current object unchanged, and throws EditError for any other current value. In all other cases, the
 * new value replaces the current one.
 */
export function mergeUpdate(latest: unknown, update: JsonObject): JsonObject {
  if (latest !== undefined && !isObject(latest)) throw new EditError('The value is not an object. Use REPLACE.');
  const merged = new Map(Object.entries(latest ?? {}));
  for (const [key, value] of Object.entries(update)) merged.set(key, mergeMember(merged.get(key), value, key));
  return Object.fromEntries(merged);
}

function mergeMember(present: unknown, value: unknown, key: string): unknown {
  if (value === null) {
    if (isObject(present)) return present;
    throw new EditError(`The update of '${key}' is null. Use DELETE to remove the property.`);
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

/**
 * Removes the property with this literal name. If there is none, removes the property at this dotted path. Ignores an
 * unknown path.
 */
export function deleteProperty(latest: unknown, property: string): unknown {
  if (latest === undefined) return {};
  if (!isObject(latest)) return latest;
  if (Object.hasOwn(latest, property)) return without(latest, property);
  // No property is deeper than a value may be. Without this limit, a path of millions of dots costs gigabytes.
  const path = property.split('.', maxDepth + 1);
  return path.length > maxDepth ? latest : deletePath(latest, path);
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

/** Returns the error of a value whose JSON text has more than `longest` characters. */
export function tooLong(longest: number): FieldError {
  return { pointer: '', detail: `would be longer than ${longest} characters` };
}
