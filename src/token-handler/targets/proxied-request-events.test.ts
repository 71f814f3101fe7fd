// Tests what the proxy does at each event of a request: whether it releases the connection, stops the upstream and
// watches the session. Client and upstream are scripted, so that events can happen in any order. Tests with real
// connections are in proxied-request-rules.test.ts.
import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Exchange, startExchange } from '../../../test/support/proxied-exchange.ts';
import type { Lease } from './connections.ts';

afterEach(() => void vi.useRealTimers());

const head = ({ handler, controller }: Exchange, headers: Record<string, string> = {}, status = 200) =>
  handler.onResponseStart(controller, status, headers, 'OK');
const data = ({ handler, controller }: Exchange, text: string) => handler.onResponseData(controller, Buffer.from(text));
const end = ({ handler, controller }: Exchange) => handler.onResponseEnd(controller, {});
/** The upstream switches to the WebSocket protocol. */
const upgrade = ({ handler, controller }: Exchange, upstream = new PassThrough()) => {
  handler.onRequestUpgrade(controller, 101, { upgrade: 'websocket', connection: 'Upgrade' }, upstream);
  return upstream;
};
const upload = { method: 'PUT', headers: { 'transfer-encoding': 'chunked' } };
const sendingOf = ({ handler }: Exchange) => handler as unknown as { onBodySent(): void; onRequestSent(): void };
const watched = ({ watching }: Exchange) => [watching.session.size, watching.bodies.size];
const endSession = ({ watching }: Exchange) => {
  for (const listen of [...watching.session]) listen();
};
const leave = async ({ client }: Exchange) => {
  client.destroy();
  await turn();
};

describe('a short response', () => {
  it('costs no watch of its session, is ended once, and frees its connection at once', async () => {
    const exchange = await startExchange();
    const [closeListeners, ended] = [exchange.response.listenerCount('close'), vi.spyOn(exchange.response, 'end')];
    head(exchange, { 'content-length': '5' });
    data(exchange, 'hello');
    await turn();
    expect(exchange.client.received).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nhello$/s);
    expect(watched(exchange)).toEqual([0, 0]);
    end(exchange);
    expect([exchange.released, watched(exchange)]).toEqual([1, [0, 0]]);
    expect(ended).toHaveBeenCalledTimes(1);
    expect(exchange.response.listenerCount('close')).toBe(closeListeners - 1);
    await turn();
    expect([exchange.outcome, exchange.aborted]).toEqual(['done', []]);
  });

  it('without a length watches its session until it ends', async () => {
    const exchange = await startExchange();
    head(exchange);
    data(exchange, 'hello');
    expect(watched(exchange)).toEqual([1, 0]);
    await turn();
    end(exchange);
    await turn();
    expect([watched(exchange), exchange.outcome]).toEqual([[0, 0], 'done']);
  });
});

describe('a response that the client reads slowly', () => {
  it('watches its rate from the first piece that the client does not take', async () => {
    const exchange = await startExchange();
    head(exchange);
    data(exchange, 'x');
    await turn();
    expect(watched(exchange)).toEqual([1, 0]);
    exchange.client.reads = false;
    data(exchange, 'x'.repeat(100_000));
    expect(watched(exchange)).toEqual([1, 1]);
  });

  it('frees its connection when the upstream has sent all, and is watched until the client has read it', async () => {
    const exchange = await startExchange();
    exchange.client.reads = false;
    const body = 'x'.repeat(100_000);
    head(exchange, { 'content-length': String(body.length) });
    data(exchange, body);
    expect(watched(exchange)).toEqual([0, 0]);
    end(exchange);
    expect([exchange.released, watched(exchange)]).toEqual([1, [1, 1]]);
    exchange.client.readAll();
    await turn();
    expect([exchange.client.received.endsWith(body), watched(exchange)]).toEqual([true, [0, 0]]);
  });

  it('is reset if the session ends before the client has read it', async () => {
    const exchange = await startExchange();
    exchange.client.reads = false;
    head(exchange, { 'content-length': '100000' });
    data(exchange, 'x'.repeat(50_000));
    await turn();
    endSession(exchange);
    await turn();
    expect([exchange.client.isReset, exchange.outcome, exchange.aborted.length]).toEqual([true, 'done', 1]);
  });
});

describe('a client that leaves', () => {
  it('while its request waits for a connection gets none, and the upstream never sees the request', async () => {
    const waiting = Promise.withResolvers<void>();
    const exchange = await startExchange({
      lease: async (granted: Lease) => {
        await waiting.promise;
        return granted;
      },
    });
    await leave(exchange);
    waiting.resolve();
    await turn();
    expect([exchange.outcome, exchange.dispatched, exchange.released > 0]).toEqual(['done', [], true]);
  });

  it('before undici has begun to send its request stops it then', async () => {
    const exchange = await startExchange();
    expect(exchange.aborted).toEqual([]);
    exchange.handler.onRequestStart(undefined as never, {});
    await leave(exchange);
    expect(exchange.aborted).toEqual([]);
    exchange.handler.onRequestStart(exchange.controller, {});
    expect(exchange.aborted).toHaveLength(1);
  });

  it('while it sends a body stops the upstream and the body', async () => {
    const exchange = await startExchange(upload);
    const body = exchange.dispatched[0]?.body as PassThrough;
    expect([body.destroyed, watched(exchange)]).toEqual([false, [1, 1]]);
    await leave(exchange);
    expect([body.destroyed, watched(exchange), exchange.aborted.length]).toEqual([true, [0, 0], 1]);
  });

  it('with an error ends only its own request', async () => {
    const exchange = await startExchange();
    expect(() => exchange.response.emit('error', new Error('the connection broke'))).not.toThrow();
  });
});

describe('an upstream that does not respond', () => {
  it('is suspected after a second, and stopped when the time is over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const exchange = await startExchange({ firstByte: 5_000 });
    await vi.advanceTimersByTimeAsync(999);
    expect(exchange.suspected).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect([exchange.suspected, watched(exchange)]).toEqual([1, [1, 0]]);
    await vi.advanceTimersByTimeAsync(3_999);
    expect(exchange.outcome).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(exchange.outcome).toBe('dependency-timeout');
    expect([exchange.aborted.length, watched(exchange)]).toEqual([1, [0, 0]]);
    // undici still holds the connection, until it has aborted the request.
    expect(exchange.released).toBe(0);
    exchange.handler.onResponseError(exchange.controller, new Error('aborted'));
    expect([exchange.released, exchange.outcome]).toEqual([1, 'dependency-timeout']);
  });

  it('is not suspected while it waits for the client, however often the client pauses', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const exchange = await startExchange({ ...upload, firstByte: 5_000 });
    const sending = sendingOf(exchange);
    const body = exchange.dispatched[0]?.body as PassThrough;
    body.on('data', () => sending.onBodySent());
    for (const part of ['one', 'two', 'three']) {
      exchange.request.push(part);
      await vi.advanceTimersByTimeAsync(6_000);
    }
    expect([exchange.outcome, exchange.suspected]).toEqual([undefined, 0]);
    Object.assign(exchange.request, { complete: true }).push(null);
    sending.onRequestSent();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(exchange.suspected).toBe(1);
  });

  it('has the whole time from the moment at which the request was sent', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const exchange = await startExchange({ firstByte: 500 });
    await vi.advanceTimersByTimeAsync(400);
    sendingOf(exchange).onRequestSent();
    await vi.advanceTimersByTimeAsync(499);
    expect(exchange.outcome).toBeUndefined();
    await vi.advanceTimersByTimeAsync(2);
    expect(exchange.outcome).toBe('dependency-timeout');
  });
});

describe('the duration of an upstream', () => {
  const measured = ['setTimeout', 'clearTimeout', 'performance'] as const;

  it('begins when the client has sent the body, however long that took', async () => {
    vi.useFakeTimers({ toFake: [...measured] });
    const exchange = await startExchange(upload);
    await vi.advanceTimersByTimeAsync(9_000);
    sendingOf(exchange).onRequestSent();
    await vi.advanceTimersByTimeAsync(200);
    head(exchange);
    expect(await exchange.upstreamTime()).toBeCloseTo(200);
  });

  it('begins at the last part of the body if the upstream responds before the client has sent the rest', async () => {
    vi.useFakeTimers({ toFake: [...measured] });
    const exchange = await startExchange(upload);
    await vi.advanceTimersByTimeAsync(9_000);
    sendingOf(exchange).onBodySent();
    await vi.advanceTimersByTimeAsync(300);
    head(exchange);
    expect(await exchange.upstreamTime()).toBeCloseTo(300);
  });

  it('begins again with a second try', async () => {
    vi.useFakeTimers({ toFake: [...measured] });
    const exchange = await startExchange();
    sendingOf(exchange).onRequestSent();
    await vi.advanceTimersByTimeAsync(5_000);
    exchange.handler.onResponseError(exchange.controller, Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    expect(exchange.dispatched).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(100);
    head(exchange);
    expect(await exchange.upstreamTime()).toBeCloseTo(100);
  });
});

describe('an upstream that responds before the client has sent the whole body', () => {
  it('may take any time to finish its response', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const exchange = await startExchange({ ...upload, firstByte: 5_000 });
    await vi.advanceTimersByTimeAsync(2_000);
    head(exchange);
    data(exchange, 'first part');
    const sending = sendingOf(exchange);
    sending.onBodySent();
    sending.onRequestSent();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([exchange.outcome, exchange.suspected, exchange.aborted.length]).toEqual([undefined, 1, 0]);
    end(exchange);
    await vi.advanceTimersByTimeAsync(0);
    expect(exchange.outcome).toBe('done');
  });
});

describe('the end of a session', () => {
  it('ends an event stream after its last event, and stops the upstream at once', async () => {
    const exchange = await startExchange();
    head(exchange, { 'content-type': 'text/event-stream' });
    data(exchange, 'data: 1\n\n');
    await turn();
    endSession(exchange);
    expect([exchange.aborted.length, watched(exchange)]).toEqual([1, [0, 0]]);
    await turn();
    expect([exchange.client.isReset, exchange.response.writableEnded, exchange.outcome]).toEqual([false, true, 'done']);
  });

  it('gets 401 if no response has begun', async () => {
    const exchange = await startExchange({ isStream: true });
    endSession(exchange);
    await turn();
    expect([exchange.outcome, exchange.aborted.length, exchange.client.isReset]).toEqual(['unauthenticated', 1, false]);
  });

  it('resets a WebSocket', async () => {
    const exchange = await startExchange({ isUpgrade: true });
    upgrade(exchange);
    endSession(exchange);
    await turn();
    expect([exchange.client.isReset, exchange.outcome]).toEqual([true, 'done']);
  });
});

describe('a WebSocket', () => {
  it('stays open while it is idle', async () => {
    const exchange = await startExchange({ isUpgrade: true });
    const before = exchange.client.timeouts.length;
    upgrade(exchange);
    expect(exchange.client.received).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
    expect(exchange.client.timeouts.slice(before)).toEqual([0]);
    expect(exchange.client.keepAlive).toEqual([[true, 60_000]]);
  });

  it('that the upstream opens after the client has left is closed, whatever the upstream does', async () => {
    const exchange = await startExchange({ isUpgrade: true });
    await leave(exchange);
    const upstream = upgrade(exchange);
    expect([upstream.destroyed, exchange.client.received]).toEqual([true, '']);
    expect(() => upstream.emit('error', new Error('reset'))).not.toThrow();
  });
});
