// Tests that `resetSocket` closes a connection in every state, and that Node's `resetAndDestroy` still fails in one
// state.
import { execFile } from 'node:child_process';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { resetSocket } from './reset-socket.ts';

let server: Server;
afterEach(() => closeServer(server));

/**
 * The server sends `data`, ends its side of the connection and calls `then` with its socket. Returns the state of the
 * server's socket after the client's socket has closed.
 */
async function end(data: string, then: (socket: Socket) => void): Promise<'closed' | 'open'> {
  let state = 'open' as 'closed' | 'open';
  server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('close', () => {
      state = 'closed';
    });
    socket.resume().end(data);
    then(socket);
  });
  const port = await listenOnLoopback(server);
  const client = connect(port, '127.0.0.1');
  client.on('error', () => undefined);
  await new Promise((closed) => client.resume().on('close', closed));
  // The server may notice the reset some time later.
  for (let waited = 0; state !== 'closed' && waited < 10_000; waited += 50) await delay(50);
  return state;
}

const moments: Record<string, (socket: Socket, reset: () => void) => void> = {
  'at once': (_socket, reset) => reset(),
  'in a microtask': (_socket, reset) => queueMicrotask(reset),
  'at the next tick': (_socket, reset) => process.nextTick(reset),
  'in the next round of the event loop': (_socket, reset) => void setImmediate(reset),
  'before the end': (socket, reset) => socket.on('prefinish', reset),
  'after the end': (socket, reset) => socket.on('finish', reset),
};

it.each(Object.keys(moments).flatMap((moment) => ['', 'x', 'x'.repeat(5_000_000)].map((data) => ({ moment, data }))))(
  'a connection that ends is closed by a reset $moment',
  async ({ moment, data }) => {
    expect(await end(data, (socket) => moments[moment]?.(socket, () => resetSocket(socket)))).toBe('closed');
  },
);

/**
 * A script that calls Node's own `resetAndDestroy`. It runs in a separate process, because it leaves a connection open.
 */
const nodesOwn = `
const { connect, createServer } = require('node:net');
const server = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', (error) => console.log(error.code)).on('close', () => console.log('closed'));
  socket.end();
  socket.resetAndDestroy();
  setTimeout(() => process.exit(), 100);
}).listen(0, '127.0.0.1', () => connect(server.address().port, '127.0.0.1').on('error', () => undefined));
`;

it('Node’s own function leaves a connection open that is being shut down; if not, this module is not needed', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', nodesOwn]);
  expect(stdout).toBe('EINVAL\n');
});
