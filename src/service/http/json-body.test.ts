// Tests which JSON bodies are accepted, over real HTTP. Every other body gets 400, 413 or 415 with a pointer, never a
// 500.
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { anonymous, route } from './http-app.ts';
import { maxDepth } from './json-body.ts';

const limit = 65_536;
let app: ListeningApp;
let handled: number;

beforeAll(async () => {
  const echo = route({
    method: 'put',
    path: '/echo',
    summary: 'Answers what it got',
    guards: [anonymous],
    body: z.unknown(),
    responses: { 200: { description: 'The body' } },
    handle({ body }, _request, response) {
      handled += 1;
      response.json({ body: body === undefined ? 'no body' : body });
    },
  });
  const texts = route({
    method: 'put',
    path: '/texts',
    summary: 'Answers the texts of its members',
    guards: [anonymous],
    body: z.unknown(),
    responses: { 200: { description: 'The texts' } },
    handle({ bodyText }, _request, response) {
      response.json({ first: bodyText('first'), second: bodyText('second') });
    },
  });
  const strict = route({
    method: 'put',
    path: '/strict',
    summary: 'Takes an object with a list of numbers',
    guards: [anonymous],
    body: z.strictObject({ list: z.array(z.number()) }),
    responses: { 204: { description: 'Fine' } },
    handle: (_input, _request, response) => void response.status(204).end(),
  });
  handled = 0;
  app = await startApp([echo, strict, texts], { bodyLimit: limit });
});
afterAll(() => app.close());

type Body = string | Buffer<ArrayBuffer>;
interface ProblemBody {
  type: string;
  status: number;
  detail: string;
  errors?: { pointer: string; detail: string }[];
}

async function put(body: Body, headers: Record<string, string> = {}, path = '/echo') {
  const all = { 'Content-Type': 'application/json', ...headers };
  const response = await fetch(`${app.url}${path}`, { method: 'PUT', body, headers: all });
  return {
    status: response.status,
    headers: response.headers,
    json: (await response.json()) as ProblemBody & { body: unknown },
  };
}

const bytes = (...values: (number | string)[]): Buffer<ArrayBuffer> =>
  Buffer.concat(values.map((value) => (typeof value === 'number' ? Buffer.from([value]) : Buffer.from(value))));
const nested = (open: string, close: string, levels: number) => `${open.repeat(levels)}1${close.repeat(levels)}`;

interface Refused {
  kind: string;
  body: Body;
  headers?: Record<string, string>;
  status: number;
  slug: string;
  pointer: string;
}

const malformed = (kind: string, body: Body): Refused => ({
  kind,
  body,
  status: 400,
  slug: 'malformed-json',
  pointer: '',
});
const invalid = (kind: string, pointer: string, body: Body): Refused => ({
  kind,
  body,
  status: 400,
  slug: 'invalid-request',
  pointer,
});
const unsupported = (kind: string, headers: Record<string, string>, body: Body = '{}'): Refused => ({
  kind,
  body,
  headers,
  status: 415,
  slug: 'unsupported-media-type',
  pointer: '',
});
const tooLarge = (kind: string, body: Body, headers: Record<string, string> = {}): Refused => ({
  kind,
  body,
  headers,
  status: 413,
  slug: 'body-too-large',
  pointer: '',
});

const cases: Refused[] = [
  malformed('a truncated object', '{"a":'),
  malformed('a truncated string', '{"a":"b'),
  malformed('a string that ends in a backslash', '"a\\'),
  malformed('white space only', '  \r\n'),
  malformed('a trailing comma', '[1,]'),
  malformed('two values', '{}{}'),
  malformed('text after the value', '{} x'),
  malformed('a comment', '{"a":1/* b */}'),
  malformed('single quotes', "{'a':1}"),
  malformed('an unquoted name', '{a:1}'),
  malformed('NaN', '[NaN]'),
  malformed('Infinity', '[-Infinity]'),
  malformed('undefined', 'undefined'),
  malformed('a number with leading zeros', '[007]'),
  malformed('a hexadecimal number', '[0x1F]'),
  malformed('a number without digits after its point', '[1.]'),
  malformed('a bad escape', '"\\x41"'),
  malformed('a half \\u escape', '"\\u12"'),
  malformed('a raw line break in a string', '"a\nb"'),
  malformed('a raw NUL in a string', bytes('"a', 0, 'b"')),
  malformed('a raw NUL between values', bytes('[1,', 0, '2]')),
  malformed('a form', 'a=1&b=2'),
  malformed('an XML document', '<?xml version="1.0"?><a/>'),
  malformed('closing brackets only', ']]]]}}}}'),
  malformed('a lone continuation byte', bytes('"', 0x80, '"')),
  malformed('an overlong encoding of a slash', bytes('"', 0xc0, 0xaf, '"')),
  malformed('a surrogate encoded as UTF-8', bytes('"', 0xed, 0xa0, 0x80, '"')),
  malformed('a code point beyond Unicode', bytes('"', 0xf4, 0x90, 0x80, 0x80, '"')),
  malformed('Latin-1 text', bytes('"caf', 0xe9, '"')),
  malformed('a byte order mark', bytes(0xef, 0xbb, 0xbf, '{}')),
  malformed('UTF-16 without a charset', Buffer.from('{"a":1}', 'utf16le')),
  malformed('UTF-16 with a byte order mark', Buffer.from('\ufeff{"a":1}', 'utf16le')),
  malformed('gzip without a Content-Encoding', gzipSync('{}')),

  invalid('arrays 10,000 levels deep', '', nested('[', ']', 10_000)),
  invalid('objects 10,000 levels deep', '', nested('{"a":', '}', 10_000)),
  invalid('30,000 open brackets', '', '['.repeat(30_000)),
  invalid('one level too many', '', nested('[', ']', maxDepth + 1)),
  invalid('an escaped NUL in a value', '/a/0', '{"a":["\\u0000"]}'),
  invalid('an escaped NUL in a name', '/a\0b', '{"a\\u0000b":1}'),
  invalid('a lone high surrogate in a value', '/a', '{"a":"\\ud800"}'),
  invalid('a lone low surrogate in a value', '/a', '{"a":"x\\udc00y"}'),
  invalid('surrogates in the wrong order', '/0', '["\\udc00\\ud800"]'),
  invalid('a lone surrogate in a name', '/\ufffd', '{"\\ud83d":1}'),
  invalid('a lone surrogate as the whole body', '', '"\\uDBFF"'),
  invalid('a number beyond a double', '/a', '{"a":1e999}'),
  invalid('a negative number beyond a double', '/0', '[-1E+400]'),
  invalid('a number of 400 digits', '/n', `{"n":${'9'.repeat(400)}}`),
  invalid('a number that only an endless fraction could tell from zero', '/n', '{"n":1e-99999999999}'),
  invalid('a number of 2,000 digits after its point', '/n', `{"n":0.${'1'.repeat(2_000)}}`),
  invalid('the name __proto__', '/__proto__', '{"__proto__":{"admin":true}}'),
  invalid('the name __proto__ far inside', '/a/0/__proto__', '{"a":[{"__proto__":1}]}'),
  invalid('the name __proto__ with an escaped underscore', '/__proto__', '{"\\u005f_proto__":{}}'),
  invalid(
    'the name __proto__ with every letter escaped',
    '/__proto__',
    `{"${[...'__proto__'].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join('')}":1}`,
  ),
  invalid('constructor.prototype', '/constructor/prototype', '{"constructor":{"prototype":{"admin":true}}}'),
  invalid(
    'constructor.prototype with escapes',
    '/a/constructor/prototype',
    '{"a":{"con\\u0073tructor":{"proto\\u0074ype":1}}}',
  ),
  invalid('the same name twice', '', '{"role":"applicant","role":"form-admin"}'),
  invalid('the same name twice, once escaped', '', '{"a":1,"\\u0061":2}'),
  invalid('the same name twice, far inside', '', '{"a":[[{"b":{"c":":","c":1}}]]}'),

  tooLarge('a declared length beyond the limit', `"${'a'.repeat(limit)}"`),
  tooLarge('a gzip bomb', gzipSync(Buffer.alloc(20_000_000, '1')), { 'Content-Encoding': 'gzip' }),
  tooLarge('a deflate bomb', deflateSync(Buffer.alloc(20_000_000, '1')), { 'Content-Encoding': 'deflate' }),
  tooLarge('a brotli bomb', brotliCompressSync(Buffer.alloc(20_000_000, '1')), { 'Content-Encoding': 'br' }),

  unsupported('no content type', { 'Content-Type': '' }),
  unsupported('plain text', { 'Content-Type': 'text/plain' }),
  unsupported('a form by its type', { 'Content-Type': 'application/x-www-form-urlencoded' }, 'a=1'),
  unsupported('multipart', { 'Content-Type': 'multipart/form-data; boundary=x' }),
  unsupported('a type that only begins like JSON', { 'Content-Type': 'application/jsonp' }),
  unsupported('JSON lines', { 'Content-Type': 'application/json-seq' }),
  unsupported('two types in one header', { 'Content-Type': 'text/plain, application/json' }),
  unsupported(
    'charset UTF-16',
    { 'Content-Type': 'application/json; charset=utf-16' },
    Buffer.from('"\\u0000"', 'utf16le'),
  ),
  unsupported('charset UTF-16 in quotes', { 'Content-Type': 'application/json; charset="UTF-16LE"' }),
  unsupported('charset Latin-1', { 'Content-Type': 'application/json;charset=iso-8859-1' }),
  unsupported('an unknown content encoding', { 'Content-Encoding': 'zstd' }),
  unsupported('two content encodings', { 'Content-Encoding': 'gzip, gzip' }, gzipSync(gzipSync('{}'))),
];

describe('a rejected body', () => {
  it.each(cases)('$kind gets $status with the pointer $pointer', async ({ body, headers, status, slug, pointer }) => {
    const before = handled;
    const answer = await put(body, headers);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(answer.json.type).toBe(`urn:formgate:problem:${slug}`);
    expect(answer.json.errors?.[0]?.pointer).toBe(pointer);
    expect(handled).toBe(before);
  });

  it('of damaged gzip gets 400 with the pointer of the whole body', async () => {
    const damaged = Buffer.from(gzipSync('{"a":1}'));
    damaged.fill(0xff, 10);
    const { status, json } = await put(damaged, { 'Content-Encoding': 'gzip' });
    expect([status, json.errors?.[0]?.pointer]).toEqual([400, '']);
  });

  it('with a declared length beyond the limit gets a response before it is sent', async () => {
    const head = `PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${limit + 1}\r\n\r\n`;
    const { status, body } = await sendRaw(app.port, head);
    expect(status).toBe(413);
    expect(JSON.parse(body)).toMatchObject({ errors: [{ pointer: '', detail: `is larger than ${limit} bytes` }] });
  });

  it('of endless chunks gets 413 as soon as it exceeds the limit', async () => {
    const head =
      'PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const chunk = `${(16_384).toString(16)}\r\n${'['.repeat(16_384)}\r\n`;
    const { status, body } = await sendRaw(app.port, head + chunk.repeat(5));
    expect(status).toBe(413);
    expect(JSON.parse(body)).toMatchObject({ errors: [{ pointer: '' }] });
  });

  it('that the client cuts off gets 400 and is not handled', async () => {
    const before = handled;
    const head = 'PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n';
    const { status } = await sendRaw(app.port, `${head}{"a":1`, { cut: true });
    expect(status).toBe(400);
    expect(handled).toBe(before);
  });

  it('with broken chunked framing gets 400 and is not handled', async () => {
    const before = handled;
    const head =
      'PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect((await sendRaw(app.port, `${head}zz\r\n{}\r\n0\r\n\r\n`)).status).toBe(400);
    const both = head.replace('Transfer', 'Content-Length: 2\r\nTransfer');
    expect((await sendRaw(app.port, `${both}2\r\n{}\r\n0\r\n\r\n`)).status).toBe(400);
    expect(handled).toBe(before);
  });

  it('gets at most a hundred errors and the number of the others', async () => {
    const { json } = await put(`[${Array(1_000).fill('"\\u0000"').join()}]`);
    expect(json.errors).toHaveLength(100);
    expect(json.detail).toBe('/0: contains a NUL character (and 999 more)');
    const wrong = await put(`{"list":[${Array(1_000).fill('"a"').join()}]}`, {}, '/strict');
    expect([wrong.status, wrong.json.errors?.length]).toEqual([400, 100]);
  });

  it('gets few errors if their pointers are long, and the number of the others', async () => {
    const name = 'x'.repeat(40_000);
    const { status, json } = await put(`{"${name}":[${Array(2_000).fill('"\\u0000"').join()}]}`);
    expect(status).toBe(400);
    expect(json.errors?.map(({ pointer }) => pointer)).toEqual([`/${name}/0`, `/${name}/1`]);
    expect(json.detail).toBe(`/${name}/0: contains a NUL character (and 1999 more)`);
  });

  it('is not quoted in the response or in the log', async () => {
    const { json } = await put('{"email":"canary@example.org" oops');
    expect(JSON.stringify(json)).not.toContain('canary');
    expect(app.text()).not.toContain('canary');
  });

  it('of the wrong shape gets 400 with a pointer for each invalid field', async () => {
    const answer = await put('{"list":[1,"2",null],"extra":true}', {}, '/strict');
    expect(answer.status).toBe(400);
    expect(answer.json.errors?.map(({ pointer }) => pointer)).toEqual(['/list/1', '/list/2', '/extra']);
    for (const scalar of ['1', '"a"', 'null', 'true', '[]']) {
      const { status, json } = await put(scalar, {}, '/strict');
      expect([scalar, status, json.errors?.[0]?.pointer]).toEqual([scalar, 400, '']);
    }
  });

  it('that is missing gets 400 with the pointer of the whole body', async () => {
    for (const framing of ['', 'Content-Length: 0\r\n', 'Transfer-Encoding: chunked\r\n']) {
      const chunks = framing.startsWith('Transfer') ? '0\r\n\r\n' : '';
      const text = `PUT /strict HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${framing}\r\n${chunks}`;
      const { status, body } = await sendRaw(app.port, text);
      expect([framing, status]).toEqual([framing, 400]);
      expect(JSON.parse(body)).toMatchObject({ errors: [{ pointer: '' }] });
    }
  });
});

describe('an accepted body', () => {
  it.each([
    ['a scalar', '42', 42],
    ['null', 'null', null],
    ['an empty string', '""', ''],
    ['a pair of surrogates', '"\\ud83d\\ude00"', '😀'],
    [
      'a name that only looks like a prototype',
      '{"proto":1,"prototype":2,"constructor":"builder"}',
      { proto: 1, prototype: 2, constructor: 'builder' },
    ],
    ['the largest double', '1.7976931348623157e308', Number.MAX_VALUE],
    ['a number too small for a double, as zero', '1e-999', 0],
    ['the deepest nesting', nested('[', ']', maxDepth), JSON.parse(nested('[', ']', maxDepth))],
    ['the same name in different objects', '[{"a":1},{"a":2}]', [{ a: 1 }, { a: 2 }]],
    ['colons and brackets inside strings', '{"a:b":"[{:\\"}]"}', { 'a:b': '[{:"}]' }],
  ])('%s is accepted unchanged', async (_kind, text, value) => {
    expect(await put(text)).toMatchObject({ status: 200, json: { body: value } });
  });

  it.each([
    ['application/json; charset=UTF-8'],
    ['application/json;charset="utf-8"'],
    ['APPLICATION/JSON'],
    ['application/vnd.api+json'],
    ['application/merge-patch+json; charset=utf8'],
  ])('the content type %s is JSON', async (type) => {
    expect((await put('{"a":1}', { 'Content-Type': type })).json.body).toEqual({ a: 1 });
  });

  it('gzip, deflate and brotli are decompressed', async () => {
    const text = JSON.stringify({ a: 'b'.repeat(5_000) });
    const codings = { gzip: gzipSync(text), deflate: deflateSync(text), br: brotliCompressSync(text), identity: text };
    for (const [coding, body] of Object.entries(codings))
      expect((await put(body, { 'Content-Encoding': coding })).json.body).toEqual(JSON.parse(text));
  });

  it('may have exactly the size of the limit, declared or in chunks', async () => {
    const text = `"${'a'.repeat(limit - 2)}"`;
    expect((await put(text)).status).toBe(200);
    const head =
      'PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const { status } = await sendRaw(app.port, `${head}${limit.toString(16)}\r\n${text}\r\n0\r\n\r\n`);
    expect(status).toBe(200);
  });

  it.each(['9007199254740993', '-9007199254740993', '12345678901234567890', '[1, {"a": 100000000000000000001}]'])(
    'an integer that a double would round gets 400, and is accepted as a string: %s',
    async (text) => {
      const { status, json } = await put(text);
      expect(status).toBe(400);
      expect(json.errors?.[0]?.detail).toContain('would be rounded');
      expect((await put(text.replace(/-?\d{16,}/, '"$&"'))).status).toBe(200);
    },
  );

  it.each([
    '9007199254740992',
    '100000000000000000000',
    '123456789012345670000',
    '1180591620717411303424',
    '0.12345678901234567',
  ])('keeps a number that a double holds or that JavaScript wrote: %s', async (text) => {
    const { status, json } = await put(text);
    expect([status, json.body]).toEqual([200, Number(text)]);
  });

  it('keeps every value that JSON can express and Postgres can store', async () => {
    const storable = fc
      .json({ maxDepth: 6, stringUnit: 'binary' })
      .filter((text) => !/\\u0000|\\ud[89a-f]/i.test(text) && !text.includes('__proto__'));
    await fc.assert(
      fc.asyncProperty(storable, async (text) => {
        const answer = await put(text);
        expect(answer.status).toBe(200);
        expect(JSON.stringify(answer.json.body)).toBe(JSON.stringify(JSON.parse(text)));
      }),
      { numRuns: 300 },
    );
  });

  it('gets 200, 400 or 413, but never 500, for random bytes', async () => {
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.string({ unit: fc.constantFrom(...'{}[]":,\\u0e19-. "\0'), maxLength: 60 }).map((text) => Buffer.from(text)),
    );
    await fc.assert(
      fc.asyncProperty(noise, async (body) => {
        const { status } = await put(Buffer.from(body));
        expect([200, 400, 413]).toContain(status);
      }),
      { numRuns: 500 },
    );
  });
});

describe('the text of a member', () => {
  const textsOf = async (body: Body) => (await put(body, {}, '/texts')).json as unknown;

  it('is the text that was sent, with every digit and escape', async () => {
    const body =
      '\r\n{ "a": {"first": 0},\t"fi\\u0072st" : { "n": 1.0, "d":0.10000000000000000555 } ,"second":"\\u00e9 ,}é" }\n';
    expect(await textsOf(body)).toEqual({
      first: '{ "n": 1.0, "d":0.10000000000000000555 }',
      second: '"\\u00e9 ,}é"',
    });
  });

  it('is undefined without the member, in a list and without a body', async () => {
    expect(await textsOf('{"second":[]}')).toEqual({ second: '[]' });
    expect([await textsOf('[{"first":1}]'), await textsOf('""'), await textsOf('')]).toEqual([{}, {}, {}]);
  });

  it('equals the member when it is parsed, for random JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json(), fc.jsonValue(), fc.constantFrom('', ' ', '\n\t'), async (text, other, space) => {
        const body = `{${space}"x"${space}:${JSON.stringify(other)},"first"${space}:${space}${text}${space}}`;
        const { status, json } = await put(body, {}, '/texts');
        if (status === 200) expect((json as unknown as { first: string }).first).toBe(text.trim());
      }),
      { numRuns: 60 },
    );
  });
});
