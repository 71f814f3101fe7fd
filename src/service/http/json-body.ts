// Reads the JSON body of a request. Unlike JSON.parse, the reader rejects NUL and lone surrogates (Postgres cannot
// store them), text that is not UTF-8, numbers that a double cannot hold exactly (RFC 7493 section 2.2), deep nesting,
// repeated names in an object (section 2.3), and names that reach a prototype. The reader checks the text and not only
// the parsed value, because Formgate stores the text.
import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import { inspectJson } from '../json-parser.ts';
import { mostJsonValues, tooManyValues } from '../json-size.ts';
import { bodyProblem, type MinimumRate, readBodyBytes } from './body-bytes.ts';
import { invalidRequest, Problem } from './problem.ts';
import { hasBody } from './request-framing.ts';

/**
 * Maximum depth of nesting: more than any form needs, and far below the depth that exhausts a stack here or in
 * Postgres.
 */
export const maxDepth = 100;

export interface JsonBody {
  /** The parsed body; undefined if the request has no body. */
  value: unknown;
  /**
   * Returns the text of a member of the outermost object as it was sent, or undefined if the object has no such member.
   */
  textOf(name: string): string | undefined;
}

/** Reads the JSON body of a request. Throws Problems with status 400, 408, 413 or 415. */
export type JsonBodyReader = (request: Request, minimumRate?: () => MinimumRate) => Promise<JsonBody>;

/** Creates a reader of JSON bodies. `limit` is in bytes, and applies before and after decompression. */
export function createJsonBodyReader(limit: number): JsonBodyReader {
  return async (request, minimumRate) => {
    if (!hasBody(request)) return noBody;
    requireJson(request.headers['content-type']);
    const bytes = await readBodyBytes(request, limit, minimumRate);
    return bytes.length === 0 ? noBody : parseJsonBytes(bytes);
  };
}

export const noBody: JsonBody = { value: undefined, textOf: () => undefined };

// RFC 6839 section 3.1: the suffix +json also means JSON. RFC 8259 section 8.1: JSON between systems is UTF-8.
const jsonType = /^application\/(?:json|[\w.-]+\+json) *(?:;|$)/i;
const charset = /; *charset *= *"?([^";\s]*)/i;

function requireJson(contentType: string | undefined): void {
  if (contentType === 'application/json') return;
  if (contentType === undefined || !jsonType.test(contentType))
    throw bodyProblem('unsupported-media-type', 'must be sent as application/json');
  if (isOtherCharset(contentType)) throw bodyProblem('unsupported-media-type', 'must be JSON in UTF-8');
}

/** True if the Content-Type names a charset other than UTF-8. */
export function isOtherCharset(contentType: string): boolean {
  const given = charset.exec(contentType)?.[1]?.toLowerCase() ?? 'utf-8';
  return given !== 'utf-8' && given !== 'utf8';
}

/** Parses and checks the bytes of a body. Throws Problems with status 400 that list the invalid values. */
export function parseJsonBytes(bytes: Buffer): JsonBody {
  if (!isUtf8(bytes)) throw bodyProblem('malformed-json', 'is not UTF-8');
  const outline = outlineOf(bytes);
  if (outline.depth > maxDepth) throw bodyProblem('invalid-request', `is nested deeper than ${maxDepth} levels`);
  if (outline.values > mostJsonValues) throw bodyProblem('invalid-request', tooManyValues);
  const text = bytes.toString('utf8');
  const value = parse(text, outline);
  // In ASCII text, offsets in bytes are also offsets in characters. Slicing the text makes no copy, but decoding a
  // slice of the bytes does.
  const isAscii = text.length === bytes.length;
  const slice: Slice = (start, end) => (isAscii ? text.slice(start, end) : bytes.toString('utf8', start, end));
  return { value, textOf: (name) => memberText(slice, outline.members, name) };
}

function parse(text: string, { isPlain, names }: Outline): unknown {
  try {
    if (!isPlain) return parseInspected(text);
    const value: unknown = JSON.parse(text);
    if (countNames(value) === names) return value;
  } catch (error) {
    // The new Problem has no `cause`, because the message of the parser's error quotes the text.
    throw error instanceof Problem ? error : bodyProblem('malformed-json', 'is not well-formed JSON');
  }
  throw repeatedName();
}

function parseInspected(text: string): unknown {
  const { value, errors, errorCount, repeatsName } = inspectJson(text);
  if (errorCount > 0) throw invalidRequest(errors, errorCount);
  if (repeatsName) throw repeatedName();
  return value;
}

function repeatedName(): Problem {
  return bodyProblem('invalid-request', 'repeats a name in an object');
}

/** Returns the text between two offsets in bytes. */
type Slice = (start: number, end?: number) => string;

function memberText(slice: Slice, members: Member[], name: string): string | undefined {
  const index = members.findIndex((one) => JSON.parse(slice(one.nameStart, one.colon)) === name);
  const member = members[index];
  if (!member) return undefined;
  // A comma or a bracket follows the value, with white space around it.
  return slice(member.colon + 1, members[index + 1]?.nameStart)
    .trimEnd()
    .slice(0, -1)
    .trim();
}

interface Outline {
  depth: number;
  /** Number of commas and opening brackets outside strings: see `hasMoreValues`. */
  values: number;
  /** Number of colons outside strings. In well-formed text it equals the number of members of all objects. */
  names: number;
  /**
   * True if JSON.parse is sufficient: the text has no name with an escape, no Unicode escape (backslash u), no number
   * that a double may round, and no name that reaches a prototype.
   */
  isPlain: boolean;
  /** Members of the outermost object. */
  members: Member[];
}

/** The position of a member in the text: offsets in bytes. */
interface Member {
  nameStart: number;
  colon: number;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;
const zero = 0x30;
const nine = 0x39;
const letterE = 0x65;
const letterU = 0x75;
/** The bit that turns an upper-case ASCII letter into a lower-case one. */
const lowerCase = 0x20;
/** A double holds every integer with fewer digits than this exactly: 2 ** 53 has sixteen digits. */
const manyDigits = 16;

/** Scans the bytes once for the outline of the text. The result is meaningless for text that is not JSON. */
function outlineOf(bytes: Buffer): Outline {
  let level = 0;
  let depth = 0;
  let values = 0;
  let names = 0;
  let digits = 0;
  let isPlain = true;
  let nameStart = 0;
  let isEscaped = false;
  const members: Member[] = [];
  const { length } = bytes;
  for (let index = 0; index < length; index += 1) {
    const byte = bytes[index] as number;
    if (byte === quote) {
      if (level === 1) nameStart = index;
      isPlain &&= !beginsName(bytes, index + 1);
      isEscaped = false;
      for (index += 1; index < length && bytes[index] !== quote; index += 1)
        if (bytes[index] === backslash) {
          index += 1;
          isEscaped = true;
          isPlain &&= bytes[index] !== letterU;
        }
    } else if (byte >= zero && byte <= nine) {
      digits += 1;
      isPlain &&= digits < manyDigits;
      continue;
    } else if (byte === colon) {
      names += 1;
      isPlain &&= !isEscaped;
      if (level === 1) members.push({ nameStart, colon: index });
    } else if (byte === comma) values += 1;
    else if (byte === openObject || byte === openArray) {
      values += 1;
      depth = Math.max(depth, ++level);
    } else if (byte === closeObject || byte === closeArray) level -= 1;
    else if ((byte | lowerCase) === letterE) isPlain &&= (bytes[index - 1] as number) > nine;
    digits = 0;
  }
  return { depth, values, names, isPlain, members };
}

const [protoBegin, constructorBegin] = ['__pr', 'cons'].map((text) => Buffer.from(text).readUInt32LE());

/** True if a string begins with the first letters of `__proto__` or `constructor`, which reach a prototype. */
function beginsName(bytes: Buffer, start: number): boolean {
  const first = bytes[start];
  if ((first !== 0x5f && first !== 0x63) || start + 4 > bytes.length) return false;
  const begin = bytes.readUInt32LE(start);
  return begin === protoBegin || begin === constructorBegin;
}

function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let names = 0;
  if (Array.isArray(value)) for (const item of value) names += countNames(item);
  // Object.values would allocate an array for every object.
  else
    for (const name in value)
      if (Object.hasOwn(value, name)) names += 1 + countNames((value as Record<string, unknown>)[name]);
  return names;
}
