// Tests request bodies that never end, over real connections.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { limitBodies, readRestOfBodies } from './slow-bodies.ts';

let server: Server;
let socket: Socket;
let dribbling: NodeJS.Timeout;
let head: string;
afterEach(async () => {
  clearInterval(dribbling);
  socket.destroy();
  await closeServer(server);
});

/** Milliseconds for a body. */
const arrival = 300;
/** Milliseconds for the rest of a body after the response. */
const rest = 150;

/** Sends the head of a request, then one byte of the body every 20 ms. Returns the client's socket. */
async function dribble(path: string, app: RequestListener): Promise<Socket> {
  server = createServer(app);
  server.requestTimeout = 0;
  limitBodies(server, ({ url = '' }) => url.startsWith('/relayed'), arrival);
  readRestOfBodies(server, rest);
  socket = connect(await listenOnLoopback(server), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n`;
  socket.write(head);
  dribbling = setInterval(() => socket.write('x'), 20);
  socket.once('close', () => clearInterval(dribbling));
  return socket;
}

/** Waits until the connection is closed. A concurrent write may fail with EPIPE or ECONNRESET. */
const closed = (connection: Socket) => new Promise<void>((resolve) => connection.once('close', () => resolve()));

const isOpen = async (milliseconds: number) => {
  await delay(milliseconds);
  return !socket.destroyed;
};

describe('a connection whose request has a body that never ends', () => {
  it('is closed after a while if the request is not proxied', async () => {
    const started = performance.now();
    await closed(await dribble('/read', (request) => void request.resume()));
    expect(performance.now() - started).toBeGreaterThan(250);
  });

  it('is closed soon after the response, for every request', async () => {
    for (const path of ['/refused', '/relayed/refused']) {
      await closed(await dribble(path, (_request, response) => void response.writeHead(401).end()));
      // Sending 100 bytes takes at least 2 s. A busy machine delays both the bytes and the end of the connection, so
      // the limit of 100 bytes stays valid.
      expect(socket.bytesWritten - head.length).toBeLessThan(100);
      await closeServer(server);
    }
  });

  it('stays open if the request is proxied', async () => {
    await dribble('/relayed/x', (request) => void request.resume());
    expect(await isOpen(600)).toBe(true);
  });
});

it('a connection whose request body is complete stays open for the next request', async () => {
  await dribble('/read', (request, response) => {
    request.resume();
    request.once('end', () => response.end('done'));
  });
  clearInterval(dribbling);
  socket.write('x'.repeat(100_000 - socket.bytesWritten + head.length));
  await once(socket, 'data');
  expect(await isOpen(600)).toBe(true);
});
