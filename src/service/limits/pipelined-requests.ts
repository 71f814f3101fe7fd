// Limits the requests of a connection that wait for the response to an earlier one (pipelining, RFC 9112 section
// 9.3.2). Node handles them at once, and keeps each response in memory until its turn: a client that reads nothing
// could make thousands of responses with one packet. Browsers and usual proxies do not pipeline.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum number of requests of a connection that wait. */
const most = 16;

/** Closes a connection on which more requests wait. The app does not get a request of a closed connection. */
export function limitPipelining(server: Server): void {
  const waiting = new WeakMap<Socket, number>();
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    // A response that is not waiting has its socket already.
    if (response.socket !== null) return;
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    response.once('socket', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
    if (count > most) socket.destroy();
  });
}
