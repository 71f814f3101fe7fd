// For a server that relays bodies and so has no limit of Node's on how long a request may take to come: lets nobody else
// hold a connection by sending a body for ever, a byte at a time. It cuts no body that is being relayed.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Milliseconds */
export interface Patience {
  /** For a whole body that is not relayed. Node's own limit, where it has one. */
  arrival: number;
  /** For the rest of a body, after the answer to its request. */
  rest: number;
}

const usual: Patience = { arrival: 300_000, rest: 5_000 };

export function limitBodies(
  server: Server,
  isRelayed: (request: IncomingMessage) => boolean,
  { arrival, rest }: Patience = usual,
): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
    if (coding === undefined && length === '0') return;
    if (!isRelayed(request)) cutAfter(arrival, request);
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
