// Tests WebSocket handshakes whose client ends its side of the connection immediately after the request. Uses raw
// sockets, because browsers and client libraries do not do this.
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { acceptWebSocket } from '../../../test/support/upstream.ts';

let world: TargetWorld;
beforeAll(async () => {
  world = await startTargetWorld();
});
afterAll(() => world.close());
beforeEach(() => {
  world.upstream.forget();
  world.upstream.onUpgrade = undefined;
  isOpen = false;
});

/** Sends a handshake and a FIN. Resolves with the response when the token handler has closed the connection. */
function halfClosed(lines: string[], path = 'api/socket'): Promise<{ status: number; body: string; seconds: number }> {
  const head = [
    ...[`GET /token-handler/v1/targets/${path} HTTP/1.1`, 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket'],
    ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', ...lines],
  ];
  const began = performance.now();
  const port = Number(new URL(world.site).port);
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.setEncoding('latin1').end(`${head.join('\r\n')}\r\n\r\n`);
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setTimeout(10_000, () => socket.destroy(new Error('the connection stays open')));
    socket.on('error', reject).on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => {
      const [status = '', ...rest] = text.split('\r\n\r\n');
      const seconds = (performance.now() - began) / 1_000;
      resolve({ status: Number(status.split(' ')[1] ?? 0), body: rest.join('\r\n\r\n'), seconds });
    });
  });
}

const cookie = () => `Cookie: ${world.person.cookie}`;
const gone = { isOpen: false, streams: '0' };
/** The handshake's connection to the upstream, and the open streams that the token handler counts. */
async function inUse() {
  const metrics = await (await fetch(`${world.handler.metricsUrl}/metrics`)).text();
  const streams = /^formgate_open_streams(?:\{[^}]*\})? (\d+)$/m.exec(metrics)?.[1];
  return { isOpen, streams };
}
let isOpen: boolean;
/** Makes the upstream handle a handshake. */
function upgrade(handle: (request: IncomingMessage, socket: Duplex) => unknown): void {
  world.upstream.onUpgrade = (request, socket) => {
    isOpen = true;
    socket
      .on('error', () => undefined)
      .on('close', () => {
        isOpen = false;
      });
    socket.on('end', () => socket.end()).resume();
    handle(request, socket);
  };
}

describe('a client that ends its side of the connection after its handshake', () => {
  it.each([
    ['401 without a session', () => [], undefined, 401],
    ['403 from another origin', () => [cookie(), 'Origin: https://evil.example'], undefined, 403],
    ['404 for an unknown target', () => [cookie()], 'unknown/x', 404],
    ['502 for an upstream that cannot be reached', () => [cookie()], 'dead/x', 502],
  ])('gets %s, with the problem', async (_what, lines, path, status) => {
    const answer = await halfClosed(lines(), path);
    expect(answer).toMatchObject({ status, body: expect.stringContaining('urn:formgate:problem:') });
    await expect.poll(inUse, { timeout: 5_000 }).toEqual(gone);
  });

  it('gets the whole response of an upstream that refuses the handshake', async () => {
    const part = 'no'.repeat(50_000);
    upgrade(async (_request, socket) => {
      await delay(300);
      socket.write(`HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: ${4 * part.length}\r\n\r\n`);
      for (let nth = 0; nth < 4; nth += 1) {
        socket.write(part);
        // Together, the pauses are longer than the time in which an upstream must begin its response.
        await delay(700);
      }
      socket.end();
    });
    const { status, body } = await halfClosed([cookie()]);
    expect([status, body.length]).toEqual([403, 4 * part.length]);
    await expect.poll(inUse, { timeout: 5_000 }).toEqual(gone);
  });

  it('is disconnected if the upstream does not respond soon, because it has probably left', async () => {
    upgrade(() => undefined);
    const { status, seconds } = await halfClosed([cookie()]);
    expect(status).toBe(0);
    expect(seconds).toBeGreaterThan(1.9);
    await expect.poll(inUse, { timeout: 5_000 }).toEqual(gone);
  });

  it('gets 101 if the upstream accepts, and then both connections are closed', async () => {
    upgrade(async (request, socket) => {
      await delay(300);
      acceptWebSocket(request, socket);
    });
    expect(await halfClosed([cookie()])).toMatchObject({ status: 101 });
    await expect.poll(inUse, { timeout: 5_000 }).toEqual(gone);
  });
});
