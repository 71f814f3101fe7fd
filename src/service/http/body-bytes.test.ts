// Tests the minimum rate of a body, over real connections.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { listenOnLowPort } from '../../../dev/ports.ts';
import { readBodyBytes } from './body-bytes.ts';

const endings: (() => unknown)[] = [];
afterEach(() => Promise.all(endings.splice(0).map((end) => end())));

/**
 * Starts a server that reads bodies of at least 10 kB/s after 200 ms, and connects to it. `read` gets the result for each
 * request. `ready` delays the reading.
 */
async function startServer(
  read: (body: Promise<Buffer>) => void,
  ready: (request: IncomingMessage) => Promise<unknown> = async () => undefined,
): Promise<Socket> {
  const listener: RequestListener = (request) =>
    void ready(request).then(() => read(readBodyBytes(request, 1_000_000, { bytesPerSecond: 10_000, grace: 200 })));
  const server = createServer(listener);
  const port = await listenOnLowPort(server);
  endings.push(() => server.close());
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  endings.push(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

const head = (length: number) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`;

it.each([
  ['stops', 0],
  ['sends a byte now and then', 1],
])('a body whose client %s is refused soon, with 408 and the end of the connection', async (_how, bytes) => {
  const result = Promise.withResolvers<Buffer>();
  const socket = await startServer((body) => result.resolve(body));
  socket.write(`${head(100_000)}x`);
  const timer = setInterval(() => socket.write('x'.repeat(bytes)), 20);
  endings.push(() => clearInterval(timer));
  const began = performance.now();
  await expect(result.promise).rejects.toMatchObject({ slug: 'request-timeout', headers: { Connection: 'close' } });
  expect(performance.now() - began).toBeGreaterThan(150);
});

it('a body whose client left while the request waited is refused immediately', async () => {
  const result = Promise.withResolvers<Buffer>();
  const socket = await startServer(
    (body) => result.resolve(body),
    (request) => new Promise((resolve) => request.once('close', resolve)),
  );
  socket.write(`${head(100_000)}x`, () => setTimeout(() => socket.destroy(), 20));
  await expect(result.promise).rejects.toMatchObject({ slug: 'invalid-request' });
});

it('a body that takes long but arrives at the minimum rate is read', async () => {
  const result = Promise.withResolvers<Buffer>();
  const socket = await startServer((body) => result.resolve(body));
  socket.write(head(15_000));
  // 5,000 bytes every 100 ms need 300 ms, which is more than the 200 ms that a silent client has.
  for (let part = 0; part < 3; part += 1) {
    await delay(100);
    socket.write('x'.repeat(5_000));
  }
  expect((await result.promise).length).toBe(15_000);
});
