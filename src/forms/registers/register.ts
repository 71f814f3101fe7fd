// What a data register is and how its two parts stand in the configuration service: a definition with an array schema
// and the entries. A register without one of them does not exist. Pure: it reads and writes nothing.
import { isObject } from '../../service/json-value.ts';

export const registerNamespace = 'data-register';
export const maxEntries = 10_000;
/** Of the entries as JSON. */
export const maxEntriesBytes = 1_048_576;

/** Letters are ASCII, as in the configuration service; no space at either end. */
export const namePattern = /^[A-Za-z0-9_-](?:[A-Za-z0-9 _-]{0,48}[A-Za-z0-9_-])?$/;

export interface Register {
  namespace: typeof registerNamespace;
  name: string;
  description: string;
  entries: readonly unknown[];
}

/** The tenant's entry `data-register:<name>` among the configuration definitions. */
export interface Definition {
  /** Without an array schema it defines no register. */
  hasArraySchema: boolean;
  description: string;
  anonymousRead: boolean;
}

export interface Revision {
  revision: number;
  configuration: unknown;
}

/** Whatever stands in the configuration service under a register's name. */
export interface Parts {
  definition?: Definition | undefined;
  latest?: Revision | undefined;
  /** The pinned revision. */
  active?: Revision | undefined;
}

export function isRegisterName(name: string): boolean {
  return namePattern.test(name);
}

export function toRegister(name: string, description: string, entries: readonly unknown[]): Register {
  return { namespace: registerNamespace, name, description, entries };
}

/** The register that the parts make up, undefined where one is missing. */
export function registerOf(name: string, parts: Parts): Register | undefined {
  const entries = entriesOf(parts);
  if (!parts.definition?.hasArraySchema || !entries) return undefined;
  return toRegister(name, parts.definition.description, entries);
}

/** The entries that forms see: of the active revision, else of the latest. Undefined when those are no array. */
export function entriesOf({ latest, active }: Parts): readonly unknown[] | undefined {
  const configuration = (active ?? latest)?.configuration;
  return Array.isArray(configuration) ? configuration : undefined;
}

export function definitionKey(name: string): string {
  return `${registerNamespace}:${name}`;
}

/** A register's definition in the document of all definitions, undefined where there is none. */
export function definitionIn(document: unknown, name: string): Definition | undefined {
  const key = definitionKey(name);
  return isObject(document) && Object.hasOwn(document, key) ? parseDefinition(document[key]) : undefined;
}

/** The definitions that have an array schema, by register name. A key that is no register's name is left out. */
export function definitionsIn(document: unknown): Map<string, Definition> {
  const definitions = new Map<string, Definition>();
  for (const [key, value] of isObject(document) ? Object.entries(document) : []) {
    const name = key.slice(registerNamespace.length + 1);
    if (key !== definitionKey(name) || !isRegisterName(name)) continue;
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
 * The definition of a new register (draft-07). Its schema takes strings or objects, so that a later update may change
 * from one to the other, and keeps a mixture out whoever writes. `anonymousRead` is not ours to set.
 */
export function newDefinition(description: string): Record<string, unknown> {
  const anyOf = [{ items: { type: 'string' } }, { items: { type: 'object' } }];
  return { description, configurationSchema: { type: 'array', anyOf } };
}

/** One thing wrong with entries: at `index`, or with all of them. */
export interface EntryProblem {
  index?: number;
  detail: string;
}

const named = { string: 'a string', object: 'an object' };

/** So many problems are enough to see what is wrong. */
const maxProblems = 20;

/** What is wrong with entries: they must be all strings or all objects, and within the limits. */
export function entryProblems(entries: readonly unknown[]): EntryProblem[] {
  if (entries.length > maxEntries) return [{ detail: `must have at most ${maxEntries} items` }];
  const problems: EntryProblem[] = [];
  const kind = kindOf(entries[0]);
  for (const [index, entry] of entries.entries()) {
    if (kindOf(entry) === undefined) problems.push({ index, detail: 'must be a string or an object' });
    else if (kind && kindOf(entry) !== kind)
      problems.push({ index, detail: `must be ${named[kind]} as the first item is` });
    if (problems.length === maxProblems) break;
  }
  if (problems.length === 0 && sizeOf(entries) > maxEntriesBytes)
    problems.push({ detail: `must be at most ${maxEntriesBytes} bytes of JSON` });
  return problems;
}

function kindOf(entry: unknown): 'string' | 'object' | undefined {
  if (typeof entry === 'string') return 'string';
  return isObject(entry) ? 'object' : undefined;
}

/** Bytes of a value as JSON in UTF-8. */
export function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
