// Tests the minimum rate of a body, over real connections, and the memory for a body in many chunks.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { listenOnLowPort } from '../../../dev/ports.ts';
import { type MinimumRate, readBodyBytes } from './body-bytes.ts';

const endings: (() => unknown)[] = [];
afterEach(() => Promise.all(endings.splice(0).map((end) => end())));

const strict: MinimumRate = { bytesPerSecond: 10_000, grace: 200 };
let rate = strict;
beforeEach(() => {
  rate = strict;
});

/**
 * Starts a server that requires bodies to arrive at `rate`, and connects to it. `read` gets the result for each
 * request. `ready` delays the reading.
 */
async function startServer(
  read: (body: Promise<Buffer>) => void,
  ready: (request: IncomingMessage) => Promise<unknown> = async () => undefined,
): Promise<Socket> {
  const listener: RequestListener = (request) =>
    void ready(request).then(() => read(readBodyBytes(request, 1_000_000, () => rate)));
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

it('a body is refused soon after the minimum rate has become higher than its own', async () => {
  rate = { bytesPerSecond: 1, grace: 60_000 };
  const result = Promise.withResolvers<Buffer>();
  const socket = await startServer((body) => result.resolve(body));
  socket.write(`${head(100_000)}x`);
  await delay(300);
  rate = strict;
  await expect(result.promise).rejects.toMatchObject({ slug: 'request-timeout' });
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

it('a body that takes long but is faster than the minimum rate is read', async () => {
  const result = Promise.withResolvers<Buffer>();
  const socket = await startServer((body) => result.resolve(body));
  const part = 'x'.repeat(100_000);
  socket.write(head(300_000) + part);
  // A client that sent nothing would be refused after 200 ms. Each part may take 10 s.
  for (let sent = 1; sent < 3; sent += 1) {
    await delay(150);
    socket.write(part);
  }
  expect((await result.promise).length).toBe(300_000);
});

it('a body of 1 MiB in chunks of one byte takes little memory', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const used = () => {
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const size = 1_048_576;
  const request = Object.assign(new Readable({ read: () => undefined }), { headers: {}, complete: false });
  const body = readBodyBytes(request as unknown as IncomingMessage, size);
  const before = used();
  for (let index = 0; index < size; index += 1) request.emit('data', Buffer.from([index % 251]));
  const growth = used() - before;
  request.push(null);
  const bytes = await body;
  expect(growth).toBeLessThan(10 * 1_048_576);
  expect(bytes.length).toBe(size);
  expect(bytes.every((byte, index) => byte === index % 251)).toBe(true);
});

it.each([
  [undefined, [70_000, 1, 200_000]],
  [undefined, [1, 1, 1]],
  [300_000, [1, 99_999, 200_000]],
  [5, [2, 2, 1]],
  [undefined, []],
])('a body with Content-Length %s in chunks of %j is read completely', async (length, sizes) => {
  const chunks = sizes.map((size, index) => Buffer.alloc(size, index + 1));
  const headers = length === undefined ? {} : { 'content-length': String(length) };
  const request = Object.assign(Readable.from(chunks), { headers, complete: false });
  const bytes = await readBodyBytes(request as unknown as IncomingMessage, 1_000_000);
  expect(bytes.equals(Buffer.concat(chunks))).toBe(true);
});
