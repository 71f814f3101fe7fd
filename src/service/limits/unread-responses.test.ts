// Tests how many bytes wait for clients that do not read, with a real server and real connections.
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { anonymous, type Guard, type Route, route } from '../http/http-app.ts';
import { sendShared } from '../http/request-context.ts';

/** A body that the kernel's buffers cannot hold. Two of them are allowed to a person. */
const size = 7.5 * 1_048_576;
const shared = Buffer.alloc(size, 'x');

/** Takes the tenant and the person from the path. */
const person: Guard = {
  name: 'person',
  check({ params }, { locals }) {
    locals.signedIn = { tenantId: String(params.tenant), subject: String(params.person), clientId: 'spa' };
  },
};
/** A route that responds with 7.5 MiB. */
const large = (path: string, handle: Route['handle']) =>
  route({ method: 'get', path, summary: 'x', guards: [anonymous, person], answers: {}, handle: handle as never });

let app: ListeningApp;
let sockets: Socket[];
beforeEach(async () => {
  sockets = [];
  app = await startApp([
    large('/own/:tenant/:person', async (_input, _request, response) => void response.send('x'.repeat(size))),
    large('/shared/:tenant/:person', (_input, _request, response) => sendShared(response, 'text/plain', shared)),
  ]);
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await app.close();
});

/** Asks for the responses, in one connection, but reads nothing. Waits until the first one has begun. */
async function askOnly(...paths: string[]): Promise<Socket> {
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  const begun = new Promise((resolve) => socket.once('readable', resolve));
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
  await begun;
  return socket;
}

/** Reads to the end. Returns whether all of the response has arrived. */
async function isWhole(socket: Socket): Promise<boolean> {
  let bytes = 0;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.on('close', () => resolve(bytes > size));
  socket.on('data', (chunk) => {
    bytes += chunk.length;
    if (bytes > size) resolve(true);
  });
  return promise;
}

const wholeOnes = (opened: Socket[]) => Promise.all(opened.map(isWhole));

async function refused(): Promise<unknown> {
  const { values } = await app.metrics.queueRefusals.get();
  return values.map(({ labels, value }) => [labels.queue, labels.reason, value]);
}

it('a person who does not read responses loses the oldest ones, and nobody else does', async () => {
  const other = await askOnly('/own/demo/ben');
  const own: Socket[] = [];
  for (let nth = 0; nth < 4; nth += 1) own.push(await askOnly('/own/demo/ana'));
  expect(await refused()).toEqual([['unread-responses', 'full', 2]]);
  expect(await wholeOnes([other, ...own])).toEqual([true, false, false, true, true]);
});

it('a tenant whose people do not read responses loses those of its largest user', async () => {
  const ana = [await askOnly('/own/demo/ana'), await askOnly('/own/demo/ana')];
  const others: Socket[] = [await askOnly('/own/other/ana')];
  for (const name of ['ben', 'cy', 'dan']) others.push(await askOnly(`/own/demo/${name}`));
  expect(await wholeOnes([...ana, ...others])).toEqual([false, true, true, true, true, true]);
});

it('all tenants together lose responses of the largest one', async () => {
  const single = await askOnly('/own/small/ana');
  const large: Socket[] = [];
  for (const person of ['ana', 'ana', 'ben']) large.push(await askOnly(`/own/large/${person}`));
  for (const tenant of ['t1', 't2']) for (const name of ['ana', 'ben']) await askOnly(`/own/${tenant}/${name}`);
  const last = await askOnly('/own/last/ana');
  expect(await wholeOnes([single, ...large, last])).toEqual([true, false, true, true, true]);
});

it('responses that were read, and those whose client left, no longer count', async () => {
  const left = [await askOnly('/own/demo/ana'), await askOnly('/own/demo/ana', '/own/demo/ana')];
  for (const socket of left) socket.destroy();
  for (let nth = 0; nth < 5; nth += 1) {
    const response = await fetch(`${app.url}/own/demo/ana`);
    expect((await response.text()).length).toBe(size);
  }
  expect(await wholeOnes([await askOnly('/own/demo/ana'), await askOnly('/own/demo/ana')])).toEqual([true, true]);
});

it('pipelined requests count although their responses have not begun', async () => {
  const socket = await askOnly('/own/demo/ana', '/own/demo/ana', '/own/demo/ana');
  expect(await isWhole(socket)).toBe(false);
});

it('a body that many responses share does not count', async () => {
  const opened: Socket[] = [];
  for (let nth = 0; nth < 20; nth += 1) opened.push(await askOnly('/shared/demo/ana'));
  expect(await refused()).toEqual([]);
  expect(await wholeOnes(opened)).toEqual(Array(20).fill(true));
});
