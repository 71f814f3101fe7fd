// Tests the framing of HTTP messages (RFC 9110, RFC 9112). The real token handler stands between a hostile client and a
// hostile upstream, which send bytes that no HTTP library would send.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { brokenResponses, oddResponses } from '../../../test/support/framing-cases.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { type RawUpstream, startRawUpstream } from '../../../test/support/raw-upstream.ts';
import { startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { answerWhenRead } from '../../../test/support/upstream.ts';

let world: TargetWorld;
let upstream: RawUpstream;
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
  upstream = await startRawUpstream();
  await world.direct('root', upstream.url);
});
afterAll(async () => {
  await world.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.forget();
  world.upstream.forget();
  world.upstream.answer = answerWhenRead;
});

interface Asking {
  method?: string;
  version?: string;
  /** Header lines that replace the Host header. */
  host?: string[];
  lines?: string[];
  body?: string;
  /** Replaces the target's address in the request line. */
  address?: string;
}

/** Sends the token handler a request for the hostile upstream, byte for byte. */
function ask({ method = 'GET', version = '1.1', host = ['Host: a'], lines = [], body = '', address }: Asking = {}) {
  const head = [
    `${method} ${address ?? '/token-handler/v1/targets/root/x'} HTTP/${version}`,
    ...host,
    `Cookie: ${world.person.cookie}`,
    `X-XSRF-TOKEN: ${world.person.csrf}`,
    ...lines,
  ];
  if (!lines.some((line) => /^connection/i.test(line))) head.push('Connection: close');
  const bytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1');
  return sendRaw(Number(new URL(world.site).port), bytes);
}

const problemOf = (body: string) => /"type":"urn:formgate:problem:([\w-]+)"/.exec(body)?.[1];
describe('a response of an upstream causes a 502, and the request is not sent again, if it', () => {
  it.each(brokenResponses)('%s', async (_name, bytes) => {
    for (const [method, lines, body] of [
      ['GET', [], ''],
      ['POST', ['Content-Length: 5'], 'hello'],
    ] as const) {
      upstream.forget();
      upstream.answer = { pieces: [bytes].flat() };
      const answer = await ask({ method, lines: [...lines], body });
      const last = answer.text.slice(answer.text.lastIndexOf('HTTP/1.1 '));
      expect([method, last.split('\r\n', 1)[0], problemOf(last)]).toEqual([
        method,
        'HTTP/1.1 502 Bad Gateway',
        'dependency-failed',
      ]);
      expect(answer.text).not.toMatch(/set-cookie|x-a:|HTTP\/1\.1 10[01]/i);
      expect([method, upstream.heads.length]).toEqual([method, 1]);
    }
  });

  it('ends in the middle of its head', async () => {
    for (const bytes of ['H', 'HTTP/1.1 200 O', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n', 'HTTP/1.1 103 X\r\n\r\n']) {
      upstream.forget();
      upstream.answer = { pieces: [bytes], close: true };
      const { text } = await ask();
      expect([bytes, text.includes('HTTP/1.1 502 Bad Gateway'), upstream.heads.length]).toEqual([bytes, true, 1]);
    }
  });

  it('consists of endless informational responses that the client does not read', async () => {
    const hints = `HTTP/1.1 103 Early Hints\r\nLink: <${'x'.repeat(4_000)}>\r\n\r\n`.repeat(100);
    // The responses have 60 MB in total, which is more than the operating system buffers for a connection.
    upstream.answer = { pieces: Array(150).fill(hints) };
    const client = connect(Number(new URL(world.site).port), '127.0.0.1').pause();
    client.write(`GET /token-handler/v1/targets/root/x HTTP/1.1\r\nHost: a\r\nCookie: ${world.person.cookie}\r\n\r\n`);
    for (let waited = 0; !upstream.isCut && waited < 60_000; waited += 20) await delay(20);
    client.destroy();
    expect(upstream.isCut).toBe(true);
    expect(world.handler.log.lines().some(({ status }) => status === 502)).toBe(true);
  });
});

describe('a pipelined request', () => {
  const line = (address: string, more: string) =>
    `GET ${address} HTTP/1.1\r\nHost: a\r\nCookie: ${world.person.cookie}\r\n${more}\r\n`;
  const target = '/token-handler/v1/targets/root/x';
  const logged = () => world.handler.log.lines().filter(({ msg }) => msg === 'request').length;

  it('gets no endless informational responses behind a response that has not begun', async () => {
    upstream.answer = { pieces: [] };
    const client = connect(Number(new URL(world.site).port), '127.0.0.1').resume();
    client.write(line(target, ''));
    await expect.poll(() => upstream.heads.length).toBe(1);
    const hint = `HTTP/1.1 103 Early Hints\r\nLink: <${'x'.repeat(4_000)}>\r\n\r\n`;
    upstream.answer = { pieces: Array(100).fill(hint) };
    client.write(line(target, ''));
    await expect.poll(() => upstream.isCut).toBe(true);
    const before = logged();
    client.destroy();
    await expect.poll(logged).toBeGreaterThan(before);
  });

  it.each([
    ['CONNECT', () => 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'],
    ['WebSocket handshake', () => line(target, 'Connection: Upgrade\r\nUpgrade: websocket\r\n')],
  ])(
    'that is a %s behind a response that has not begun ends the connection, not the process',
    async (_name, second) => {
      upstream.answer = { pieces: [] };
      const client = connect(Number(new URL(world.site).port), '127.0.0.1').resume();
      const closed = once(client, 'close');
      const before = logged();
      client.write(line(target, '') + second());
      await closed;
      // The first request has ended too, so the next request is not affected by it.
      await expect.poll(logged).toBeGreaterThan(before);
      upstream.answer = { pieces: ['HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine'] };
      expect((await ask()).body).toBe('mine');
    },
  );
});

describe('a response of an upstream is passed on', () => {
  it.each(oddResponses)('%s', async (_name, bytes, expected, asking = {}) => {
    upstream.answer = { pieces: [bytes], close: bytes.startsWith('HTTP/1.0') };
    expect((await ask(asking)).text).toMatch(expected);
    expect(upstream.heads).toHaveLength(1);
    upstream.answer = { pieces: ['HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine'] };
    for (let index = 0; index < 3; index += 1) expect((await ask()).body).toBe('mine');
  });
});

describe('a request is refused, and reaches no upstream, if it', () => {
  const refused: [string, number, Asking][] = [
    ['has two Host lines', 400, { host: ['Host: a', 'Host: a'] }],
    ['has two Host lines in another case', 400, { host: ['Host: a'], lines: ['hOST: b'] }],
    ['has no Host line', 400, { host: [] }],
    ...['', 'a b', 'a/b', 'a@b', 'a,b', 'a\tb', 'a:b', '[::1', 'a]', 'a?b', 'a#b', 'a\\b', '\u00e9', 'a:80:80'].map(
      (host): [string, number, Asking] => [`has the Host ${JSON.stringify(host)}`, 400, { host: [`Host: ${host}`] }],
    ),
    ['is in absolute form', 400, { address: 'http://a/token-handler/v1/targets/root/x' }],
    ['is CONNECT', 405, { method: 'CONNECT', address: 'example.org:443' }],
    ['is CONNECT to a target', 405, { method: 'CONNECT', address: '/token-handler/v1/targets/root/x' }],
    ['has a length that a double cannot hold', 413, { method: 'POST', lines: ['Content-Length: 9007199254740993'] }],
    ['has a length beyond 64 bits', 400, { method: 'POST', lines: ['Content-Length: 18446744073709551618'] }],
    ['has a negative length', 400, { method: 'POST', lines: ['Content-Length: -1'] }],
    ['has two lengths', 400, { method: 'POST', lines: ['Content-Length: 1', 'Content-Length: 2'], body: 'x' }],
    ['has a length and a coding', 400, { method: 'POST', lines: ['Content-Length: 1', 'Transfer-Encoding: chunked'] }],
    [
      'has a coding beside chunked',
      400,
      { method: 'POST', lines: ['Transfer-Encoding: gzip, chunked'], body: '0\r\n\r\n' },
    ],
    [
      'has a coding in HTTP/1.0',
      400,
      { method: 'POST', version: '1.0', lines: ['Transfer-Encoding: chunked'], body: '0\r\n\r\n' },
    ],
    ['folds a line', 400, { lines: ['X-A: b\r\n c'] }],
    ['ends a line with a bare line feed', 400, { lines: ['X-A: b\nX-C: d'] }],
    ['ends a line with a bare carriage return', 400, { lines: ['X-A: b\rX-C: d'] }],
    ['has a NUL in a header', 400, { lines: ['X-A: b\0'] }],
    ['has a space before a colon', 400, { lines: ['X-A : b'] }],
    ['is of another version', 400, { version: '1.9' }],
    ['expects what is not 100-continue', 400, { lines: ['Expect: tea'] }],
  ];

  it.each(refused)('%s', async (_name, status, asking) => {
    expect((await ask(asking)).status).toBe(status);
    expect(upstream.heads).toEqual([]);
  });

  it('is CONNECT, with a problem that has a request id and a log line', async () => {
    const { headers, body } = await ask({ method: 'CONNECT', address: 'example.org:443' });
    expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect([problemOf(body), headers.get('connection')]).toEqual(['method-not-allowed', 'close']);
    expect(headers.get('allow')).toMatch(/^GET, /);
    const lines = world.handler.log.lines().filter(({ method }) => method === 'CONNECT');
    expect(lines.at(-1)).toMatchObject({ status: 405, requestId: headers.get('x-request-id') });
  });
});

describe('a request is passed on', () => {
  it('with any valid Host header', async () => {
    for (const host of [
      'a',
      'www.example.ca',
      'a:',
      'a:8443',
      '127.0.0.1:80',
      '[::1]',
      '[2001:db8::1]:8443',
      'xn--bcher-kva.ca',
      'a_b.c',
      'a.',
    ])
      expect([host, (await ask({ host: [`Host: ${host}`] })).status]).toEqual([host, 200]);
  });

  it('in HTTP/1.0, with and without a Host header', async () => {
    for (const host of [[], ['Host: a']]) expect((await ask({ version: '1.0', host })).status).toBe(200);
    expect(upstream.heads.every((head) => head.includes(' HTTP/1.1'))).toBe(true);
  });

  it('as an ordinary request if it asks for an upgrade and has a body', async () => {
    const lines = ['Connection: Upgrade, close', 'Upgrade: websocket', 'Content-Length: 5'];
    expect((await ask({ lines, body: 'hello' })).status).toBe(200);
    expect(upstream.heads[0]).not.toMatch(/upgrade/i);
  });
});

describe('a WebSocket handshake', () => {
  const lines = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ];
  const switched = (head: string[]) => `HTTP/1.1 101 Switching Protocols\r\n${head.join('\r\n')}\r\n\r\nsecret`;

  it('gets 502, and opens no tunnel, if the upstream switches to another protocol', async () => {
    const heads = [
      ['Connection: Upgrade', 'Upgrade: h2c'],
      ['Connection: Upgrade', 'Upgrade: websocket, h2c'],
      ['Connection: Upgrade', 'Upgrade: h2c', 'Upgrade: websocket'],
      ['Connection: Upgrade'],
      ['Upgrade: websocket'],
      [],
    ];
    for (const head of heads) {
      upstream.forget();
      upstream.answer = { pieces: [switched(head)], close: true };
      const { text } = await ask({ lines });
      expect([head, text.split('\r\n', 1)[0]]).toEqual([head, 'HTTP/1.1 502 Bad Gateway']);
      expect(text).not.toContain('secret');
      expect(upstream.heads).toHaveLength(1);
    }
  });

  it('opens a tunnel if the upstream switches to WebSocket, in any letter case', async () => {
    upstream.answer = { pieces: [switched(['connection: keep-alive, UPGRADE', 'upgrade: WebSocket'])], close: true };
    expect((await ask({ lines })).text).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n[\s\S]+\r\n\r\nsecret$/);
  });
});
