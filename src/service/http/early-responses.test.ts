// Tests over real connections that a response reaches a client that is still sending its request.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { ignoreAfterClose, readRestOfBodies } from './slow-bodies.ts';
import { serveUpgrades } from './upgrades.ts';

let server: Server;
let client: Socket;
/** Resolves when the server has closed both directions of the connection. */
let closed: Promise<unknown>;
let received: string;
/** The paths of the requests that reached the app. */
let served: string[];
/** The errors of the client's connection. */
let failures: string[];
afterEach(async () => {
  client.destroy();
  await closeServer(server);
});

const size = 100_000;
const head = (framing: string, path = '/') => `POST ${path} HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`;

/** Sends the head of a request to a server that responds without waiting for the body. */
async function start(responseHeaders: Record<string, string>, framing = `Content-Length: ${size}`, longest = 5_000) {
  served = [];
  failures = [];
  received = '';
  const app: RequestListener = (request, response) => {
    served.push(request.url ?? '');
    response.writeHead(413, responseHeaders).end('refused');
  };
  server = createServer(ignoreAfterClose(app));
  readRestOfBodies(server, longest);
  serveUpgrades(server, ignoreAfterClose(app));
  const accepted = once(server, 'connection');
  client = connect({ port: await listenOnLoopback(server), host: '127.0.0.1', allowHalfOpen: true });
  client.on('error', ({ message }) => failures.push(message));
  client.on('data', (data) => {
    received += data;
  });
  closed = accepted.then(([socket]) => once(socket as Socket, 'close'));
  client.write(head(framing));
}

/** Sends data in pieces. If the server had closed the connection, a piece would fail. */
async function send(piece: string, pieces: number): Promise<void> {
  for (let sent = 0; sent < pieces; sent += 1) {
    client.write(piece);
    await delay(5);
  }
}

it.each([
  [`Content-Length: ${size}`, 'x'.repeat(size / 20), ''],
  ['Transfer-Encoding: chunked', '3\r\nxxx\r\n', '0\r\n\r\n'],
])('a client may send its whole body after the last response of the connection (%s)', async (framing, piece, last) => {
  await start({ Connection: 'close' }, framing);
  await once(client, 'end');
  expect(received).toMatch(/^HTTP\/1.1 413 .*refused/s);
  await send(piece, 20);
  client.write(last);
  // The client has not closed its direction. The server does not wait for that.
  await closed;
  expect(failures).toEqual([]);
});

it('a client may send its whole body after an early response, and then the next request', async () => {
  await start({});
  await once(client, 'data');
  await send('x'.repeat(size / 20), 20);
  client.write(head('Content-Length: 0', '/next'));
  await expect.poll(() => received.match(/refused/g)).toHaveLength(2);
  expect(served).toEqual(['/', '/next']);
});

it('a client that sends further after the last response loses the connection after a time', async () => {
  await start({ Connection: 'close' }, undefined, 100);
  await once(client, 'end');
  const sending = setInterval(() => client.write('x'), 5);
  await closed.finally(() => clearInterval(sending));
  expect(client.bytesWritten).toBeLessThan(size);
});

it.each([
  ['', head('Content-Length: 0', '/next')],
  [' WebSocket', 'GET /next HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
])('a%s request after the last response of the connection is not served', async (_what, next) => {
  await start({ Connection: 'close' });
  await once(client, 'end');
  client.write(`${'x'.repeat(size)}${next}`);
  await closed;
  expect(served).toEqual(['/']);
});
