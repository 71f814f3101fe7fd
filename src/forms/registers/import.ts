// Applies a CSV table to the entries of a register. A table that `toCsv` wrote from these entries changes nothing, but
// is refused if an entry has no key, or if two entries have the same key.
import { bodyProblem } from '../../service/http/body-bytes.ts';
import { parseJsonBytes } from '../../service/http/json-body.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { isObject, memberOf } from '../../service/json-value.ts';
import { cellOf, type Row, type Table, textOf } from './csv.ts';
import { keyOf } from './entry-changes.ts';
import { maxEntriesBytes, refuseLong, sizeOf, tooLarge } from './register.ts';

export interface ImportOptions {
  /** Name of the column that contains the keys. Ignored if the entries are strings, because a string is its own key. */
  keyField: string;
  /**
   * `upsert` adds and changes entries. `replace` also removes the entries that are not in the table, and adopts the
   * table's order.
   */
  mode: 'upsert' | 'replace';
}

type Fields = Record<string, unknown>;

/**
 * Returns the new entries. The rows of a table with one column become strings, unless the register contains objects. A
 * member of an object keeps its value if the table has no column for it; an empty cell removes the member. Throws
 * Problem `invalid-request`, which names the line, and `conflict` if several entries have the key of a row. Also throws
 * `invalid-request` if the existing entries are too many.
 */
export function importTable(table: Table, existing: readonly unknown[], options: ImportOptions): unknown[] {
  refuseLong(existing);
  const hasObjects = existing.some(isObject);
  const isText = table.columns.length === 1 && !hasObjects;
  if (!isText && !hasObjects && existing.length > 0 && options.mode === 'upsert')
    throw bodyProblem('invalid-request', 'has several columns, but the entries of the register are strings');
  const keyField = isText ? (table.columns[0] as string) : options.keyField;
  const stored = Map.groupBy(existing, (entry) => keyOf(entry, keyField));
  const toEntry = isText
    ? ({ cells }: Row) => textOf(cells[0] ?? '')
    : createObjectReader(table, existing, stored, keyField);
  const entries = imported(table, toEntry, keyField);
  for (const key of entries.keys())
    if ((stored.get(key)?.length ?? 0) > 1)
      throw new Problem('conflict', 'Several entries of the register have the same key as a row.');
  if (options.mode === 'replace') return [...entries.values()];
  const kept = existing.map((entry) => {
    const key = keyOf(entry, keyField) ?? '';
    const changed = entries.get(key);
    entries.delete(key);
    return changed ?? entry;
  });
  return [...kept, ...entries.values()];
}

/**
 * Reads the rows, and stops when the entries are too large for a register. Each entry repeats the names of the columns,
 * so the entries of a table with a long column name may be thousands of times larger than the table.
 */
function imported(table: Table, toEntry: (row: Row) => unknown, keyField: string): Map<string, unknown> {
  const entries = new Map<string, unknown>();
  let bytes = 0;
  for (const row of table.rows) {
    const entry = toEntry(row);
    const key = keyOf(entry, keyField);
    if (key === undefined) throw onLine(row, 'has no key');
    if (entries.has(key)) throw onLine(row, 'repeats the key of an earlier line');
    entries.set(key, entry);
    bytes += sizeOf(entry);
    if (bytes > maxEntriesBytes) throw invalidRequest([{ pointer: '', detail: tooLarge }]);
  }
  return entries;
}

function createObjectReader(
  { columns }: Table,
  existing: readonly unknown[],
  stored: ReadonlyMap<string | undefined, unknown[]>,
  keyField: string,
) {
  const keyColumn = columns.indexOf(keyField);
  if (keyColumn < 0) throw invalidRequest([{ pointer: '/query/keyField', detail: 'is not a column of the table' }]);
  const readers = columns.map((column) => cellReader(existing, column));
  return (row: Row): Fields => {
    const [before] = stored.get(textOf(row.cells[keyColumn] ?? '')) ?? [];
    const fields: Fields = isObject(before) ? { ...before } : {};
    for (const [index, column] of columns.entries()) {
      const cell = row.cells[index] ?? '';
      if (cell === cellOf(memberOf(fields, column))) continue;
      const value = readers[index]?.(cell, row);
      if (value === undefined) delete fields[column];
      else fields[column] = value;
    }
    return fields;
  };
}

/**
 * Returns a function that reads the cells of a column. If the column's member has the same type in all entries that
 * have it (number, boolean or JSON), the function converts cells to this type. Otherwise, it reads cells as text.
 */
function cellReader(existing: readonly unknown[], column: string): (cell: string, row: Row) => unknown {
  const values = existing
    .map((entry) => (isObject(entry) ? memberOf(entry, column) : undefined))
    .filter((value) => value != null);
  const kinds = new Set(values.map((value) => typeof value));
  const [kind] = kinds.size === 1 ? kinds : ['string'];
  if (kind === undefined || kind === 'string') return (cell) => (cell === '' ? undefined : textOf(cell));
  return (cell, row) => {
    if (cell === '') return undefined;
    const { value, reason = '' } = parseCell(cell);
    // Rejects a number that JSON would write differently from the cell, because the stored number would not match the
    // table.
    if (typeof value === kind && value !== null && (kind === 'object' || JSON.stringify(value) === cell)) return value;
    throw onLine(row, `needs ${named[kind]} in the column ${column}${kind === 'object' ? reason : ''}`);
  };
}

const named: Record<string, string> = { number: 'a number', boolean: 'true or false', object: 'JSON' };

/** Parses JSON by the rules of JSON bodies. If the text breaks one, returns the reason, which quotes nothing of it. */
function parseCell(text: string): { value?: unknown; reason?: string } {
  try {
    return parseJsonBytes(Buffer.from(text));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const first = error.errors?.[0];
    if (!first || error.slug === 'malformed-json') return {};
    return { reason: `, but ${first.pointer === '' ? 'it' : 'a part of it'} ${first.detail}` };
  }
}

function onLine({ line }: Row, detail: string): Problem {
  return bodyProblem('invalid-request', `is not valid: line ${line} ${detail}`);
}
