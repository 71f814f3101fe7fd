// Tests how many bytes wait for clients that do not read, with a real server and real connections.
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { anonymous, type Guard, type Route, route } from '../http/http-app.ts';
import { ownCallHeaders } from '../http/own-calls.ts';
import { sendShared } from '../http/request-context.ts';

/** A body that the kernel's buffers cannot hold. A person may have two of them unread, and then makes a third. */
const size = 7.5 * 1_048_576;
const shared = Buffer.alloc(size, 'x');

/** Takes the tenant and the person from the path. */
const person: Guard = {
  name: 'person',
  check({ params }, { locals }) {
    locals.signedIn = { tenantId: String(params.tenant), subject: String(params.person), clientId: 'spa' };
  },
};
const get = (path: string, handle: Route['handle']) =>
  route({ method: 'get', path, summary: 'x', guards: [anonymous, person], responses: {}, handle: handle as never });

let app: ListeningApp;
let sockets: Socket[];
/** What lets the requests to `/gate` respond. */
let gate: ReturnType<typeof Promise.withResolvers<void>>;
let waiting: number;
beforeEach(async () => {
  [sockets, gate, waiting] = [[], Promise.withResolvers<void>(), 0];
  app = await startApp([
    get('/own/:tenant/:person', (_input, _request, response) => void response.send('x'.repeat(size))),
    get('/small/:tenant/:person', (_input, _request, response) => void response.send('x')),
    get('/huge/:tenant/:person', (_input, _request, response) => void response.send('x'.repeat(5 * size))),
    get('/shared/:tenant/:person', (_input, _request, response) => sendShared(response, 'text/plain', shared)),
    get('/gate/:tenant/:person', async (_input, _request, response) => {
      waiting += 1;
      await gate.promise;
      response.send('x'.repeat(size));
    }),
  ]);
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await app.close();
});

/** Sends a request, and reads nothing of the response. */
function send(path: string, headers: Record<string, string> = {}): Socket {
  const socket = connect(app.port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${more.join('')}\r\n`);
  return socket;
}

/** Sends a request, and waits until the response has begun. */
async function askOnly(path: string): Promise<Socket> {
  const socket = send(path);
  await new Promise((resolve) => socket.once('readable', resolve));
  return socket;
}

/** Reads to the end. Returns whether all of the response has arrived. */
function isWhole(socket: Socket): Promise<boolean> {
  let bytes = 0;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.on('close', () => resolve(bytes > size));
  socket.on('data', (chunk) => {
    bytes += chunk.length;
    if (bytes > size) resolve(true);
  });
  return promise;
}

const wholeOnes = async (opened: Socket[]) => (await Promise.all(opened.map(isWhole))).filter(Boolean).length;
const status = async (path: string) => {
  const response = await fetch(`${app.url}${path}`);
  await response.arrayBuffer();
  return [response.status, response.headers.get('retry-after')];
};
async function refused(): Promise<unknown> {
  const { values } = await app.metrics.queueRefusals.get();
  return values.map(({ labels, value }) => [labels.queue, labels.reason, value]);
}

it('a person who does not read responses gets 503 until they are read; other people do not', async () => {
  const unread = [await askOnly('/own/demo/ana'), await askOnly('/own/demo/ana'), await askOnly('/own/demo/ana')];
  expect(await status('/small/demo/ana')).toEqual([503, '5']);
  expect(await refused()).toEqual([['unread-responses', 'full', 1]]);
  expect([await status('/own/demo/ben'), await status('/own/other/ana')]).toEqual([
    [200, null],
    [200, null],
  ]);
  expect(await wholeOnes(unread)).toBe(3);
  await expect.poll(() => status('/small/demo/ana')).toEqual([200, null]);
});

it('responses whose clients left no longer count, also those of pipelined requests', async () => {
  for (let nth = 0; nth < 3; nth += 1) {
    const socket = await askOnly('/own/demo/ana');
    socket.write(`GET /own/demo/ana HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(2));
    await expect.poll(() => status('/small/demo/ana')).toEqual([503, '5']);
    socket.destroy();
    await expect.poll(() => status('/small/demo/ana')).toEqual([200, null]);
  }
});

it.each([
  ['a person', (_nth: number) => '/gate/demo/ana', 4],
  ['the people of a tenant', (nth: number) => `/gate/demo/person-${nth}`, 8],
])(
  'the responses to requests that %s makes at the same time are cut beyond twice the limit',
  async (_who, path, most) => {
    const opened = Array.from({ length: most + 3 }, (_, nth) => send(path(nth)));
    const other = send('/gate/other/ben');
    await expect.poll(() => waiting).toBe(most + 4);
    gate.resolve();
    await expect.poll(refused).toEqual([['unread-responses', 'full', 3]]);
    expect(await wholeOnes(opened)).toBe(most);
    expect(await isWhole(other)).toBe(true);
  },
);

it('the largest tenant loses responses if all tenants together exceed twice the limit', async () => {
  const small = Array.from({ length: 10 }, (_, nth) => send(`/gate/tenant-${nth}/ana`));
  const large = Array.from({ length: 8 }, (_, nth) => send(`/gate/large/person-${nth}`));
  await expect.poll(() => waiting).toBe(18);
  gate.resolve();
  await expect.poll(refused).toEqual([['unread-responses', 'full', 1]]);
  expect([await wholeOnes(small), await wholeOnes(large)]).toEqual([10, 7]);
});

it('a person whose tenant has too many unread bytes is still served', async () => {
  for (const name of ['ana', 'ana', 'ana', 'ben', 'ben']) await askOnly(`/own/demo/${name}`);
  expect(await status('/small/demo/ben')).toEqual([503, '5']);
  expect(await status('/own/demo/cy')).toEqual([200, null]);
});

it('one response of any size can be read', async () => {
  expect((await (await fetch(`${app.url}/huge/demo/ana`)).text()).length).toBe(5 * size);
  expect(await refused()).toEqual([]);
});

it('a body that many responses share counts once, and not for its readers', async () => {
  const opened: Socket[] = [];
  for (let nth = 0; nth < 20; nth += 1) opened.push(await askOnly('/shared/demo/ana'));
  expect(await status('/small/demo/ana')).toEqual([200, null]);
  expect(await wholeOnes(opened)).toBe(20);
});

it('calls of the process to itself are neither counted nor refused', async () => {
  const own = () => send('/own/demo/ana', ownCallHeaders);
  const opened = Array.from({ length: 5 }, own);
  expect(await wholeOnes(opened)).toBe(5);
  for (let nth = 0; nth < 3; nth += 1) await askOnly('/own/demo/ana');
  expect(await isWhole(own())).toBe(true);
});
