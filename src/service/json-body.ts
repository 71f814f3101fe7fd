// Reads a request's JSON body and refuses what JSON.parse lets through but nothing after it can hold: text that is not
// UTF-8, NUL and lone surrogates (Postgres stores neither), numbers beyond a double, nesting without end, and keys that
// reach a prototype. A body without any of these is scanned once, byte by byte, and never walked.
import { isUtf8 } from 'node:buffer';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { type FieldError, invalidRequest, jsonPointer, Problem } from './problem.ts';

/** Deeper than any form that a person fills in, far below what exhausts a stack here or in Postgres. */
export const maxDepth = 100;

/** Resolves with the parsed body, undefined when the request has none. Throws Problems with status 400, 413 or 415. */
export type JsonBodyReader = (request: Request, response: Response) => Promise<unknown>;

/** `limit` is in bytes and holds after decompression as well. */
export function createJsonBodyReader(limit: number): JsonBodyReader {
  const suspects = new WeakSet<object>();
  const parser = express.json({
    limit,
    strict: false,
    type: () => true,
    verify: (request, _response, bytes) => {
      if (!isUtf8(bytes)) throw invalidRequest([{ pointer: '', detail: 'is not UTF-8' }]);
      if (scan(bytes)) suspects.add(request);
    },
  });
  return async (request, response) => {
    if (!hasBody(request)) return undefined;
    if (!isJson(request.headers['content-type']))
      throw new Problem('unsupported-media-type', 'The body must be sent as application/json.');
    await run(parser, request, response);
    const body: unknown = request.body;
    if (suspects.has(request)) refuseUnstorable(body);
    return body;
  };
}

// RFC 9112 section 6: a request has a body when it says how long it is or that it is chunked.
function hasBody(request: Request): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

// RFC 6839 section 3.1: a +json suffix is JSON as well.
function isJson(contentType: string | undefined): boolean {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type);
}

function run(middleware: RequestHandler, request: Request, response: Response): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  middleware(request, response, (error?: unknown) => (error ? reject(error) : resolve()));
  return promise;
}

const [quote, backslash, openArray, closeArray, openObject, closeObject] = Buffer.from('"\\[]{}');

/** Throws on deep nesting; answers whether the parsed value must be walked. */
function scan(bytes: Buffer): boolean {
  let depth = 0;
  let inString = false;
  let hugeNumber = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (inString) {
      if (byte === backslash) index += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === openArray || byte === openObject) {
      depth += 1;
      if (depth > maxDepth) throw invalidRequest([{ pointer: '', detail: `is nested deeper than ${maxDepth} levels` }]);
    } else if (byte === closeArray || byte === closeObject) depth -= 1;
    else if (isExponent(byte) && isDigit(bytes[index - 1])) hugeNumber = true;
  }
  return hugeNumber || bytes.includes('\\u') || bytes.includes('__proto__') || bytes.includes('"constructor"');
}

const isExponent = (byte: number | undefined) => byte === 0x65 || byte === 0x45;
const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 0x30 && byte <= 0x39;

function refuseUnstorable(body: unknown): void {
  const errors: FieldError[] = [];
  collect(body, [], errors);
  if (errors.length > 0) throw invalidRequest(errors);
}

function collect(value: unknown, path: PropertyKey[], errors: FieldError[]): void {
  const detail = unstorable(value);
  if (detail) errors.push({ pointer: jsonPointer(path), detail });
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    const inKey = key === '__proto__' ? 'is a forbidden name' : unstorable(key);
    if (inKey) errors.push({ pointer: jsonPointer([...path, key.toWellFormed()]), detail: inKey });
    else collect(member, [...path, key], errors);
  }
  const constructor = Object.hasOwn(value, 'constructor') ? (value as { constructor: unknown }).constructor : undefined;
  if (typeof constructor === 'object' && constructor !== null && Object.hasOwn(constructor, 'prototype'))
    errors.push({ pointer: jsonPointer([...path, 'constructor', 'prototype']), detail: 'is a forbidden name' });
}

function unstorable(value: unknown): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return 'is too large a number';
  if (typeof value !== 'string') return undefined;
  if (value.includes('\0')) return 'holds a NUL character';
  return value.isWellFormed() ? undefined : 'holds a lone surrogate';
}
