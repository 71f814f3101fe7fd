// Limits the time in which a request body must arrive. This limit replaces Node's own, which would also cut off large
// proxied bodies. The body of a proxied request has no time limit until its response has been sent. After the response
// to any request, only a short time remains for the rest of that request's body.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Timeouts in milliseconds. */
export interface Patience {
  /** Time for the whole body of a request that is not proxied. */
  arrival: number;
  /** Time for the rest of the body of any request after the response was sent. */
  rest: number;
}

const usual: Patience = { arrival: 300_000, rest: 5_000 };

export function limitBodies(
  server: Server,
  isProxied: (request: IncomingMessage) => boolean,
  { arrival, rest }: Patience = usual,
): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
    if (coding === undefined && length === '0') return;
    if (!isProxied(request)) cutAfter(arrival, request);
    response.once('finish', () => cutAfter(rest, request));
  });
}

function cutAfter(milliseconds: number, request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, milliseconds);
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
