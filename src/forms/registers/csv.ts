// Reads and writes entries as CSV (RFC 4180). The text is read and written in short steps, because the largest table
// takes half a second.
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CastingContext, CsvError, Parser } from 'csv-parse';
import { bodyProblem } from '../../service/http/body-bytes.ts';
import { Problem } from '../../service/http/problem.ts';
import { isObject, memberOf } from '../../service/json-value.ts';
import { maxEntries, refuseLong } from './register.ts';

export interface Table {
  columns: string[];
  rows: Row[];
}

export interface Row {
  /** Line of the text on which the row ends; the header is on line 1. */
  line: number;
  cells: string[];
}

const maxColumns = 100;
/**
 * Number of bytes that are parsed before the event loop may handle other work. A step of this size takes a few
 * milliseconds.
 */
const stepBytes = 16_384;
/** Number of cells that are written before the event loop may handle other work. */
const stepCells = 5_000;
/** Column names that could change the prototype of an object. They are not allowed in JSON bodies either. */
const reserved = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Parses a header and rows of the same length. The delimiter is the comma, semicolon or tab, whichever is most frequent
 * in the header. Skips empty lines. Throws Problem `invalid-request`, which names the line.
 */
export async function readTable(text: string): Promise<Table> {
  const rows: Row[] = [];
  // Number of CRLF in quoted cells. The parser counts two lines for each of them.
  let pairs = 0;
  const parser = new Parser({
    cast: (cell, context) => {
      if (context.quoting) pairs += cell.split('\r\n').length - 1;
      return trimName(cell, context);
    },
    delimiter: delimiterOf(text),
    onRecord: (cells, { lines }) => {
      if (rows.length > maxEntries) throw bodyProblem('invalid-request', `has more than ${maxEntries} rows`);
      rows.push({ line: lines - pairs, cells });
      return null;
    },
    // By default, the parser expects the line break that ends the header after all rows.
    recordDelimiter: ['\r\n', '\n', '\r'],
    skipEmptyLines: true,
  });
  try {
    // The parser emits nothing, but ends only if it is read.
    await pipeline(stepsOf(text), parser.resume());
  } catch (error) {
    throw error instanceof CsvError ? malformed(error, pairs) : error;
  }
  const [header] = rows.splice(0, 1);
  return { columns: columnsOf(header), rows };
}

async function* stepsOf(text: string): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += stepBytes) {
    yield bytes.subarray(start, start + stepBytes);
    await nextTurn();
  }
}

function delimiterOf(text: string): string {
  const header = text.slice(0, 10_000).split(/[\r\n]/, 1)[0] ?? '';
  const unquoted = header.replace(/"[^"]*"/g, '');
  const count = (delimiter: string) => unquoted.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, each) => (count(each) > count(best) ? each : best));
}

/** Trims the names of columns, except quoted names: `toCsv` quotes a member's name if a space begins or ends it. */
function trimName(cell: string, { records, quoting }: CastingContext): string {
  return records === 0 && !quoting ? cell.trim() : cell;
}

function columnsOf(header: Row | undefined): string[] {
  const columns = header?.cells.map(textOf) ?? [];
  const fail = (detail: string) => bodyProblem('invalid-request', `has a header ${detail}`);
  if (columns.length === 0) throw bodyProblem('invalid-request', 'has no header');
  if (columns.length > maxColumns) throw fail(`of more than ${maxColumns} columns`);
  if (columns.includes('')) throw fail('with an empty name');
  if (columns.some((column) => reserved.has(column))) throw fail('with a reserved name');
  if (new Set(columns).size < columns.length) throw fail('that repeats a name');
  return columns;
}

const reasons: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'begins a quoted cell that does not end',
  CSV_INVALID_CLOSING_QUOTE: 'has text after the closing quote of a cell',
  INVALID_OPENING_QUOTE: 'has a quote inside an unquoted cell',
  CSV_RECORD_INCONSISTENT_FIELDS_LENGTH: 'has another number of cells than the header',
};

// The problem omits the parser's message, because that message contains the values of cells.
function malformed({ code, lines }: CsvError & { lines?: number }, pairs: number) {
  const line = lines === undefined ? 1 : lines - pairs;
  return bodyProblem('invalid-request', `is not CSV: line ${line} ${reasons[code] ?? 'is malformed'}`);
}

/**
 * Returns entries as CSV with a header. Strings become the column `value`. Nested values become JSON, and null becomes
 * an empty cell. Throws Problem `invalid-request` if the entries need more rows or columns than an import allows. The
 * table has a cell for each column and row, so without these limits its size would grow with the square of the entries'
 * size.
 */
export async function toCsv(entries: readonly unknown[]): Promise<string> {
  refuseLong(entries);
  const rows = entries.map((entry) => (isObject(entry) ? entry : { value: entry }));
  const columns = new Set<string>();
  for (const row of rows) {
    for (const name of Object.keys(row)) columns.add(name);
    if (columns.size > maxColumns) throw tooManyColumns();
  }
  const names = columns.size > 0 ? [...columns] : ['value'];
  const lines = [names.map((name) => quoted(cellOf(name))).join(',')];
  const stepRows = Math.ceil(stepCells / names.length);
  for (const [index, row] of rows.entries()) {
    if (index % stepRows === 0) await nextTurn();
    lines.push(names.map((name) => quoted(cellOf(memberOf(row, name)))).join(','));
  }
  return `${lines.join('\r\n')}\r\n`;
}

function tooManyColumns(): Problem {
  const detail = `The entries have more than ${maxColumns} different members, too many for CSV. Read them as JSON.`;
  return new Problem('invalid-request', detail);
}

// Quotes a cell as RFC 4180 section 2 (rules 6 and 7) requires. An empty cell is quoted too, because a line that
// contains only an empty cell would be skipped.
const quoted = (cell: string) => (/^$|[",;\t\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/** Returns the text that represents a value in a cell. For strings, `textOf` is the inverse. */
export function cellOf(value: unknown): string {
  if (typeof value === 'string') return formula.test(value) ? `'${value}` : value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/**
 * Matches text that a spreadsheet would run as a formula (OWASP, CSV Injection), with or without leading apostrophes.
 * `cellOf` adds an apostrophe before such text, so that the spreadsheet treats it as text.
 */
const formula = /^'*[=+\-@\t\r]/;
const markedFormula = /^''*[=+\-@\t\r]/;

export const textOf = (cell: string) => (markedFormula.test(cell) ? cell.slice(1) : cell);
