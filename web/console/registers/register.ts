// Registers as the form service describes them, and the requests of administrators.
import { folded } from '../../apply/model/search.ts';
import { type ApiRequest, path } from '../api/request.ts';

export type Entry = string | Record<string, unknown>;

export interface Register {
  name: string;
  description: string;
  entries: Entry[];
}

export interface Change {
  change: 'added' | 'changed' | 'removed';
  key: string | null;
  before?: Entry;
  after?: Entry;
}

export interface Comparison {
  added: number;
  changed: number;
  removed: number;
  unchanged: number;
  reordered: boolean;
  changes: Change[];
  truncated: boolean;
}

export interface Revision {
  revision: number;
  created: string | null;
  lastUpdated: string | null;
  /** Number of entries; null if the revision is not a list. */
  entries: number | null;
  latest: boolean;
  active: boolean;
}

export interface Reference {
  definitionId: string;
  definitionName: string;
  register: string;
  urn: string;
  pointer: string;
}

export interface FoundReferences {
  results: Reference[];
  /** True if the search was cut off. */
  truncated: boolean;
}

const target = 'form-service' as const;

export const listRequest = (after: string): ApiRequest => ({
  target,
  path: '/form/v1/registers',
  query: { top: 50, after },
});

export const deadReferences: ApiRequest = { target, path: '/form/v1/register-references/dead' };

export const registerRequest = (name: string): ApiRequest => ({ target, path: path`/form/v1/registers/${name}` });

export const createRequest = (json: { name: string; description: string }): ApiRequest => ({
  target,
  path: '/form/v1/registers',
  method: 'POST',
  json,
});

export const deleteRequest = (name: string): ApiRequest => ({ ...registerRequest(name), method: 'DELETE' });

/** Identifies an entry by its register and its key. */
export interface EntryAddress {
  register: string;
  key: string;
  keyField: string;
}

/** The key is in the query, because a path cannot contain `..`, and the token handler rejects `N%2FA` in a path. */
const entryRequest = ({ register, key, keyField }: EntryAddress) => ({
  target,
  path: path`/form/v1/registers/${register}/entries`,
  query: { key, keyField },
});

export const putRequest = (address: EntryAddress, json: Entry): ApiRequest => ({
  ...entryRequest(address),
  method: 'PUT',
  json,
});

export const removeRequest = (address: EntryAddress): ApiRequest => ({ ...entryRequest(address), method: 'DELETE' });

export interface ImportOptions {
  mode: string;
  keyField: string;
  dryRun: boolean;
}

export function importRequest(register: string, csv: string, query: ImportOptions): ApiRequest {
  return { target, path: path`/form/v1/registers/${register}/entries`, method: 'POST', query: { ...query }, csv };
}

/** `after` is `page.next` of the previous page. */
export const revisionsRequest = (name: string, after?: string): ApiRequest => ({
  target,
  path: path`/form/v1/registers/${name}/revisions`,
  query: { after },
});

export const keepRequest = (name: string): ApiRequest => ({
  target,
  path: path`/form/v1/registers/${name}/revisions`,
  method: 'POST',
  json: {},
});

export const pinRequest = (name: string, revision: number): ApiRequest => ({
  target,
  path: path`/form/v1/registers/${name}/active-revision`,
  method: 'PUT',
  json: { revision },
});

export function compareRequest(name: string, from: number, to: number | undefined, keyField: string): ApiRequest {
  return { target, path: path`/form/v1/registers/${name}/revisions/${from}/changes`, query: { to, keyField } };
}

export const referencesRequest = (name: string): ApiRequest => ({
  target,
  path: path`/form/v1/registers/${name}/references`,
});

/**
 * Returns the key of an entry: the string itself, or a member of the object. Undefined for an object without that
 * member.
 */
export function keyOf(entry: Entry, keyField: string): string | undefined {
  if (typeof entry === 'string') return entry;
  const value = Object.hasOwn(entry, keyField) ? entry[keyField] : undefined;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

const mostColumns = 20;

/** Names of the entries' members, at most 20, in the order in which they appear. Empty for a register of strings. */
export function columnsOf(entries: readonly Entry[]): string[] {
  const names = entries.flatMap((entry) => (typeof entry === 'string' ? [] : Object.keys(entry)));
  return [...new Set(names)].slice(0, mostColumns);
}

/** Decodes a CSV file: UTF-8 or, if it is not valid UTF-8, Windows-1252, which Excel writes by default. */
export async function csvTextOf(file: Blob): Promise<string> {
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** True if a value of the entry contains the text, which is folded already. */
export function hasText(entry: Entry, wanted: string): boolean {
  return Object.values(typeof entry === 'string' ? [entry] : entry).some((value) =>
    folded(cellText(value)).includes(wanted),
  );
}

/** Formats a value for a cell: a text as it is, everything else as JSON. */
export function cellText(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Returns the value that determines how the text of a cell is read: the member of the entry or, if the entry lacks it,
 * a value of the same column.
 */
export function formerOf(entry: Exclude<Entry, string>, entries: readonly Entry[], column: string): unknown {
  return Object.hasOwn(entry, column) ? entry[column] : sampleOf(entries, column);
}

/** Returns a value of a column whose values all have the same type; undefined for any other column. */
function sampleOf(entries: readonly Entry[], column: string): unknown {
  const values = entries
    .map((entry) => (typeof entry !== 'string' && Object.hasOwn(entry, column) ? entry[column] : undefined))
    .filter((value) => value !== undefined && value !== null);
  return new Set(values.map((value) => typeof value)).size === 1 ? values[0] : undefined;
}

/**
 * Parses the text of a cell (the reverse of `cellText`). Parses JSON only if `former` (see `formerOf`) is a value other
 * than a text. Returns undefined for an empty text, which removes the member.
 */
export function cellValue(text: string, former: unknown): unknown {
  if (text === '') return undefined;
  if (former === undefined || typeof former === 'string') return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
