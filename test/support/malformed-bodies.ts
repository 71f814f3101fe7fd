// Bodies that every JSON route must refuse: malformed bodies, and values that are refused at any place in a body.
import { brotliCompressSync, gzipSync } from 'node:zlib';

export interface BadBody {
  kind: string;
  body: string | Buffer<ArrayBuffer>;
  headers?: Record<string, string>;
  status: 400 | 413 | 415;
}

const bytes = (...parts: (number | string)[]): Buffer<ArrayBuffer> =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part))));
const ofType = (kind: string, type: string, body: BadBody['body'] = '{}'): BadBody => ({
  kind,
  body,
  headers: { 'content-type': type },
  status: 415,
});
const broken = (kind: string, body: BadBody['body']): BadBody => ({ kind, body, status: 400 });

/**
 * Bodies that are malformed as a whole, so that the pointer of the first error is the root. `limit` is the largest body
 * allowed, in bytes.
 */
export function malformedBodies(limit: number): BadBody[] {
  const bomb = Buffer.alloc(20 * limit, '1');
  return [
    broken('no body at all', ''),
    broken('a truncated object', '{"a":'),
    broken('a truncated string', '{"a":"b'),
    broken('white space only', '  \r\n'),
    broken('a trailing comma', '{"a":1,}'),
    broken('two values', '{}{}'),
    broken('a comment', '{"a":1/* b */}'),
    broken('single quotes', "{'a':1}"),
    broken('an unquoted name', '{a:1}'),
    broken('NaN', '{"a":NaN}'),
    broken('a hexadecimal number', '{"a":0x1F}'),
    broken('a bad escape', '{"a":"\\x41"}'),
    broken('a raw NUL in a string', bytes('{"a":"', 0, '"}')),
    broken('a raw line break in a string', '{"a":"b\nc"}'),
    broken('bytes that are no UTF-8', bytes('{"a":"', 0xc0, 0xaf, '"}')),
    broken('a surrogate encoded as UTF-8', bytes('{"a":"', 0xed, 0xa0, 0x80, '"}')),
    broken('a byte order mark', bytes(0xef, 0xbb, 0xbf, '{}')),
    broken('UTF-16', Buffer.from('{"a":1}', 'utf16le')),
    broken('an XML document', '<?xml version="1.0"?><a/>'),
    broken('objects 10,000 levels deep', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`),
    broken('100,000 open brackets', '['.repeat(100_000)),
    broken('a list', '[]'),
    broken('a list of lists', '[[{}]]'),
    broken('null', 'null'),
    broken('a text', '"data"'),
    broken('a number', '42'),
    broken('true', 'true'),
    broken('the same name twice', '{"data":{},"data":{}}'),
    broken('damaged gzip', Buffer.from(gzipSync('{}')).fill(0xff, 10)),
    { kind: 'a body beyond the limit', body: `{"a":"${'a'.repeat(limit)}"}`, status: 413 },
    { kind: 'a gzip bomb', body: gzipSync(bomb), headers: { 'content-encoding': 'gzip' }, status: 413 },
    { kind: 'a brotli bomb', body: brotliCompressSync(bomb), headers: { 'content-encoding': 'br' }, status: 413 },
    ofType('plain text', 'text/plain'),
    ofType('a form', 'application/x-www-form-urlencoded', 'a=1'),
    ofType('multipart', 'multipart/form-data; boundary=x'),
    ofType('JSON lines', 'application/json-seq'),
    ofType('another charset', 'application/json; charset=utf-16', Buffer.from('{}', 'utf16le')),
    { kind: 'an unknown content encoding', body: '{}', headers: { 'content-encoding': 'zstd' }, status: 415 },
  ];
}

/** JSON texts of values that are refused at any place in a body, with the pointer from the value to the fault. */
export const forbiddenValues: [kind: string, json: string, below: string][] = [
  ['an escaped NUL', '"a\\u0000b"', ''],
  ['an escaped NUL in a name', '{"a\\u0000b":1}', '/a\0b'],
  ['a lone high surrogate', '"\\ud800"', ''],
  ['a lone low surrogate', '["x\\udc00y"]', '/0'],
  ['surrogates in the wrong order', '"\\udc00\\ud800"', ''],
  ['a number beyond a double', '1e999', ''],
  ['a number of 400 digits', '9'.repeat(400), ''],
  ['__proto__', '{"__proto__":{"isAdmin":true}}', '/__proto__'],
  ['__proto__ with escapes', '{"\\u005f_proto__":{}}', '/__proto__'],
  ['constructor.prototype', '{"constructor":{"prototype":{"isAdmin":true}}}', '/constructor/prototype'],
];
