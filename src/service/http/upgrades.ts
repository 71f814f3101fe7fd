// Lets routes take connections that ask for the WebSocket protocol (RFC 6455 section 4.2). A handshake goes through the
// app like any request, guards, log line and problems included; the route that takes it finds the bare connection here.
// Other protocols are not switched to: `Upgrade` is then ignored (RFC 9110 section 7.8).
import type { IncomingMessage, RequestListener, ServerResponse as Response, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServerResponse } from './node-http.ts';

export interface Upgrade {
  socket: Socket;
  /** What the client sent behind its request. */
  head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** Undefined for a request that asks for no upgrade. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}

/** A GET without a body that asks for this one protocol. */
export function isWebSocketHandshake({ method, httpVersion, headers }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  return method === 'GET' && httpVersion === '1.1' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBody;
}

/** Hands the handshakes of `server` to `app`. The connection closes with any answer but a switch of protocols. */
export function serveUpgrades(server: Server, app: RequestListener): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const connection = socket as Socket;
    connection.setTimeout(0);
    upgrades.set(request, { socket: connection, head });
    app(request, responseOver(connection, request));
  });
}

/** Hands CONNECT to `app`, which refuses it. Node alone closes the connection without a response. */
export function serveConnects(server: Server, app: RequestListener): void {
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    // It names an authority and no path (RFC 9112 section 3.2.3), which Express would not look at.
    request.url = '/';
    app(request, responseOver(socket as Socket, request));
  });
}

/** On a connection that Node has let go of; it closes behind the response. */
function responseOver(connection: Socket, request: IncomingMessage): Response {
  // An error shows as a close.
  connection.on('error', () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(connection);
  response.once('finish', () => connection.destroySoon());
  return response;
}
