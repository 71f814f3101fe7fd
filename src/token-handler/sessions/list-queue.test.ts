// Tests how many lists of sessions run at the same time, with a real server and clients that do not read its responses.
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { listenOnLowPort } from '../../../dev/ports.ts';
import { createHttpServer } from '../../../test/support/http-server.ts';
import { Problem } from '../../service/http/problem.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { createListQueue, type ListQueueOptions } from './list-queue.ts';

/** A response that the kernel's buffers cannot hold. */
const large = Buffer.alloc(32 * 1_048_576);

let server: Server;
let port: number;
let metrics: Metrics;
let sockets: Socket[];
/** The paths of the lists that have started. */
let started: string[];

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Starts a server with a list for each path `/<tenant>/<person>`. A path that ends with `fails` has an error. */
async function serve(options: Partial<ListQueueOptions> = {}): Promise<void> {
  metrics = createMetrics();
  const queue = createListQueue({ metrics, ...options });
  const paths: string[] = [];
  [started, sockets] = [paths, []];
  server = createHttpServer((request, response) => {
    const [, tenant = '', member = ''] = (request.url ?? '').split('/');
    const work = async () => {
      paths.push(request.url ?? '');
      if (member === 'fails') throw new Problem('unavailable', 'The store fails.');
      response.end(large);
    };
    queue({ tenant, member }, response, work).catch((error: Problem) => {
      response.writeHead(error.status, error.headers).end();
    });
  });
  port = await listenOnLowPort(server);
}

/** Asks for a list, but reads nothing of the response. */
function askOnly(path: string): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  sockets.push(socket);
  return socket;
}

async function read(path: string): Promise<[status: number, retryAfter: string | null]> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  await response.arrayBuffer();
  return [response.status, response.headers.get('retry-after')];
}

it('a person who does not read the lists gets two, and a further one when one of these is read', async () => {
  await serve();
  const [first] = [askOnly('/demo/ana'), askOnly('/demo/ana'), askOnly('/demo/ana')];
  await expect.poll(() => started).toHaveLength(2);
  await sleep(50);
  expect(started).toHaveLength(2);
  first.resume();
  await expect.poll(() => started).toHaveLength(3);
});

it('a tenant whose people do not read the lists gets four, and does not delay other tenants', async () => {
  await serve();
  for (let nth = 0; nth < 10; nth += 1) askOnly(`/demo/person-${nth}`);
  await expect.poll(() => started).toHaveLength(4);
  expect(await read('/other/ben')).toEqual([200, null]);
  expect(started).toHaveLength(5);
});

it('more lists of a person than may wait are refused', async () => {
  await serve();
  for (let nth = 0; nth < 12; nth += 1) askOnly('/demo/ana');
  await expect.poll(() => started).toHaveLength(2);
  await expect.poll(() => read('/demo/ana')).toEqual([503, '5']);
  const { values } = await metrics.queueRefusals.get();
  expect(values).toMatchObject([{ labels: { queue: 'session-lists', reason: 'full' }, value: expect.any(Number) }]);
});

it('the connection of a client that does not read its list in time is closed', async () => {
  await serve({ readMs: 100 });
  for (let nth = 0; nth < 6; nth += 1) askOnly('/demo/ana');
  await expect.poll(() => started).toHaveLength(6);
});

it('a client that leaves, and a list that fails, free their places', async () => {
  await serve();
  const left = [askOnly('/demo/ana'), askOnly('/demo/ana')];
  await expect.poll(() => started).toHaveLength(2);
  for (const socket of left) socket.destroy();
  expect(await read('/demo/ana')).toEqual([200, null]);
  for (let nth = 0; nth < 5; nth += 1) expect(await read('/demo/fails')).toEqual([503, null]);
});
