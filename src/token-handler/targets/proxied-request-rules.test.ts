// Tests one proxied request between a real client and a real upstream: what each side sees when the other side fails or
// closes its connection.
import { once } from 'node:events';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type ProxyOfTest, type RunningProxy, startProxy } from '../../../test/support/proxy.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { acceptWebSocket, answerWhenRead } from '../../../test/support/upstream.ts';

const timeout = { interval: 5 };
let proxy: RunningProxy;
afterEach(async () => {
  // After every request, the proxy must report the request as done, release its connection and stop watching its
  // session.
  await expect.poll(() => [proxy.running(), proxy.held(), proxy.watching()], timeout).toEqual([0, 0, 0]);
  await proxy.close();
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function start(answer: Answer = answerWhenRead, options?: ProxyOfTest) {
  proxy = await startProxy(options);
  proxy.upstream.answer = answer;
}

async function sent(method = 'GET', headers: OutgoingHttpHeaders = {}, body?: string) {
  const { request, answer } = proxy.start(method, headers);
  request.end(body);
  const incoming = await answer;
  const content = await text(incoming).catch(() => 'broken off');
  const problem = /"urn:formgate:problem:([\w-]+)"/.exec(content)?.[1];
  return { status: incoming.statusCode, content, problem, headers: incoming.headers, trailers: incoming.trailers };
}
const seen = () => proxy.upstream.seen.length;
/** Resolves when the connection is closed or reset. */
const closed = (socket: Duplex) =>
  new Promise<void>((resolve) => void socket.on('error', () => undefined).once('close', resolve));
/** Resolves when the connection over which the upstream has received a request is closed. */
const closing = ({ socket }: IncomingMessage) => closed(socket.resume());
/**
 * Returns `answer`, which makes the upstream never respond. `asked` resolves when a request arrives, and `given` when
 * the proxy has given up and closed the connection.
 */
function silence() {
  const given = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const answer: Answer = (request) => {
    asked.resolve();
    void closing(request).then(() => given.resolve());
  };
  return { answer, given: given.promise, asked: asked.promise };
}

describe('a request', () => {
  it('arrives with its method, path, headers and body, and its response is passed on', async () => {
    await start((request, response) => {
      request.once('end', () => response.writeHead(201, { 'X-Kept': '1', 'Set-Cookie': 'a=b' }).end('done'));
    });
    expect(await sent('PUT', { 'X-Own': 'x', Cookie: 'y', 'Content-Length': 4 }, 'body')).toMatchObject({
      ...{ status: 201, content: 'done' },
      headers: { 'x-kept': '1', 'x-content-type-options': 'nosniff' },
    });
    expect(proxy.upstream.last()).toMatchObject({
      ...{ method: 'PUT', target: '/base/a?b', body: 'body' },
      headers: { 'x-own': 'x', authorization: 'Bearer token', 'content-length': '4' },
    });
    expect(proxy.upstream.last().headers).not.toHaveProperty('cookie');
    // The sum is in seconds, so it must be less than the age of this process.
    const duration = await proxy.total('formgate_upstream_duration_seconds_sum');
    expect(duration).toBeGreaterThan(0);
    expect(duration).toBeLessThan(performance.now() / 1_000);
  });

  it('streams its body, whatever its framing', async () => {
    await start();
    for (const headers of [{ 'Content-Length': 10 }, { 'Transfer-Encoding': 'chunked' }]) {
      proxy.upstream.forget();
      const { request, answer } = proxy.start('POST', headers);
      request.write('begin');
      await expect.poll(() => proxy.upstream.seen[0]?.body, timeout).toBe('begin');
      expect(proxy.watching()).toBe(1);
      request.end('later');
      expect((await answer).statusCode).toBe(200);
      (await answer).resume();
      expect(proxy.upstream.last().body).toBe('beginlater');
    }
    expect(proxy.noted()).toBe(2 * 'beginlater'.length);
  });

  it('with a transfer coding that cannot be forwarded is refused', async () => {
    await start();
    const { status } = await sendRaw(
      proxy.port,
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n',
    );
    expect([status, seen()]).toEqual([400, 0]);
  });

  it('keeps the connection of its client open', async () => {
    await start();
    const { request, answer } = proxy.start('POST', { 'Content-Length': 4, Connection: 'keep-alive' });
    request.write('bo');
    await proxy.upstream.waitFor(1);
    request.end('dy');
    expect((await answer).headers.connection).toBe('keep-alive');
    (await answer).resume();
  });
});

describe('a response', () => {
  it('is passed on as it arrives: its head before its body, and the body piece by piece', async () => {
    let end: (() => void) | undefined;
    let write: (() => void) | undefined;
    await start((_request, response) => {
      response.writeHead(200).flushHeaders();
      write = () => void response.write('first');
      end = () => void response.end('last');
    });
    const { request, answer } = proxy.start();
    request.end();
    const incoming = await answer;
    expect(proxy.watching()).toBe(1);
    const first = once(incoming, 'data');
    write?.();
    expect(String(await first)).toBe('first');
    expect(await proxy.counts('formgate_open_streams')).toEqual({});
    end?.();
    expect(await text(incoming)).toBe('last');
    expect(proxy.noted()).toBe('firstlast'.length);
  });

  it('of which the client has not read the end no longer uses a connection, but its session is watched', async () => {
    let piece: (() => void) | undefined;
    let end: (() => void) | undefined;
    await start((_request, response) => {
      piece = () => void response.write(Buffer.alloc(4_096));
      end = () => void response.end();
    });
    const { request, answer } = proxy.start();
    request.end();
    await proxy.upstream.waitFor(1);
    // Fills the buffers of the kernel until a few bytes stay in the proxy, too few to pause the upstream.
    for (let sent = 0; proxy.unread() === 0; sent += 4_096) {
      piece?.();
      await expect.poll(() => proxy.noted(), { interval: 1 }).toBe(sent + 4_096);
    }
    expect(proxy.held()).toBe(1);
    end?.();
    await expect.poll(() => proxy.held(), timeout).toBe(0);
    expect(proxy.watching()).toBe(1);
    expect((await buffer(await answer)).length).toBe(proxy.noted());
  });

  it('keeps its trailers, and informational responses precede it', async () => {
    await start((_request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => {
        response.writeHead(200, { Trailer: 'X-Sum' }).write('x');
        response.addTrailers({ 'X-Sum': '1', 'Set-Cookie': 'a=b' });
        response.end();
      });
    });
    const { request, answer } = proxy.start();
    const informed = once(request, 'information');
    request.end();
    expect((await informed)[0]).toMatchObject({ statusCode: 103, headers: { link: '</a.css>; rel=preload' } });
    const incoming = await answer;
    expect([await text(incoming), incoming.trailers]).toEqual(['x', { 'x-sum': '1' }]);
    const { text: raw } = await sendRaw(proxy.port, 'GET / HTTP/1.0\r\n\r\n');
    expect(raw).not.toContain('HTTP/1.1 103');
    expect(raw).toContain(' 200 OK');
  });

  it('to HEAD has the length of its body, and no body', async () => {
    await start((_request, response) => void response.writeHead(200, { 'Content-Length': 5 }).end());
    const { headers, content } = await sent('HEAD');
    expect([headers['content-length'], content]).toEqual(['5', '']);
  });

  it('that comes before the whole request was read closes the connection of the client', async () => {
    await start((_request, response) => void response.writeHead(413).end('too large'));
    const { request, answer } = proxy.start('POST', { 'Content-Length': 1_000, Connection: 'keep-alive' });
    request.write('some');
    const incoming = await answer;
    expect([incoming.statusCode, incoming.headers.connection, await text(incoming)]).toEqual([
      ...[413, 'close', 'too large'],
    ]);
    request.destroy();
  });

  it.each([
    ['of the upstream', (response: ServerResponse) => void response.writeHead(413).end(), 413],
    ['about a failure of the upstream', (response: ServerResponse) => response.destroy(), 502],
  ])('%s reaches a client that first sends its whole body', async (_what, act, status) => {
    await start((_request, response) => act(response));
    const { request, answer } = proxy.start('POST', { 'Content-Length': 400 });
    const failures: Error[] = [];
    request.on('error', (error) => failures.push(error));
    for (let piece = 0; piece < 40; piece += 1) {
      request.write('0123456789');
      await delay(5);
    }
    request.end();
    expect((await answer).statusCode).toBe(status);
    (await answer).resume();
    expect(failures).toEqual([]);
  });

  it('that comes while the upstream reads nothing reaches a client that first sends its whole body', async () => {
    const size = 16_000_000;
    await start(async (_request, response) => {
      await delay(200);
      response.writeHead(413).end();
    });
    const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`);
    await new Promise<void>((resolve) => void socket.write(Buffer.alloc(size), () => resolve()));
    const [chunk] = await once(socket, 'data');
    expect(String(chunk)).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });

  it('of unknown length that the upstream breaks off does not seem complete to a client with HTTP/1.0', async () => {
    await start((_request, response) => {
      response.write('begin');
      setTimeout(() => response.destroy(), 50);
    });
    const socket = connect(proxy.port, '127.0.0.1');
    const failed = once(socket, 'error');
    socket.resume().write('GET / HTTP/1.0\r\nHost: x\r\n\r\n');
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' });
  });

  it('that the upstream aborts is aborted for the client, too', async () => {
    await start((_request, response) => {
      response.writeHead(200, { 'Content-Length': 10 }).write('begin');
      setTimeout(() => response.destroy(), 10);
    });
    expect((await sent()).content).toBe('broken off');
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({ 'side=upstream': 1 });
    await expect
      .poll(() => proxy.lines().map(({ msg, status }) => [msg, status]), timeout)
      .toEqual([['request failed', 500]]);
  });

  it('that is large arrives completely at a client that reads slowly', async () => {
    const large = Buffer.alloc(8_000_000, 'x');
    await start((_request, response) => void response.end(large));
    const { request, answer } = proxy.start();
    request.end();
    const incoming = await answer;
    await delay(50);
    // The upstream has sent the whole response, but the client has not read it yet. The proxy still watches the
    // session.
    expect(proxy.watching()).toBe(1);
    expect((await buffer(incoming)).equals(large)).toBe(true);
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({});
  });
});

describe('an upstream that closes the connection', () => {
  const drop: Answer = ({ socket }) => void socket.destroy();

  it.each<[string, OutgoingHttpHeaders, string, number]>([
    ['GET', {}, '', 2],
    ['HEAD', {}, '', 2],
    ['POST', {}, '', 1],
    ['GET', { 'Content-Length': 4 }, 'body', 1],
    ['GET', { 'Transfer-Encoding': 'chunked' }, 'body', 1],
  ])('gets %s %j again only if a retry is safe, and only once', async (method, headers, body, times) => {
    await start(drop);
    expect(await sent(method, headers, body)).toMatchObject({ status: 502 });
    expect(seen()).toBe(times);
    expect(await proxy.counts('formgate_dependency_failures_total')).toEqual({ 'dependency=upstream,kind=failed': 1 });
  });

  it('may serve the second try', async () => {
    await start((request, response) => (seen() === 1 ? request.socket.destroy() : response.end('served')));
    expect(await sent()).toMatchObject({ status: 200, content: 'served' });
  });

  it('does not get the request again once its response has begun', async () => {
    await start(({ socket }) => void socket.end('HTTP/1.1 200 OK\r\nContent-Le'));
    expect(await sent()).toMatchObject({ status: 502, problem: 'dependency-failed' });
    expect(seen()).toBe(1);
  });
});

describe('an upstream that does not begin its response', () => {
  it('causes a 504, and the request to it is aborted', async () => {
    const { answer, given } = silence();
    await start(answer, { firstByte: 40 });
    const began = performance.now();
    expect(await sent()).toMatchObject({ status: 504, problem: 'dependency-timeout' });
    expect(performance.now() - began).toBeGreaterThan(39);
    await given;
    await delay(100);
    // The timer has stopped, so the timeout was counted only once.
    expect(await proxy.counts('formgate_dependency_failures_total')).toEqual({ 'dependency=upstream,kind=timeout': 1 });
  });

  it('does not time out while the client pauses within its body', async () => {
    await start(answerWhenRead, { firstByte: 1_000 });
    const { request, answer } = proxy.start('POST', { 'Content-Length': 6 });
    request.write('xxx');
    await delay(1_200);
    request.end('yyy');
    expect((await answer).statusCode).toBe(200);
    (await answer).resume();
  });

  it('has its full time again after each piece of the request’s body', async () => {
    await start(answerWhenRead, { firstByte: 1_500 });
    const { request, answer } = proxy.start('POST', { 'Content-Length': 4 });
    for (const piece of 'body') {
      request.write(piece);
      await delay(500);
    }
    expect((await answer).statusCode).toBe(200);
    (await answer).resume();
  });

  it('has its full time again while it reads a body that the client sends without a pause', async () => {
    await start(
      (request, response) => {
        // Reads slowly only at first. The kernel still buffers the end of the body when the proxy has sent everything.
        // If the upstream also read these last bytes slowly, the proxy's timer would expire.
        let slowReads = 100;
        const take = () => {
          slowReads -= 1;
          if (slowReads < 0) return;
          request.pause();
          setTimeout(() => request.resume(), 15);
        };
        request.on('data', take).once('end', () => response.end());
      },
      { firstByte: 1_000 },
    );
    const body = Buffer.alloc(30_000_000);
    const began = performance.now();
    const { request, answer } = proxy.start('POST', { 'Content-Length': body.length });
    request.end(body);
    expect((await answer).statusCode).toBe(200);
    (await answer).resume();
    expect(performance.now() - began).toBeGreaterThan(1_000);
  });

  it('may take any time after its response has begun', async () => {
    await start(
      (_request, response) => {
        response.write('a');
        setTimeout(() => response.end('b'), 1_200);
      },
      { firstByte: 1_000 },
    );
    expect((await sent()).content).toBe('ab');
  });
});

describe('a client that leaves', () => {
  it('before the response has begun aborts the request at the upstream, which does not count as a timeout', async () => {
    const { answer, asked, given } = silence();
    await start(answer, { firstByte: 1_000 });
    const { request } = proxy.start();
    request.end();
    await asked;
    request.destroy();
    await given;
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({ 'side=client': 1 });
    await delay(1_100);
    expect(await proxy.counts('formgate_dependency_failures_total')).toEqual({});
  });

  it('while it sends its body aborts the request at the upstream', async () => {
    const { answer, asked, given } = silence();
    await start(answer);
    const { request } = proxy.start('POST', { 'Content-Length': 100 });
    request.write('some');
    await asked;
    request.destroy();
    await given;
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({ 'side=client': 1 });
  });

  it('while it receives the response aborts the request at the upstream', async () => {
    const given = Promise.withResolvers<void>();
    await start((request, response) => {
      response.write('some');
      void closing(request).then(() => given.resolve());
    });
    const { request, answer } = proxy.start();
    request.end();
    (await answer).on('error', () => undefined);
    request.destroy();
    await given.promise;
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({ 'side=client': 1 });
  });
});

describe('the end of the session', () => {
  const events: Answer = (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
  };

  it.each<[string, OutgoingHttpHeaders, number]>([
    ['that its client asked for', { Accept: 'text/event-stream' }, 0],
    ['that its client did not ask for', {}, 1],
  ])('completes an event stream %s, which counts as one stream', async (_what, headers, sharedConnections) => {
    await start(events, { perSession: 1 });
    const { request, answer } = proxy.start('GET', headers);
    request.end();
    const incoming = await answer;
    await once(incoming, 'data');
    expect(await proxy.counts('formgate_open_streams')).toEqual({ 'kind=event-stream': 1 });
    expect(proxy.held()).toBe(sharedConnections);
    expect(await sent('GET', headers)).toMatchObject({ status: 429 });
    proxy.endSession();
    expect([await text(incoming), incoming.complete]).toEqual(['', true]);
    expect(await proxy.counts('formgate_open_streams')).toEqual({});
    expect((await proxy.counts('formgate_proxied_requests_aborted_total'))['side=session']).toBe(1);
  });

  it('closes an event stream whose client does not read, after 2 s', async () => {
    await start((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(`data: ${'x'.repeat(8_000_000)}\n\n`);
    });
    const { request, answer } = proxy.start('GET', { Accept: 'text/event-stream' });
    request.end();
    await answer;
    // Unread bytes alone do not show that the client is stuck, because the kernel may still be taking more bytes.
    const isStuck = async () => {
      const before = proxy.unread();
      await delay(300);
      return before > 0 && proxy.unread() === before;
    };
    await expect.poll(isStuck, timeout).toBe(true);
    const began = performance.now();
    proxy.endSession();
    await expect.poll(() => proxy.isClosed(), { timeout: 10_000 }).toBe(true);
    expect(performance.now() - began).toBeGreaterThan(1_900);
    request.destroy();
  });

  it('causes a 401 for a request that has no response yet, and aborts it at the upstream', async () => {
    const { answer, asked, given } = silence();
    await start(answer);
    const { request, answer: head } = proxy.start('GET', { Accept: 'text/event-stream' });
    request.end();
    await asked;
    proxy.endSession();
    const incoming = await head;
    expect([incoming.statusCode, await text(incoming)]).toEqual([401, expect.stringContaining('unauthenticated')]);
    await given;
  });

  it('causes a 401 for a request that has waited for its response for a second', async () => {
    const { answer, asked, given } = silence();
    await start(answer);
    const { request, answer: head } = proxy.start();
    request.end();
    await asked;
    await expect.poll(() => proxy.watching(), { timeout: 5_000 }).toBe(1);
    proxy.endSession();
    expect((await head).statusCode).toBe(401);
    (await head).resume();
    await given;
  });

  it('prevents a request that still waits for its connection to the upstream', async () => {
    await start();
    const { request, answer } = proxy.start('POST', { 'Transfer-Encoding': 'chunked' });
    request.write('some');
    while (proxy.watching() === 0) await immediate();
    proxy.endSession();
    expect((await answer).statusCode).toBe(401);
    (await answer).resume();
    await expect.poll(() => proxy.held(), timeout).toBe(0);
    expect(seen()).toBe(0);
    request.destroy();
  });

  it('causes a 401 for a running upload', async () => {
    const { answer, asked, given } = silence();
    await start(answer);
    const { request, answer: head } = proxy.start('POST', { 'Content-Length': 100 });
    request.write('some');
    await asked;
    proxy.endSession();
    expect((await head).statusCode).toBe(401);
    await given;
    request.destroy();
  });

  it('aborts any other response, so that it does not seem complete', async () => {
    await start((_request, response) => void response.write('some'));
    const { request, answer } = proxy.start();
    request.end();
    const incoming = await answer;
    await once(incoming, 'data');
    proxy.endSession();
    await expect(text(incoming)).rejects.toThrow();
    expect(incoming.complete).toBe(false);
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({ 'side=session': 1 });
    await expectNoFailure();
  });

  it('closes a WebSocket', async () => {
    await start();
    const socket = await upgraded();
    expect(await proxy.counts('formgate_open_streams')).toEqual({ 'kind=websocket': 1 });
    const isClosed = closed(socket);
    proxy.endSession();
    await isClosed;
    await expectNoFailure();
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({ 'side=session': 1 });
  });
});

/** Waits for the log line of the only request, and expects that the line reports no failure. */
async function expectNoFailure() {
  await expect.poll(() => proxy.lines().map(({ msg }) => msg), timeout).toEqual(['request']);
}

const handshake =
  'GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n';

/** Opens a WebSocket, and returns its connection. */
async function upgraded() {
  const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
  socket.write(handshake);
  const [head] = await once(socket, 'data');
  expect(String(head)).toMatch(/^HTTP\/1.1 101 /);
  return socket.resume();
}

describe('a WebSocket', () => {
  it('is connected to a WebSocket of the upstream, and ends with it', async () => {
    await start();
    proxy.upstream.onUpgrade = (request, socket) => {
      acceptWebSocket(request, socket);
      socket.once('data', (chunk: Buffer) => socket.end(`got ${chunk}`));
    };
    const socket = await upgraded();
    const got = once(socket, 'data');
    socket.write('mine');
    expect(String(await got)).toBe('got mine');
    expect(proxy.upstream.last().headers).toMatchObject({ upgrade: 'websocket', authorization: 'Bearer token' });
    socket.end();
    await closed(socket);
    await expectNoFailure();
    expect(await proxy.counts('formgate_proxied_requests_aborted_total')).toEqual({});
  });

  it('outlives the time in which an upstream must begin its response', async () => {
    await start(undefined, { firstByte: 1_000 });
    const socket = await upgraded();
    await delay(1_200);
    expect([socket.destroyed, await proxy.counts('formgate_dependency_failures_total')]).toEqual([false, {}]);
    socket.resetAndDestroy();
  });

  it('that the upstream refuses gets the upstream’s own response', async () => {
    await start();
    proxy.upstream.onUpgrade = (_request, socket) =>
      void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\nnot me');
    const { status, body } = await sendRaw(proxy.port, handshake);
    expect([status, body]).toEqual([403, 'not me']);
  });

  it('is not retried if the upstream closes the connection', async () => {
    await start();
    proxy.upstream.onUpgrade = (_request, socket) => void socket.destroy();
    expect((await sendRaw(proxy.port, handshake)).status).toBe(502);
    expect(seen()).toBe(1);
  });

  it('is aborted at the upstream if the client leaves during the handshake', async () => {
    const given = Promise.withResolvers<void>();
    await start();
    proxy.upstream.onUpgrade = (_request, socket) => void socket.resume().once('end', () => given.resolve());
    const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
    socket.write(handshake);
    await proxy.upstream.waitFor(1);
    socket.end();
    await given.promise;
    await expect
      .poll(() => proxy.counts('formgate_proxied_requests_aborted_total'), timeout)
      .toEqual({ 'side=client': 1 });
  });
});

describe('a client that is too slow', () => {
  it('to send its body gets 408, and its connection is closed', async () => {
    const { answer, given } = silence();
    await start(answer, { least: 1_000_000 });
    const { request, answer: head } = proxy.start('POST', { 'Content-Length': 1_000, Connection: 'keep-alive' });
    request.write('some');
    const incoming = await head;
    expect([incoming.statusCode, incoming.headers.connection]).toEqual([408, 'close']);
    expect(await text(incoming)).toContain('request-timeout');
    await given;
    expect(await proxy.counts('formgate_slow_bodies_total')).toEqual({ 'direction=upload': 1 });
    request.destroy();
  });

  it.each([
    ['while the upstream sends', (response: ServerResponse) => void response.write(Buffer.alloc(20_000_000))],
    ['after the upstream has sent all', (response: ServerResponse) => void response.end(Buffer.alloc(8_000_000))],
  ])('to read a response is cut off %s', async (_when, act) => {
    await start((_request, response) => act(response), { least: 1_000_000_000 });
    const { request, answer } = proxy.start();
    request.end();
    const incoming = await answer;
    await expect.poll(() => proxy.counts('formgate_slow_bodies_total'), timeout).toEqual({ 'direction=download': 1 });
    await expect(buffer(incoming)).rejects.toThrow();
    await expectNoFailure();
  });
});

describe('a client whose connection is idle for longer than the server allows', () => {
  const idle = 150;
  const later = () => delay(3 * idle);
  const events = (response: ServerResponse) => response.setHeader('Content-Type', 'text/event-stream');
  const plain = (response: ServerResponse) => response;

  it.each<[string, OutgoingHttpHeaders, (response: ServerResponse) => ServerResponse, string]>([
    ['keeps an event stream', { Accept: 'text/event-stream' }, events, 'onetwo'],
    ['keeps an event stream that it did not ask for', {}, events, 'onetwo'],
    ['loses any other response', {}, plain, 'broken off'],
  ])('%s', async (_what, headers, prepare, expected) => {
    await start(
      (_request, response) => {
        prepare(response).write('one');
        void later().then(() => response.end('two'));
      },
      { idle },
    );
    expect((await sent('GET', headers)).content).toBe(expected);
  });

  it('keeps a WebSocket', async () => {
    await start(undefined, { idle });
    const socket = await upgraded();
    await later();
    expect(socket.destroyed).toBe(false);
    socket.resetAndDestroy();
  });
});
