// Tests how many requests of a connection may wait for the response to an earlier one.
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { ignoreAfterClose } from '../http/slow-bodies.ts';
import { limitPipelining } from './pipelined-requests.ts';

let server: Server;
let socket: Socket;
let received: string;
let responses: ServerResponse[];
beforeEach(async () => {
  [responses, received] = [[], ''];
  server = createServer(ignoreAfterClose((_request, response) => void responses.push(response)));
  limitPipelining(server);
  socket = connect(await listenOnLoopback(server), '127.0.0.1').on('error', () => undefined);
  socket.on('data', (chunk) => {
    received += chunk;
  });
});
afterEach(async () => {
  socket.destroy();
  await closeServer(server);
});

const send = (count: number) => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count));

it('16 requests may wait, again and again', async () => {
  for (const round of [1, 2, 3]) {
    send(17);
    await expect.poll(() => responses.length).toBe(17);
    for (const response of responses.splice(0)) response.end('done');
    await expect.poll(() => received.split('done').length - 1).toBe(17 * round);
  }
  expect(socket.destroyed).toBe(false);
});

it('a connection on which more requests wait is closed, and the others of its packet are not handled', async () => {
  send(1_000);
  await new Promise((resolve) => socket.once('close', resolve));
  expect(responses.length).toBeLessThanOrEqual(17);
});
