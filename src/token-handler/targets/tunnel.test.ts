// Tests how a tunnel joins and closes the two connections of a WebSocket, to its client and to its upstream. The
// connections are in memory, and the clock is a fake.
import { once } from 'node:events';
import { createServer, IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { serveUpgrades } from '../../service/http/upgrades.ts';
import { cut, endSoon, ignore, keepOpen } from './client-socket.ts';
import { noticeLeaving, openTunnel } from './tunnel.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => vi.useRealTimers());

const turn = async () => {
  for (let nth = 0; nth < 5; nth += 1) await new Promise(setImmediate);
};

/** Collects the text that arrives at one end of a connection. */
function receiver(end: Duplex) {
  const received = { text: '' };
  end
    .on('error', () => undefined)
    .on('data', (chunk: Buffer) => {
      received.text += chunk.toString('latin1');
    });
  return received;
}

interface Upgrading {
  /** The data that the client sent directly after its request, before the response. */
  head?: string;
}

/** Returns a client that has requested an upgrade, and the upstream with which `open` joins the client. */
function upgrading({ head = '' }: Upgrading = {}) {
  const [client, ofClient] = duplexPair();
  const [upstream, ofUpstream] = duplexPair();
  const request = new IncomingMessage(Object.assign(ofClient, { setTimeout: () => undefined }) as unknown as Socket);
  Object.assign(request, { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1, httpVersion: '1.1' });
  const server = createServer();
  let response = {} as HttpResponse;
  serveUpgrades(server, (_request, plain) => {
    response = Object.assign(plain as ServerResponse, { locals: { requestId: 'one' } }) as HttpResponse;
  });
  server.emit('upgrade', request, ofClient, Buffer.from(head));
  const open = (headers: object = {}, status = 101) =>
    openTunnel(request, response, {
      ...{ status, upstream: ofUpstream },
      headers: { upgrade: 'websocket', connection: 'Upgrade', ...headers },
    });
  return { client, ofClient, upstream, ofUpstream, request, response, open };
}

/** Returns an open tunnel whose client has already read the response headers. */
async function joined() {
  const tunnel = upgrading();
  const [atClient, atUpstream] = [receiver(tunnel.client), receiver(tunnel.upstream)];
  tunnel.open();
  await turn();
  atClient.text = '';
  return { ...tunnel, atClient, atUpstream };
}

describe('the response to an upgrade', () => {
  it('has the headers of the upstream, each value on its line, and the id of the request', async () => {
    const { client, open, response } = upgrading();
    const received = receiver(client);
    open({ 'sec-websocket-accept': 'abc', 'x-two': ['a', 'b'], 'x-byte': '\xe9', 'set-cookie': ['a=b'] });
    await turn();
    expect(received.text.split('\r\n')).toEqual([
      ...['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket', 'X-Request-Id: one'],
      ...['sec-websocket-accept: abc', 'x-two: a', 'x-two: b', 'x-byte: \xe9', '', ''],
    ]);
    expect(response.statusCode).toBe(101);
  });

  it('to another protocol is refused, and its error does not end the process', async () => {
    const { client, ofUpstream, open } = upgrading();
    const received = receiver(client);
    expect(() => open({ upgrade: 'h2c' })).toThrow(/protocol/);
    ofUpstream.emit('error', new Error('undici destroys the socket'));
    await turn();
    expect(received.text).toBe('');
  });

  it('closes both connections if the request asked for none', async () => {
    const { upstream, ofUpstream } = upgrading();
    receiver(upstream);
    const request = new IncomingMessage({} as Socket);
    const destroyed = vi.fn();
    openTunnel(request, { destroy: destroyed } as unknown as HttpResponse, {
      ...{ status: 200, headers: {}, upstream: ofUpstream },
    });
    await turn();
    expect([ofUpstream.destroyed, destroyed.mock.calls.length]).toEqual([true, 1]);
  });
});

describe('an open tunnel', () => {
  it('carries data in both directions, beginning with data that the client sent before it opened', async () => {
    const { client, upstream, open } = upgrading({ head: 'early ' });
    const [atClient, atUpstream] = [receiver(client), receiver(upstream)];
    open();
    client.write('later');
    upstream.write('back');
    await turn();
    expect(atUpstream.text).toBe('early later');
    expect(atClient.text.split('\r\n\r\n')[1]).toBe('back');
  });

  it('closes one side when the other one breaks', async () => {
    const first = await joined();
    first.ofClient.destroy(new Error('broken'));
    await turn();
    expect(first.ofUpstream.destroyed).toBe(true);
    const second = await joined();
    second.ofUpstream.destroy(new Error('broken'));
    await turn();
    expect(second.ofClient.destroyed).toBe(true);
  });

  it.each(['client', 'upstream'] as const)('gives the other side two seconds after the end of the %s', async (side) => {
    const tunnel = await joined();
    const other = side === 'client' ? tunnel.ofUpstream : tunnel.ofClient;
    tunnel[side].write('bye');
    tunnel[side].end();
    await turn();
    expect(side === 'client' ? tunnel.atUpstream.text : tunnel.atClient.text).toBe('bye');
    vi.advanceTimersByTime(1_999);
    expect(other.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(other.destroyed).toBe(true);
  });

  it('leaves no timer behind if the other side closes in that time', async () => {
    const { client, ofUpstream } = await joined();
    client.end();
    await turn();
    expect(vi.getTimerCount()).toBe(1);
    ofUpstream.destroy();
    await turn();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ignores errors of its connections, which also close them', async () => {
    const { ofClient, ofUpstream } = await joined();
    // Without a listener for `error`, both calls of `emit` would throw.
    for (const end of [ofClient, ofUpstream]) end.emit('error', new Error('broken'));
  });
});

describe('a client that ends its connection during the handshake', () => {
  it.each([
    ['during the watch', false],
    ['before the watch begins', true],
  ])('%s is disconnected after two seconds', async (_when, isEarly) => {
    const { client, ofClient, request } = upgrading();
    receiver(client);
    if (isEarly) {
      // Node reads the end of a network connection even if nothing else reads from the connection.
      ofClient.resume();
      client.end();
      await turn();
    }
    noticeLeaving(request);
    client.end();
    await turn();
    vi.advanceTimersByTime(1_999);
    expect(ofClient.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(ofClient.destroyed).toBe(true);
    await turn();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('stays connected if the upstream responds within that time', async () => {
    const { client, ofClient, request } = upgrading();
    receiver(client);
    const stop = noticeLeaving(request);
    client.end();
    await turn();
    stop();
    vi.advanceTimersByTime(10_000);
    expect([ofClient.destroyed, vi.getTimerCount()]).toEqual([false, 0]);
  });

  it('leaves no timer behind if its connection closes in that time', async () => {
    const { client, ofClient, request } = upgrading();
    receiver(client);
    noticeLeaving(request);
    client.end();
    await turn();
    expect(vi.getTimerCount()).toBe(1);
    ofClient.destroy();
    await turn();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('has two seconds for the closing handshake if the tunnel opens later', async () => {
    const { client, ofClient, upstream, ofUpstream, request, open } = upgrading();
    for (const end of [client, upstream]) receiver(end);
    const stop = noticeLeaving(request);
    client.end();
    await turn();
    stop();
    open();
    await turn();
    vi.advanceTimersByTime(1_999);
    expect([ofClient.destroyed, ofUpstream.destroyed]).toEqual([false, false]);
    vi.advanceTimersByTime(1);
    await turn();
    expect([ofClient.destroyed, ofUpstream.destroyed]).toEqual([true, true]);
  });

  it('is noticed over a network connection, too', async () => {
    const server = createServer();
    onTestFinished(() => void server.close());
    const accepted = Promise.withResolvers<Socket>();
    serveUpgrades(server, (request) => {
      noticeLeaving(request);
      accepted.resolve(request.socket);
    });
    const client = connect(await listenOnLoopback(server), '127.0.0.1').resume();
    client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    const socket = await accepted.promise;
    client.end();
    await once(socket, 'end', { signal: AbortSignal.timeout(3_000) });
    vi.advanceTimersByTime(2_000);
    await once(socket, 'close', { signal: AbortSignal.timeout(3_000) });
  });

  it('is not noticed before the upstream has its early data, which stays in the connection', async () => {
    const { client, upstream, ofClient, request, open } = upgrading();
    receiver(client);
    const received = receiver(upstream);
    const stop = noticeLeaving(request);
    client.write('early');
    await turn();
    expect([ofClient.destroyed, ofClient.readableLength]).toEqual([false, 5]);
    stop();
    open();
    await turn();
    expect(received.text).toBe('early');
  });

  it('has an ordinary tunnel if it leaves after the upstream has switched protocols', async () => {
    const { client, ofClient, request, upstream, open } = upgrading();
    receiver(client);
    receiver(upstream);
    const listeners = () => ['readable', 'end', 'close'].map((name) => ofClient.listenerCount(name));
    const before = listeners();
    noticeLeaving(request)();
    expect(listeners()).toEqual(before);
    open();
    client.end();
    await turn();
    expect(ofClient.destroyed).toBe(false);
  });

  it('is not watched if its request asks for no upgrade', () => {
    noticeLeaving(new IncomingMessage({} as Socket))();
  });
});

describe('the connection of a client', () => {
  it('has no idle timeout during a stream, and is probed each minute', () => {
    const calls: unknown[][] = [];
    const socket = {
      setTimeout: (...args: unknown[]) => void calls.push(args),
      setKeepAlive: (...args: unknown[]) => void calls.push(args),
    };
    const response = { locals: {} } as HttpResponse;
    const before = performance.now();
    keepOpen({ socket } as unknown as IncomingMessage, response);
    expect(calls).toEqual([[0], [true, 60_000]]);
    expect(response.locals.began).toBeGreaterThanOrEqual(before);
    expect(ignore()).toBeUndefined();
  });

  /** Begins a response over a real connection, and calls `act`. Returns `end` or the code of the client's error. */
  async function beginning(act: (response: HttpResponse) => void): Promise<string> {
    const server = createServer((_request, response) => {
      response.write('some');
      act(response as HttpResponse);
    });
    onTestFinished(() => void server.close());
    const socket = connect(await listenOnLoopback(server), '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    return new Promise((resolve) => {
      socket.resume().once('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)));
      socket.once('end', () => resolve('end'));
    });
  }

  it('is reset when a response is cut, so that the response does not seem complete', async () => {
    let isDestroyed: boolean | undefined;
    const seen = await beginning((response) => {
      setImmediate(() => {
        cut(response);
        isDestroyed = response.destroyed;
      });
    });
    expect([seen, isDestroyed]).toEqual(['ECONNRESET', true]);
  });

  it('is not destroyed while the reset has to wait', async () => {
    let isDestroyed: boolean | undefined;
    await beginning((response) => {
      setImmediate(() => {
        response.socket?.end();
        cut(response);
        isDestroyed = response.destroyed;
      });
    });
    expect(isDestroyed).toBe(false);
  });

  /** Returns a response that has begun over a real connection, and its client, which does not read yet. */
  async function begun() {
    const server = createServer();
    onTestFinished(() => void server.close());
    const client = connect(await listenOnLoopback(server), '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    const [, response]: HttpResponse[] = await once(server, 'request');
    response?.write('some');
    return { client, response: response as HttpResponse };
  }

  it('carries the end of a response that ends soon, and leaves no timer behind', async () => {
    const { client, response } = await begun();
    const received = receiver(client);
    endSoon(response);
    expect(vi.getTimerCount()).toBe(1);
    await Promise.all([once(client, 'end'), once(response, 'close')]);
    expect(received.text).toMatch(/\r\n0\r\n\r\n$/);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is reset if the client does not read the end of the response within two seconds', async () => {
    const { client, response } = await begun();
    // The kernel cannot take so much data from the response while the client does not read.
    response.write(Buffer.alloc(64 * 1024 * 1024));
    endSoon(response);
    await turn();
    vi.advanceTimersByTime(1_999);
    expect(response.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(response.destroyed).toBe(true);
    client.resume();
    expect(await once(client, 'error')).toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('needs no reset if it is already gone: only the response is destroyed', () => {
    const destroy = vi.fn();
    cut({ socket: null, destroy } as unknown as HttpResponse);
    expect(destroy).toHaveBeenCalledOnce();
  });
});
