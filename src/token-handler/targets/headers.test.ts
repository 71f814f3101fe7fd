// Tests which headers of requests and responses are forwarded. The real token handler stands between a client and an
// upstream that records requests.
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { type Sending, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { answerWhenRead } from '../../../test/support/upstream.ts';
import { untrustedHeaders } from './untrusted-headers.ts';

let world: TargetWorld;
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
});
afterAll(() => world.close());
beforeEach(() => {
  world.upstream.forget();
  world.upstream.answer = answerWhenRead;
});

const seenWith = async (headers: NonNullable<Sending['headers']>) => {
  expect((await world.send({ headers })).status).toBe(200);
  return world.upstream.last().headers;
};

describe('request headers', () => {
  it('the session cookie, the CSRF token and the tenant header are not forwarded, not even with underscores in their names', async () => {
    const seen = await seenWith({ 'X-PLATFORM-TENANT': 'Demo', X_XSRF_TOKEN: 'x', X_Platform_Tenant: 'x' });
    const names = Object.keys(seen);
    for (const name of ['cookie', 'x-xsrf-token', 'x-platform-tenant', 'x_xsrf_token', 'x_platform_tenant'])
      expect(names).not.toContain(name);
    expect(JSON.stringify(world.upstream.last().rawHeaders)).not.toContain(world.person.csrf);
  });

  it('the access token replaces the client’s Authorization header', async () => {
    const seen = await seenWith({ Authorization: 'Bearer mine', Proxy_Authorization: 'x' });
    expect(seen.authorization).toMatch(/^Bearer eyJ/);
    expect(world.upstream.last().rawHeaders.filter((name) => name.toLowerCase() === 'authorization')).toHaveLength(1);
  });

  it('headers about the origin of the request, such as Forwarded, are replaced by the token handler’s X-Forwarded headers', async () => {
    const seen = await seenWith({
      'X-Forwarded-For': '203.0.113.9',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'www.example.ca',
      'X-Forwarded-Prefix': '/evil',
      'X-Forwarded-Server': 'x',
      X_Forwarded_For: '1.2.3.4',
      Forwarded: 'for=1.2.3.4',
      'X-Original-URL': '/admin',
      'X-Rewrite-URL': '/admin',
    });
    // Loopback addresses are trusted proxies by default, so the token handler trusts the test's X-Forwarded headers.
    expect(seen).toMatchObject({
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'www.example.ca',
    });
    for (const name of [
      'x-forwarded-prefix',
      'x-forwarded-server',
      'x_forwarded_for',
      'forwarded',
      'x-original-url',
      'x-rewrite-url',
    ])
      expect(seen).not.toHaveProperty(name);
  });

  it('headers in which a client could claim an identity, an address, a method or a path are dropped', async () => {
    // Sends the name patterns themselves as header names, because `*` is a valid character in header names.
    const names = untrustedHeaders.flatMap((group) => [...group.names]);
    const written = [...names, ...names.map((name) => name.replaceAll('-', '_').toUpperCase())];
    const seen = await seenWith(Object.fromEntries(written.map((name) => [name, 'claimed'])));
    expect(Object.entries(seen).filter(([, value]) => value === 'claimed')).toEqual([]);
    for (const name of ['x-azure-clientip', 'remote-user', 'x-remote-user', 'x-auth-request-user', 'x-forwarded'])
      expect(await seenWith({ [name]: 'claimed' })).not.toHaveProperty(name);
    for (const name of ['x-envoy-external-address', 'x-http-method-override', 'x-real-ip', 'cf-connecting-ip', 'proxy'])
      expect(await seenWith({ [name]: 'claimed' })).not.toHaveProperty(name);
  });

  it('headers that TARGET_DROPPED_HEADERS lists are dropped, too', async () => {
    const { url, close } = await world.replica({ TARGET_DROPPED_HEADERS: 'X-Staff-Id, x-internal-*' });
    const headers = { 'x_staff.id': '1', 'X-Internal-Role': '1', 'X-Staff-Idea': '1', 'X-Real-IP': '1' };
    expect((await world.send({ url, headers })).status).toBe(200);
    await close();
    const seen = world.upstream.last().headers;
    expect(seen).toHaveProperty('x-staff-idea');
    for (const name of ['x_staff.id', 'x-internal-role', 'x-real-ip']) expect(seen).not.toHaveProperty(name);
  });

  it('X-Forwarded headers from a peer that is not a trusted proxy are ignored', async () => {
    const replica = await world.replica({ TRUSTED_PROXIES: '0' });
    onTestFinished(() => replica.close());
    const headers = {
      'X-Forwarded-For': '203.0.113.9',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'www.example.ca',
    };
    expect((await world.send({ url: replica.url, headers })).status).toBe(200);
    expect(world.upstream.last().headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': new URL(replica.url).host,
    });
  });

  it('X-Forwarded-For is sent as unknown if a trusted proxy reports something that is not an address', async () => {
    for (const claimed of ['<script>', '_hidden', 'unknown'])
      expect((await seenWith({ 'X-Forwarded-For': claimed }))['x-forwarded-for']).toBe('unknown');
    for (const [claimed, told] of [
      ['2001:db8::1', '2001:db8::1'],
      ['[2001:db8::1]:443', '2001:db8::1'],
      ['1.2.3.4:5678', '1.2.3.4'],
    ])
      expect((await seenWith({ 'X-Forwarded-For': claimed }))['x-forwarded-for']).toBe(told);
  });

  it('Host is the host of the upstream, and X-Forwarded-Host the one that the client requested', async () => {
    expect((await seenWith({ Host: 'www.example.ca' })).host).toBe(new URL(world.upstream.url).host);
    expect(world.upstream.last().headers['x-forwarded-host']).toBe('www.example.ca');
  });

  it('hop-by-hop headers, and the headers that Connection lists, are dropped', async () => {
    const seen = await seenWith({
      Connection: 'keep-alive, X-Secret-Hop, authorization, x-keep',
      'X-Secret-Hop': '1',
      'X-Keep': '1',
      'X-Other': '2',
      'Keep-Alive': 'timeout=5',
      'Proxy-Connection': 'keep-alive',
      'Proxy-Authorization': 'Basic x',
      'Proxy-Authenticate': 'x',
      TE: 'trailers',
      'HTTP2-Settings': 'x',
      Upgrade: 'h2c',
    });
    const names = [
      'x-secret-hop',
      'x-keep',
      'keep-alive',
      'proxy-connection',
      'proxy-authorization',
      'proxy-authenticate',
    ];
    for (const name of [...names, 'te', 'http2-settings', 'upgrade']) expect(seen).not.toHaveProperty(name);
    expect(seen).toMatchObject({
      connection: 'keep-alive',
      'x-other': '2',
      authorization: expect.stringMatching(/^Bearer/),
    });
  });

  it('Expect: 100-continue is handled by the token handler and not forwarded', async () => {
    const { status } = await world.send({ method: 'POST', body: 'x', headers: { Expect: '100-continue' } });
    expect(status).toBe(200);
    expect(world.upstream.last().headers).not.toHaveProperty('expect');
    expect(world.upstream.last().body).toBe('x');
  });

  it('all other headers are forwarded unchanged, including repeated headers and non-ASCII bytes', async () => {
    const { status } = await world.send({
      headers: {
        'X-Two': ['a', 'b'],
        'If-None-Match': '"x"',
        Accept: '*/*',
        'Accept-Encoding': 'br',
        Origin: world.site,
        'X-Latin': '\u00e9',
        Range: 'bytes=0-1',
        baggage: 'a=b',
      },
    });
    expect(status).toBe(200);
    const { headers, rawHeaders } = world.upstream.last();
    expect(rawHeaders.filter((name) => name === 'X-Two')).toHaveLength(2);
    expect(headers).toMatchObject({
      'if-none-match': '"x"',
      accept: '*/*',
      'accept-encoding': 'br',
      origin: world.site,
      'x-latin': '\u00e9',
      range: 'bytes=0-1',
      baggage: 'a=b',
    });
  });

  it('a valid X-Request-Id from a trusted proxy is forwarded, and otherwise a new id is generated', async () => {
    const trusted = await world.send({ headers: { 'X-Request-Id': 'mine', X_Request_Id: 'theirs' } });
    expect(trusted.headers['x-request-id']).toBe('mine');
    expect(world.upstream.last().headers).toMatchObject({ 'x-request-id': 'mine' });
    expect(Object.keys(world.upstream.last().headers)).not.toContain('x_request_id');
    const made = await world.send({ headers: { 'X-Request-Id': 'not valid' } });
    expect(made.headers['x-request-id']).toMatch(/^[\da-f-]{36}$/);
    expect(world.upstream.last().headers['x-request-id']).toBe(made.headers['x-request-id']);
  });

  it('a valid traceparent is forwarded with its tracestate, and otherwise a new traceparent is generated', async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    expect(await seenWith({ traceparent, tracestate: 'a=1' })).toMatchObject({ traceparent, tracestate: 'a=1' });
    const made = await world.send();
    const trace = String(made.headers['x-request-id']).replaceAll('-', '');
    expect(world.upstream.last().headers.traceparent).toMatch(new RegExp(`^00-${trace}-[\\da-f]{16}-00$`));
    const replaced = await seenWith({ traceparent: 'nonsense', tracestate: 'a=1', 'X-Request-Id': 'mine' });
    expect(replaced.traceparent).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-00$/);
    expect(replaced).not.toHaveProperty('tracestate');
  });
});

describe('response headers', () => {
  const answered = async (headers: Record<string, string | string[]>, status = 200) => {
    world.upstream.answer = (_request, response) => void response.writeHead(status, headers).end();
    return world.send();
  };

  it('Set-Cookie is not returned to the client', async () => {
    const { headers, rawHeaders } = await answered({
      'Set-Cookie': ['formgate_session=x; Path=/', 'b=c'],
      'Set-Cookie2': 'x',
    });
    expect(headers).not.toHaveProperty('set-cookie');
    expect(rawHeaders.join()).not.toMatch(/set-cookie/i);
  });

  it('hop-by-hop headers, and the headers that Connection lists, are dropped', async () => {
    const { headers } = await answered({
      Connection: 'close, X-Hop',
      'X-Hop': '1',
      'Proxy-Authenticate': 'Basic',
      Upgrade: 'h2c',
      'X-Kept': '1',
    });
    for (const name of ['x-hop', 'proxy-authenticate', 'upgrade']) expect(headers).not.toHaveProperty(name);
    expect(headers).toMatchObject({ 'x-kept': '1', connection: 'keep-alive' });
  });

  it('all other headers are returned unchanged, and take precedence over those of the token handler', async () => {
    const { status, headers } = await answered(
      {
        'Cache-Control': 'private, max-age=60',
        ETag: '"1"',
        Location: 'http://upstream.example/x',
        Link: ['<a>', '<b>'],
        'WWW-Authenticate': 'Bearer',
        Vary: 'Accept, Cookie',
        'X-Latin': '\u00e9',
        RateLimit: 'limit=1, remaining=0, reset=1',
      },
      418,
    );
    expect(status).toBe(418);
    expect(headers).toMatchObject({
      'cache-control': 'private, max-age=60',
      etag: '"1"',
      location: 'http://upstream.example/x',
      link: '<a>, <b>',
      'www-authenticate': 'Bearer',
      vary: 'Accept, Cookie',
      'x-latin': '\u00e9',
      ratelimit: 'limit=1, remaining=0, reset=1',
    });
  });

  it('X-Request-Id is the token handler’s own, and Cache-Control is no-store if the upstream does not set it', async () => {
    const { headers } = await answered({ 'X-Request-Id': 'theirs' });
    expect(headers).toMatchObject({
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
      'cache-control': 'no-store',
    });
  });

  it('Access-Control-Allow-Credentials is dropped, so that other origins cannot read with the session cookie', async () => {
    const { headers } = await answered({
      'Access-Control-Allow-Origin': 'https://a.example',
      'Access-Control-Allow-Credentials': 'true',
    });
    expect(headers['access-control-allow-origin']).toBe('https://a.example');
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
    expect((await answered({})).headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('Clear-Site-Data is dropped, so that an upstream cannot clear cookies', async () => {
    const { headers } = await answered({ 'Clear-Site-Data': '"cookies"' });
    expect(headers).not.toHaveProperty('clear-site-data');
  });

  it('headers that set a policy for the frontend’s whole origin are dropped, also from trailers and early hints', async () => {
    const policies = {
      'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
      NEL: '{"report_to":"a","max_age":86400,"success_fraction":1}',
      'Report-To': '{"group":"a","max_age":86400,"endpoints":[{"url":"https://evil.example/"}]}',
      'Alt-Svc': 'h3=":443"',
    };
    expect((await answered({ ...policies, 'X-Kept': '1' })).headers).toMatchObject({ 'x-kept': '1' });
    world.upstream.answer = (_request, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload', ...policies });
      response.writeHead(200, { Trailer: 'X-Sum', ...policies });
      response.write('x');
      response.addTrailers({ 'X-Sum': '1', ...policies });
      response.end();
    };
    const { request, answer } = world.start();
    const early = new Promise((resolve) => request.once('information', ({ headers }) => resolve(headers)));
    request.end();
    const incoming = await answer;
    await buffer(incoming);
    for (const received of [await early, incoming.headers, incoming.trailers])
      for (const name of Object.keys(policies)) expect(received).not.toHaveProperty(name.toLowerCase());
    expect(incoming.trailers).toEqual({ 'x-sum': '1' });
  });

  it('malformed headers that could split the response cause a 502, and do not reach the client', async () => {
    const broken = [
      'X-A: b\rSet-Cookie: c=d',
      'X-A: b\0',
      'X A: b',
      ' X-A: b\r\n folded',
      'Content-Length: 1\r\nTransfer-Encoding: chunked',
    ];
    for (const line of broken) {
      world.upstream.answer = (request) => void request.socket.end(`HTTP/1.1 200 OK\r\n${line}\r\n\r\nx`, 'latin1');
      const { status, rawHeaders } = await world.send();
      expect([line, status]).toEqual([line, 502]);
      expect(rawHeaders.join()).not.toMatch(/set-cookie|x-a/i);
    }
  });
});

describe('request smuggling', () => {
  const wire = (head: string[], rest: string) => {
    const lines = ['POST /token-handler/v1/targets/api/x HTTP/1.1', 'Host: a', `Cookie: ${world.person.cookie}`];
    const all = [...lines, `X-XSRF-TOKEN: ${world.person.csrf}`, 'Connection: close', ...head].join('\r\n');
    return sendRaw(Number(new URL(world.site).port), Buffer.from(`${all}\r\n\r\n${rest}`, 'latin1'));
  };
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n';

  it('a request with a length and a transfer coding, two lengths, or an invalid coding is rejected with 400', async () => {
    const heads = [
      ['Content-Length: 4', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked', 'Content-Length: 4'],
      ['Content-Length: 4', 'Content-Length: 5'],
      ['Content-Length: +4'],
      ['Content-Length: 0x4'],
      ['Content-Length: 4, 4'],
      ['Transfer-Encoding: xchunked'],
      ['Transfer-Encoding: chunked, identity'],
      ['Transfer-Encoding: identity'],
      ['Transfer-Encoding: gzip, chunked'],
      ['Transfer-Encoding : chunked'],
      ['Transfer-Encoding:\u000bchunked'],
    ];
    for (const head of heads) {
      const { text } = await wire(head, `0\r\n\r\n${hidden}`);
      expect([head, text.slice(9, 12)]).toEqual([head, '400']);
    }
    expect(world.upstream.seen).toEqual([]);
  });

  it('headers that an upstream could mistake for Content-Length or Transfer-Encoding are not forwarded', async () => {
    await wire(['Content-Length: 1', 'Content_Length: 99', 'Transfer_Encoding: chunked'], 'x');
    expect(world.upstream.last()).toMatchObject({ body: 'x', headers: { 'content-length': '1' } });
    expect(Object.keys(world.upstream.last().headers)).not.toContain('transfer_encoding');
  });

  it('a request that is hidden in the body of a GET reaches the upstream as a body only', async () => {
    const { status } = await world.send({ body: hidden, headers: { 'Content-Length': hidden.length } });
    expect(status).toBe(200);
    expect(world.upstream.seen).toHaveLength(1);
    expect(world.upstream.last()).toMatchObject({ method: 'GET', body: hidden });
  });

  it('bytes beyond the Content-Length of a response do not reach the next request', async () => {
    world.upstream.answer = (request) =>
      void request.socket.write(
        'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison',
      );
    expect((await world.send()).text).toBe('a');
    world.upstream.answer = (_request, response) => void response.end('mine');
    for (let index = 0; index < 5; index += 1) expect((await world.send()).text).toBe('mine');
  });

  it('a body after a response to HEAD, a 204 or a 304 does not reach the next request', async () => {
    for (const [method, line] of [
      ['GET', '204 No Content'],
      ['GET', '304 Not Modified'],
      ['HEAD', '200 OK'],
    ]) {
      world.upstream.answer = (request) =>
        void request.socket.write(
          `HTTP/1.1 ${line}\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`,
        );
      const sent = await world.send({ method: method ?? '' });
      expect([sent.status, sent.text]).toEqual([Number(line?.slice(0, 3)), '']);
      world.upstream.answer = (_request, response) => void response.end('mine');
      for (let index = 0; index < 3; index += 1) expect((await world.send()).text).toBe('mine');
    }
  });
});
