// Parses JSON with correct names, and can report values that would be changed or cannot be stored. JSON.parse of Node
// 26 may return a wrong name: once it has parsed {"q":1,"\\":2}, it reads the name in {"q":1,"\u0000":2} as a backslash
// (nodejs/node#63785). Only names with an escape are affected, so JSON.parse still parses every other text.
import { type FieldError, jsonPointer, listedErrors } from './http/problem.ts';
import { unstorable } from './storable-text.ts';

/** Like JSON.parse, but returns correct names. Throws SyntaxError. */
export function parseJson(text: string): unknown {
  return hasEscapedName(text) ? inspectJson(text).value : JSON.parse(text);
}

export interface InspectedJson {
  value: unknown;
  /**
   * The first errors in document order: one for each name or string that Postgres cannot store, each number that cannot
   * be kept exactly, and each name that reaches a prototype. At most `listedErrors`, and fewer if pointers are long.
   */
  errors: FieldError[];
  /** The number of all errors, including those that `errors` omits. */
  errorCount: number;
  /**
   * True if an object contains the same name twice, which RFC 7493 section 2.3 forbids. The value then has the last of
   * these members.
   */
  repeatsName: boolean;
}

/** Parses JSON and checks names, strings and numbers by their text. Slower than JSON.parse. Throws SyntaxError. */
export function inspectJson(text: string): InspectedJson {
  return new JsonParser(text).parse();
}

function hasEscapedName(text: string): boolean {
  for (let index = text.indexOf('\\'); index !== -1; index = text.indexOf('\\', index)) {
    while (index < text.length && text[index] !== '"') index += text[index] === '\\' ? 2 : 1;
    index += 1;
    while (isSpace(text.charCodeAt(index))) index += 1;
    if (text[index] === ':') return true;
  }
  return false;
}

/**
 * Total length of the pointers, in characters, after which no further error is listed. A pointer repeats all names that
 * lead to its value. A body of 1 MiB can contain a name of half a megabyte and 50,000 invalid values below it; their
 * pointers would need 25 GB.
 */
const longestPointers = 65_536;
/** Maximum depth of nesting, far below the depth that exhausts the stack. */
const deepest = 1_000;
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const literals = new Map<string, [text: string, value: unknown]>([
  ['t', ['true', true]],
  ['f', ['false', false]],
  ['n', ['null', null]],
]);

class JsonParser {
  readonly #text: string;
  readonly #path: PropertyKey[] = [];
  readonly #errors: FieldError[] = [];
  #errorCount = 0;
  #pointersLength = 0;
  #at = 0;
  #repeatsName = false;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): InspectedJson {
    const value = this.#value();
    if (this.#peek() !== '') throw malformed();
    return { value, errors: this.#errors, errorCount: this.#errorCount, repeatsName: this.#repeatsName };
  }

  #value(): unknown {
    const first = this.#peek();
    if (first === '"') {
      const value = this.#string();
      this.#report(unstorable(value));
      return value;
    }
    if (first === '{') return this.#object();
    if (first === '[') return this.#array();
    const literal = literals.get(first);
    if (!literal) return this.#number();
    const [text, value] = literal;
    if (!this.#text.startsWith(text, this.#at)) throw malformed();
    this.#at += text.length;
    return value;
  }

  #object(): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    this.#members('}', () => {
      if (this.#peek() !== '"') throw malformed();
      const name = this.#string();
      if (this.#peek() !== ':') throw malformed();
      this.#at += 1;
      this.#path.push(name);
      if (Object.hasOwn(object, name)) this.#repeatsName = true;
      this.#report(forbidden(name, this.#path.at(-2)));
      const value = this.#value();
      this.#path.pop();
      if (name === '__proto__') Object.defineProperty(object, name, { value, ...ordinary });
      else object[name] = value;
    });
    return object;
  }

  #array(): unknown[] {
    const array: unknown[] = [];
    this.#members(']', () => {
      this.#path.push(array.length);
      array.push(this.#value());
      this.#path.pop();
    });
    return array;
  }

  /** Reads comma-separated members up to the closing bracket. */
  #members(close: string, readOne: () => void): void {
    if (this.#path.length >= deepest) throw malformed();
    this.#at += 1;
    if (this.#peek() === close) {
      this.#at += 1;
      return;
    }
    for (;;) {
      readOne();
      const next = this.#peek();
      this.#at += 1;
      if (next === close) return;
      if (next !== ',') throw malformed();
    }
  }

  #string(): string {
    const text = this.#text;
    const start = this.#at;
    let isEscaped = false;
    let end = start + 1;
    for (; ; end += 1) {
      const code = text.charCodeAt(end);
      if (code === quote) break;
      // RFC 8259 section 7: control characters must be escaped. At the end of the text, the code is NaN, which also
      // throws.
      if (!(code >= 0x20)) throw malformed();
      if (code !== backslash) continue;
      isEscaped = true;
      end += 1;
    }
    this.#at = end + 1;
    // JSON.parse reads a single string correctly; the bug affects only names.
    return isEscaped ? (JSON.parse(text.slice(start, this.#at)) as string) : text.slice(start + 1, end);
  }

  #number(): number {
    numberPattern.lastIndex = this.#at;
    const [source] = numberPattern.exec(this.#text) ?? [];
    if (source === undefined) throw malformed();
    this.#at += source.length;
    const value = Number(source);
    this.#report(inexact(source, value));
    return value;
  }

  /** Skips white space and returns the next character without consuming it; at the end, an empty string. */
  #peek(): string {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1;
    return this.#text[this.#at] ?? '';
  }

  #report(detail: string | undefined): void {
    if (detail === undefined) return;
    this.#errorCount += 1;
    if (this.#errors.length === listedErrors || this.#pointersLength > longestPointers) return;
    const pointer = jsonPointer(this.#path.map((key) => (typeof key === 'string' ? key.toWellFormed() : key)));
    this.#pointersLength += pointer.length;
    this.#errors.push({ pointer, detail });
  }
}

const ordinary = { configurable: true, enumerable: true, writable: true };
const quote = 0x22;
const backslash = 0x5c;

// True for the white space that RFC 8259 section 2 defines.
function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** Returns the error for a text that is not JSON. It does not quote the text, which may contain form data. */
function malformed(): SyntaxError {
  return new SyntaxError('the text is not JSON');
}

/**
 * Returns why the name is rejected, or undefined if it is allowed. A name that reaches a prototype is dangerous: a
 * careless merge of the object would change the prototype of every object.
 */
function forbidden(name: string, parent: PropertyKey | undefined): string | undefined {
  if (name === '__proto__' || (name === 'prototype' && parent === 'constructor')) return 'is a forbidden name';
  return unstorable(name);
}

// Returns why the number cannot be kept exactly (RFC 7493 section 2.2), or undefined if it can. A number in jsonb has
// at most 16383 digits after the decimal point.
function inexact(source: string, value: number): string | undefined {
  if (!Number.isFinite(value)) return 'is too large a number';
  if (source.length > 1_000 || /e[+-]?0*[1-9]\d{3}/i.test(source)) return 'is a number with too many digits';
  if (Number.isSafeInteger(value) || !/^-?\d+$/.test(source)) return undefined;
  // JavaScript prints a large double as digits that parse to the same double. An integer that consists of these digits
  // is accepted.
  const isKept = source === String(value) || BigInt(source) === BigInt(value);
  return isKept ? undefined : 'is an integer that would be rounded; send it as a string';
}
