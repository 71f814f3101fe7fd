// A data register and its two parts in the configuration service: the definition, which has an array schema, and the
// entries. If one part is missing, the register does not exist. All functions are pure.
import { Problem } from '../../service/http/problem.ts';
import { hasMoreValues, mostJsonValues, tooManyValues } from '../../service/json-size.ts';
import { isObject } from '../../service/json-value.ts';

export const registerNamespace = 'data-register';
export const maxEntries = 10_000;
/** Maximum size of the entries as JSON in UTF-8, in bytes. */
export const maxEntriesBytes = 1_048_576;

/**
 * A name consists of ASCII letters, digits, hyphens, underscores and spaces, as in the configuration service. The first
 * and the last character must not be a space.
 */
export const namePattern = /^[A-Za-z0-9_-](?:[A-Za-z0-9 _-]{0,48}[A-Za-z0-9_-])?$/;

export interface Register {
  namespace: typeof registerNamespace;
  name: string;
  description: string;
  entries: readonly unknown[];
}

/** The entry `data-register:<name>` in the tenant's document of configuration definitions. */
export interface Definition {
  /** False if the definition's schema is not an array schema. Such a definition defines no register. */
  hasArraySchema: boolean;
  description: string;
  anonymousRead: boolean;
}

export interface Revision {
  revision: number;
  /** The time of creation (ISO 8601). */
  created?: string | undefined;
  /** The time of the last update (ISO 8601). */
  lastUpdated?: string | undefined;
  configuration: unknown;
}

/** The parts that the configuration service stores for a register's name. */
export interface Parts {
  definition?: Definition | undefined;
  latest?: Revision | undefined;
  /** The pinned revision, if one is pinned. */
  active?: Revision | undefined;
}

export function toRegister(name: string, description: string, entries: readonly unknown[]): Register {
  return { namespace: registerNamespace, name, description, entries };
}

/** Combines the parts into a register. Returns undefined if a part is missing or the schema is not an array schema. */
export function registerOf(name: string, parts: Parts): Register | undefined {
  const entries = entriesOf(parts);
  if (!parts.definition?.hasArraySchema || !entries) return undefined;
  return toRegister(name, parts.definition.description, entries);
}

/**
 * Returns the entries that forms use: the entries of the active revision or, if no revision is pinned, of the latest
 * revision. Returns undefined if these entries are not an array.
 */
export function entriesOf({ latest, active }: Parts): readonly unknown[] | undefined {
  const configuration = (active ?? latest)?.configuration;
  return Array.isArray(configuration) ? configuration : undefined;
}

export function definitionKey(name: string): string {
  return `${registerNamespace}:${name}`;
}

/** Finds a register's definition in the document that contains all definitions. */
export function definitionIn(document: unknown, name: string): Definition | undefined {
  const key = definitionKey(name);
  return isObject(document) && Object.hasOwn(document, key) ? parseDefinition(document[key]) : undefined;
}

/**
 * Returns the definitions with an array schema, keyed by register name. Ignores keys that are not names of registers.
 */
export function definitionsIn(document: unknown): Map<string, Definition> {
  const definitions = new Map<string, Definition>();
  for (const [key, value] of isObject(document) ? Object.entries(document) : []) {
    const name = key.slice(registerNamespace.length + 1);
    if (key !== definitionKey(name) || !namePattern.test(name)) continue;
    const definition = parseDefinition(value);
    if (definition.hasArraySchema) definitions.set(name, definition);
  }
  return definitions;
}

function parseDefinition(value: unknown): Definition {
  const { configurationSchema, description, anonymousRead } = isObject(value) ? value : {};
  const type = isObject(configurationSchema) ? configurationSchema.type : undefined;
  return {
    hasArraySchema: type === 'array' || (Array.isArray(type) && type.length === 1 && type[0] === 'array'),
    description: typeof description === 'string' ? description : '',
    anonymousRead: anonymousRead === true,
  };
}

/**
 * Returns the definition of a new register (draft-07). Its schema accepts an array of strings or an array of objects,
 * so that an update can replace strings with objects and objects with strings. The schema does not accept a mixture of
 * both. This API never sets `anonymousRead`.
 */
export function newDefinition(description: string): Record<string, unknown> {
  const anyOf = [{ items: { type: 'string' } }, { items: { type: 'object' } }];
  return { description, configurationSchema: { type: 'array', anyOf } };
}

/** The maximum size of a body that the configuration service accepts, in bytes. */
const maxBodyBytes = 1_048_576;
/** The number of bytes that the body of a write has in addition to the entries. */
const wrappingBytes = sizeOf({ operation: 'REPLACE', configuration: '' }) - 2;

/** True if the body of a write with these entries does not exceed the limit of the configuration service. */
export function fitsIntoBody(entries: readonly unknown[]): boolean {
  return sizeOf(entries) + wrappingBytes <= maxBodyBytes;
}

export interface EntryProblem {
  /** The index of an entry, followed by the names of nested members. Empty if the problem concerns all entries. */
  path: (string | number)[];
  detail: string;
}

const named = { string: 'a string', object: 'an object' };

/** Problem detail for entries that exceed `maxEntriesBytes`. */
export const tooLarge = `must be at most ${maxEntriesBytes} bytes of JSON`;

/** Maximum number of listed problems. This is enough to see what is wrong. */
const maxProblems = 20;

/**
 * Lists why entries are rejected. They must be all strings or all objects, without reserved members, within the limits.
 */
export function entryProblems(entries: readonly unknown[]): EntryProblem[] {
  if (entries.length > maxEntries) return [{ path: [], detail: `must have at most ${maxEntries} items` }];
  const problems: EntryProblem[] = [];
  const first = kindOf(entries[0]);
  for (const [index, entry] of entries.entries()) {
    const kind = kindOf(entry);
    const reserved = reservedMember(entry);
    if (!kind) problems.push({ path: [index], detail: 'must be a string or an object' });
    else if (first && kind !== first)
      problems.push({ path: [index], detail: `must be ${named[first]} as the first item is` });
    else if (reserved) problems.push({ path: [index, ...reserved], detail: 'is a reserved name' });
    if (problems.length === maxProblems) break;
  }
  const limit = problems.length === 0 ? exceededLimit(JSON.stringify(entries)) : undefined;
  return limit === undefined ? problems : [{ path: [], detail: limit }];
}

/** Returns why the entries, as JSON, are too many for the configuration service. Undefined if they are not. */
function exceededLimit(json: string): string | undefined {
  if (Buffer.byteLength(json) > maxEntriesBytes) return tooLarge;
  // Responses of the configuration service with more values are refused, so the register could not be read again.
  return hasMoreValues(json, mostJsonValues) ? tooManyValues : undefined;
}

/**
 * Throws Problem `invalid-request` for a list that is longer than this API writes. Such a list was written directly in
 * the configuration service, and may have a million entries. Work on each entry would stop the process for seconds.
 */
export function refuseLong(entries: readonly unknown[]): void {
  if (entries.length <= maxEntries) return;
  const detail = `The register has more than ${maxEntries} entries. Read them as JSON, or replace them with a PATCH.`;
  throw new Problem('invalid-request', detail);
}

/**
 * Returns the path of the first member, at any depth, that the platform's configuration service would change or reject.
 */
function reservedMember(value: unknown): string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (name === '_bsontype' || name.startsWith('META_')) return [name];
    const below = reservedMember(member);
    if (below) return [name, ...below];
  }
  return undefined;
}

function kindOf(entry: unknown): 'string' | 'object' | undefined {
  if (typeof entry === 'string') return 'string';
  return isObject(entry) ? 'object' : undefined;
}

/** The size of a value as JSON in UTF-8, in bytes. */
export function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
