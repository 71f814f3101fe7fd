// Tests, without a server, which headers a proxied request and its response keep.
import { createServer, type IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { serveUpgrades } from '../../service/http/upgrades.ts';
import { connectionNames, createRequestHeaders } from './request-headers.ts';
import { droppedNames, isEventStream, responseHeaders, responseTrailers } from './response-headers.ts';

const added = {
  accessToken: 'token',
  forwarded: { address: '192.0.2.1', host: 'app.example.org', protocol: 'https' as const },
  requestId: 'id-1',
  traceparent: 'trace-1',
  isNewTrace: false,
};
const select = createRequestHeaders({ tenantHeader: 'X-Tenant', alsoDropped: ['X-Own-*'] });

/** Returns the headers of the client that the upstream receives. */
function passed(rawHeaders: string[], options: Partial<typeof added> = {}): string[] {
  const headers = Object.fromEntries(
    Array.from({ length: rawHeaders.length / 2 }, (_, index) => [
      String(rawHeaders[2 * index]).toLowerCase(),
      rawHeaders[2 * index + 1] as string,
    ]),
  );
  const list = select({ rawHeaders, headers }, { ...added, ...options });
  return list.slice(0, list.indexOf('Authorization'));
}

describe('a proxied request', () => {
  it('has the access token, the client’s address, the request id and the trace', () => {
    expect(select({ rawHeaders: [], headers: {} }, added)).toEqual([
      ...['Authorization', 'Bearer token', 'X-Forwarded-For', '192.0.2.1', 'X-Forwarded-Proto', 'https'],
      ...['X-Forwarded-Host', 'app.example.org', 'X-Request-Id', 'id-1', 'traceparent', 'trace-1'],
    ]);
    const { host: _host, ...forwarded } = added.forwarded;
    const list = select({ rawHeaders: [], headers: { 'content-length': '7' } }, {
      ...added,
      forwarded,
    } as typeof added);
    expect(list).not.toContain('X-Forwarded-Host');
    expect(list.slice(-2)).toEqual(['Content-Length', '7']);
  });

  it.each([
    ...['Connection', 'Keep-Alive', 'Proxy-Authenticate', 'Proxy-Authorization', 'Proxy-Connection', 'TE', 'Trailer'],
    ...[
      'Transfer-Encoding',
      'Upgrade',
      'HTTP2-Settings',
      'Authorization',
      'Content-Length',
      'Cookie',
      'Expect',
      'Host',
    ],
    ...[
      'Traceparent',
      'X-Request-ID',
      'X-XSRF-TOKEN',
      'X-Forwarded-For',
      'x_forwarded_for',
      'X-Tenant',
      'X-Own-Header',
    ],
  ])('has no header %s of the client', (name) => {
    for (const written of [name, name.toLowerCase(), name.toUpperCase()])
      expect(passed([written, 'x', 'Accept', '*/*'])).toEqual(['Accept', '*/*']);
    // Passes the same name again, so that the proxy uses its cached decision.
    expect(passed([name, 'x', 'Accept', '*/*'])).toEqual(['Accept', '*/*']);
  });

  it('keeps other headers as they were written, and repeated ones in their order', () => {
    const raw = ['accept', 'a', 'X-Custom', '1', 'ACCEPT', 'b', 'tracestate', 'c', 'x'.repeat(101), 'd'];
    expect(passed(raw)).toEqual(raw);
    expect(passed(raw)).toEqual(raw);
  });

  it('has no tracestate if its trace begins here', () => {
    expect(passed(['TraceState', 'a=1', 'Accept', 'x'], { isNewTrace: true })).toEqual(['Accept', 'x']);
    expect(passed(['TraceState', 'a=1'])).toEqual(['TraceState', 'a=1']);
  });

  it('has none of the headers that Connection names', () => {
    expect(passed(['Connection', 'close, X-Hop , x-other', 'x-hop', '1', 'X-Other', '2', 'X-Kept', '3'])).toEqual([
      'X-Kept',
      '3',
    ]);
    for (const text of [undefined, 'close', 'keep-alive']) expect(connectionNames(text)).toBeUndefined();
    expect(connectionNames('Upgrade, X-Hop')).toEqual(new Set(['upgrade', 'x-hop']));
  });

  it('keeps and drops the same headers after a client has sent thousands of different names', () => {
    for (let index = 0; index < 1_500; index += 1) expect(passed([`x-many-${index}`, '1'])).toHaveLength(2);
    expect(passed(['x-another', '1', 'Cookie', 'x', 'X-Late-Forwarded', '1'])).toEqual([
      ...['x-another', '1', 'X-Late-Forwarded', '1'],
    ]);
  });
});

const request = (method = 'GET', headers: Record<string, string> = {}, minor = 1) => {
  const message = new IncomingMessage(new Socket());
  Object.assign(message.headers, headers);
  return Object.assign(message, { method, httpVersionMinor: minor, httpVersion: `1.${minor}`, httpVersionMajor: 1 });
};
const json = { 'content-type': 'application/json' };

const dropped = [
  ...[
    'connection',
    'keep-alive',
    'proxy-authenticate',
    'proxy-authentication-info',
    'proxy-connection',
    'te',
    'upgrade',
  ],
  ...['set-cookie', 'set-cookie2', 'clear-site-data', 'service-worker-allowed', 'x-request-id'],
  ...['x-accel-redirect', 'x-sendfile', 'x-lighttpd-send-file', 'x-reproxy-url', 'x-reproxy-file'],
  ...['strict-transport-security', 'alt-svc', 'nel', 'report-to', 'accept-ch', 'critical-ch', 'set-login'],
  'use-as-dictionary',
  ...['secure-session-registration', 'secure-session-challenge', 'public-key-pins', 'expect-ct'],
  ...['x-content-type-options', 'access-control-allow-credentials'],
];

describe('a proxied response', () => {
  it('is tested with every header that is dropped', () => {
    // Transfer-Encoding is tested with the framing.
    const names = droppedNames.map((name) => name.toLowerCase()).filter((name) => name !== 'transfer-encoding');
    expect([...dropped].sort()).toEqual(names.sort());
  });

  it.each(dropped)('has no header %s of the upstream', (name) => {
    expect(responseHeaders({ ...json, [name]: 'x', etag: '"1"' }, 200, request())).toEqual({ ...json, etag: '"1"' });
    expect(responseTrailers({ [name]: 'x', 'x-sum': '1' })).toEqual({ 'x-sum': '1' });
  });

  it.each([
    ...['content-length', 'content-encoding', 'content-type', 'content-range', 'trailer', 'host', 'cache-control'],
    ...['location', 'vary', 'www-authenticate', 'transfer-encoding'],
  ])('has no trailer %s', (name) => {
    expect(responseTrailers({ [name]: 'x' })).toBeUndefined();
    expect(responseTrailers({ [name]: 'x', 'x-sum': '1', 'x-none': undefined })).toEqual({ 'x-sum': '1' });
  });

  it('has none of the headers that Connection names', () => {
    const headers = { ...json, connection: 'close, X-Hop', 'x-hop': '1', 'x-kept': '2' };
    expect(responseHeaders(headers, 200, request())).toEqual({ ...json, 'x-kept': '2' });
  });

  it('has none of the headers that repeated Connection headers name, and none without a value', () => {
    // Node's types declare the Connection header as a string, but undici returns a list for repeated headers.
    const connection = ['close', 'X-Hop'] as unknown as string;
    const headers = { ...json, connection, 'x-hop': '1', 'x-kept': '2', 'x-none': undefined };
    expect(responseHeaders(headers, 200, request())).toStrictEqual({ ...json, 'x-kept': '2' });
    expect(responseTrailers({ 'x-sum': '1', 'x-none': undefined })).toStrictEqual({ 'x-sum': '1' });
  });

  it('keeps Content-Length unless the status or a coding makes it meaningless', () => {
    const length = (status: number, more: object = {}) =>
      responseHeaders({ ...json, 'content-length': '7', ...more }, status, request())['content-length'];
    expect([length(200), length(206), length(304), length(404)]).toEqual(['7', '7', '7', '7']);
    expect([length(204), length(103), length(200, { 'transfer-encoding': 'chunked' })]).toEqual(
      Array(3).fill(undefined),
    );
  });

  it('announces trailers only where Node can send them', () => {
    const chunked = { ...json, trailer: 'x-sum', 'transfer-encoding': 'chunked' };
    const trailer = (status: number, of: IncomingMessage, headers: object = chunked) =>
      responseHeaders({ ...headers }, status, of).trailer;
    expect(trailer(200, request())).toBe('x-sum');
    expect(trailer(200, request('HEAD'))).toBeUndefined();
    expect(trailer(204, request())).toBeUndefined();
    expect(trailer(304, request())).toBeUndefined();
    expect(trailer(200, request('GET', {}, 0))).toBeUndefined();
    expect(trailer(200, request(), { ...json, trailer: 'x-sum' })).toBeUndefined();
  });

  it.each(['gzip', 'chunked, gzip', 'x-chunked', ''])('is refused with the transfer coding %j', (coding) => {
    expect(() => responseHeaders({ 'transfer-encoding': coding }, 200, request())).toThrow(/transfer coding/);
  });

  it.each(['chunked', ' Chunked '])('is accepted with the transfer coding %j', (coding) => {
    expect(responseHeaders({ ...json, 'transfer-encoding': coding }, 200, request())).toEqual(json);
  });

  it('switches to WebSocket only if the client asked for it', () => {
    const asked = request('GET', { upgrade: 'websocket', connection: 'Upgrade' });
    const server = createServer();
    serveUpgrades(server, () => undefined);
    server.emit('upgrade', asked, asked.socket, Buffer.alloc(0));
    const accepts = (upgrade: string, connection: string, of = asked) => {
      try {
        responseHeaders({ upgrade, connection }, 101, of);
        return true;
      } catch {
        return false;
      }
    };
    expect([accepts('websocket', 'Upgrade'), accepts('WebSocket', 'keep-alive, upgrade')]).toEqual([true, true]);
    expect([accepts('h2c', 'Upgrade'), accepts('websocket', 'close')]).toEqual([false, false]);
    expect(accepts('websocket', 'Upgrade', request())).toBe(false);
    expect(() => responseHeaders({}, 101, asked)).toThrow(/protocol/);
    for (const connection of ['close', 'keep-alive', 'x-hop'])
      expect(() => responseHeaders({ upgrade: 'websocket', connection }, 101, asked)).toThrow(/protocol/);
    expect(responseHeaders({}, 103, asked)).toEqual({});
  });

  it.each<[string, Record<string, string>, number, string | undefined]>([
    ['an HTML document', { 'content-type': 'text/html' }, 200, 'sandbox'],
    ['a document without a type', {}, 200, 'sandbox'],
    ['inert data', json, 200, undefined],
    ['inert data, which keeps the policy of the upstream', { ...json, 'content-security-policy': 'x' }, 200, 'x'],
    ['no content', {}, 204, undefined],
    ['no content of a type', { 'content-type': 'text/html' }, 204, 'sandbox'],
    ['a cached document that may be inert', {}, 304, undefined],
    ['a cached document with a policy of the upstream', { 'content-security-policy': 'x' }, 304, undefined],
    ['a cached HTML document', { 'content-type': 'text/html', 'content-security-policy': 'x' }, 304, 'sandbox'],
    ['an informational response', { 'content-security-policy': 'x' }, 103, 'x'],
  ])('restricts the scripts of %s', (_what, headers, status, policy) => {
    expect(responseHeaders(headers, status, request())['content-security-policy']).toBe(policy);
  });

  it.each<[string, Record<string, string | string[]>, number, unknown[]]>([
    [
      'lets only the session’s browser reuse it',
      { 'cache-control': 'max-age=60' },
      200,
      ['private, max-age=60', 'Cookie'],
    ],
    ['keeps its own Vary', { 'cache-control': 'private', vary: 'Accept' }, 200, ['private', 'Accept, Cookie']],
    ['does not repeat Cookie', { 'cache-control': 'Private', vary: 'cookie' }, 200, ['Private', 'cookie']],
    ['keeps a Vary that no request matches', { 'cache-control': 'private', vary: '*' }, 200, ['private', '*']],
    ['reads repeated lines', { 'cache-control': 'private', vary: ['a', 'b'] }, 200, ['private', 'a, b, Cookie']],
    ['is not changed if no cache stores it', { 'cache-control': 'No-Store' }, 200, ['No-Store', undefined]],
    ['is not changed without Cache-Control, because no-store is added', { vary: 'a' }, 200, [undefined, 'a']],
    [
      'lets shared caches reuse it as public',
      { 'cache-control': 'max-age=6, public' },
      200,
      ['max-age=6, public', 'Cookie'],
    ],
    ['lets shared caches reuse it by s-maxage', { 'cache-control': 's-maxage=60' }, 200, ['s-maxage=60', 'Cookie']],
    ['lets shared caches validate it', { 'cache-control': 'must-revalidate' }, 200, ['must-revalidate', 'Cookie']],
    ['may have an empty Cache-Control', { 'cache-control': ' ' }, 200, ['private', 'Cookie']],
    [
      'is private even if only some of its fields were',
      { 'cache-control': 'private="a, public, b", x="\\", no-store, c"' },
      200,
      ['private, private="a, public, b", x="\\", no-store, c"', 'Cookie'],
    ],
    [
      'is private if it ends within a quoted text',
      { 'cache-control': 'max-age=6, x="a, no-store' },
      200,
      ['private, max-age=6, x="a, no-store', 'Cookie'],
    ],
    [
      'is private if it only has unknown directives',
      { 'cache-control': 'x-public, public"a"' },
      200,
      ['private, x-public, public"a"', 'Cookie'],
    ],
    ['is limited as a 404', { 'cache-control': 'max-age=6' }, 404, ['private, max-age=6', 'Cookie']],
    [
      'keeps Vary of the cached response as a 304',
      { 'cache-control': 'max-age=6' },
      304,
      ['private, max-age=6', undefined],
    ],
    ['adds to Vary as a 304', { 'cache-control': 'private', vary: 'a' }, 304, ['private', 'a, Cookie']],
    ['is not limited as informational', { 'cache-control': 'max-age=6' }, 103, ['max-age=6', undefined]],
  ])('limits caches: it %s', (_what, headers, status, expected) => {
    const passedOn = responseHeaders({ ...json, ...headers } as IncomingHttpHeaders, status, request());
    expect([passedOn['cache-control'], passedOn.vary]).toEqual(expected);
  });

  it('is limited in a time that is linear in the length of Cache-Control', () => {
    const values = [`"${'\\"'.repeat(8_000)}`, `${'"'.repeat(16_001)}`, `${'x="'.repeat(5_000)}`];
    const spent = () => {
      const began = process.threadCpuUsage();
      for (const value of values) responseHeaders({ ...json, 'cache-control': value }, 200, request());
      const { user, system } = process.threadCpuUsage(began);
      return (user + system) / 1_000;
    };
    expect(Math.min(...Array.from({ length: 5 }, spent))).toBeLessThan(50);
  });

  it('is private in delivery networks, too', () => {
    const headers = { ...json, 'cdn-cache-control': 'max-age=60' };
    const limited = { 'cdn-cache-control': 'private, max-age=60', vary: 'Cookie' };
    expect(responseHeaders(headers, 200, request())).toEqual({ ...json, ...limited });
    const both = { ...headers, 'cache-control': 'no-store' };
    expect(responseHeaders(both, 200, request())).toEqual({ ...both, ...limited });
  });

  it('is an event stream if its Content-Type begins with text/event-stream', () => {
    expect(isEventStream({ 'content-type': 'text/event-stream; charset=utf-8' })).toBe(true);
    expect(isEventStream({ 'content-type': 'x-text/event-stream' })).toBe(false);
    expect(isEventStream({})).toBe(false);
  });
});
