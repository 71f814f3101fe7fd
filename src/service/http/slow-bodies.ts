// Limits the time in which a request body must arrive, and reads and discards what remains of it after the response. If
// the connection were closed while the client still sends, the client's kernel would receive a reset, and the client
// could lose the response (RFC 9112 section 9.6).
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { hasBody } from './request-framing.ts';

/** Milliseconds for the whole body of a request that is not proxied. */
const usualArrival = 300_000;
/** Milliseconds for the rest of the body of any request after the response. */
const usualRest = 5_000;

/**
 * Closes the connection if the body of a request has not arrived after `arrival` milliseconds. This limit replaces
 * Node's own, which would also cut off large proxied bodies: those have no time limit until their response has been
 * sent.
 */
export function limitBodies(
  server: Server,
  isProxied: (request: IncomingMessage) => boolean,
  arrival: number = usualArrival,
): void {
  server.prependListener('request', (request: IncomingMessage) => {
    if (hasBody(request) && !isProxied(request)) cutAfter(arrival, request);
  });
}

/**
 * Lets clients send the rest of their request after an early response, for `rest` milliseconds. If the response has
 * announced the close of the connection, the connection is closed after the body.
 */
export function readRestOfBodies(server: Server, rest: number = usualRest): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!hasBody(request)) return;
    response.once('prefinish', () => {
      if (request.complete) return;
      closeAfterBody(request);
      // Not only after `finish`: some clients read nothing before they have sent everything.
      request.resume();
      response.once('finish', () => cutAfter(rest, request));
    });
  });
}

/**
 * Ignores requests that follow a response with `Connection: close` (RFC 9112 section 9.6), which may arrive while the
 * rest of a body is read, and those of a connection that was just closed.
 */
export function ignoreAfterClose(app: RequestListener): RequestListener {
  return (request, response) => {
    if (!request.socket.writableEnded && !request.socket.destroyed) app(request, response);
  };
}

/**
 * After the last response of a connection, Node calls `destroySoon` on its socket. Replaces this method on the one
 * socket, so that it first closes only our direction, and both after the end of the body.
 */
function closeAfterBody(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    if (request.complete) return Socket.prototype.destroySoon.call(socket);
    socket.end();
    request.once('end', () => socket.destroySoon());
  };
}

function cutAfter(milliseconds: number, request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, milliseconds);
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
