// Tests each fault of the proxy between a real client and a real echo server.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { listenOnLoopback } from '../support/loopback-server.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';

let server: Server;
let served: Socket[];
let received: string;
let proxy: FaultProxy;
let clients: Socket[];
beforeEach(async () => {
  [served, received, clients] = [[], '', []];
  server = await startEcho('');
  proxy = await startFaultProxy((server.address() as AddressInfo).port);
});
afterEach(async () => {
  for (const socket of [...clients, ...served]) socket.destroy();
  await proxy.close();
  server.close();
});

async function startEcho(prefix: string): Promise<Server> {
  const echo = createServer((socket) => {
    served.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      received += bytes.toString();
      socket.write(prefix + bytes.toString());
    });
  });
  await listenOnLoopback(echo);
  return echo;
}

async function open(): Promise<Socket & { text(): string; failure(): string | undefined }> {
  const socket = connect(proxy.port, '127.0.0.1');
  clients.push(socket);
  let [text, failure] = ['', undefined as string | undefined];
  socket.on('data', (bytes) => {
    text += bytes.toString();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failure = error.code;
  });
  await once(socket, 'connect');
  return Object.assign(socket, { text: () => text, failure: () => failure });
}
const until = (holds: () => unknown) => expect.poll(() => Boolean(holds()), { interval: 5 }).toBe(true);
const echoed = async (socket: Awaited<ReturnType<typeof open>>, text: string) => {
  const started = performance.now();
  const before = socket.text();
  socket.write(text);
  await until(() => socket.text() === before + text);
  return performance.now() - started;
};

it('passes bytes and the end of a connection', async () => {
  const client = await open();
  await echoed(client, 'hello');
  const large = 'x'.repeat(3_000_000);
  await echoed(client, large);
  client.end();
  await once(client, 'close');
  await until(() => proxy.connections() === 0);
  expect(client.failure()).toBeUndefined();
});

it('delays packets, with jitter and in order', async () => {
  const client = await open();
  proxy.set({ latency: 40, jitter: 40 });
  const started = performance.now();
  const digits = '0123456789';
  for (const digit of digits) {
    client.write(digit);
    await delay(2);
  }
  await until(() => client.text().length === digits.length);
  expect(client.text()).toBe(digits);
  expect(performance.now() - started).toBeGreaterThanOrEqual(79);
});

it('limits the rate', async () => {
  const client = await open();
  proxy.set({ bytesPerSecond: 100_000 });
  expect(await echoed(client, 'x'.repeat(20_000))).toBeGreaterThanOrEqual(150);
});

it.each(['requests', 'responses', 'both'] as const)('loses %s until it is healed', async (lost) => {
  const client = await open();
  proxy.set({ lost });
  client.write('hello');
  if (lost === 'responses') await until(() => received === 'hello');
  await delay(50);
  expect([received, client.text()]).toEqual([lost === 'responses' ? 'hello' : '', '']);
  await proxy.heal();
  await until(() => client.text() === 'hello');
});

it('resets connections, so that what was lost never arrives', async () => {
  const client = await open();
  proxy.set({ lost: 'requests' });
  client.write('hello');
  await delay(20);
  proxy.reset();
  await until(() => client.failure() === 'ECONNRESET');
  await proxy.heal();
  await echoed(await open(), 'again');
  expect(received).toBe('again');
});

it('refuses connections until it is healed', async () => {
  const client = await open();
  await proxy.refuse();
  await until(() => client.failure() === 'ECONNRESET');
  await expect(open()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await proxy.heal();
  await echoed(await open(), 'again');
});

it('leaves open connections hanging at both ends, and serves new ones', async () => {
  const client = await open();
  await echoed(client, 'hello');
  proxy.strand();
  client.write('lost');
  await echoed(await open(), 'new');
  client.destroy();
  await proxy.heal();
  await delay(50);
  expect(received).toBe('hellonew');
  expect(served.map(({ destroyed, readableEnded }) => destroyed || readableEnded)).toEqual([false, false]);
});

it('can be pointed to another server', async () => {
  const other = await startEcho('other ');
  const client = await open();
  proxy.retarget((other.address() as AddressInfo).port);
  await until(() => client.failure() === 'ECONNRESET');
  const next = await open();
  next.write('hello');
  await until(() => next.text() === 'other hello');
  other.close();
});

it('resets a connection to a server that refuses it', async () => {
  proxy.retarget(1);
  const client = await open();
  await until(() => client.failure() === 'ECONNRESET');
});
