// Passes WebSocket handshakes (RFC 6455 section 4.2) through the app like other requests, with guards, a log line and
// problem details. The route then takes over the connection. An `Upgrade` to another protocol is ignored (RFC 9110
// section 7.8).
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServerResponse } from './node-http.ts';
import { hasBody } from './request-framing.ts';

export interface Upgrade {
  socket: Socket;
  /** Bytes that the client sent after its request. */
  head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** Returns the upgrade that a WebSocket handshake requests, or undefined for any other request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}

export function isWebSocketHandshake(request: IncomingMessage): boolean {
  const { method, httpVersion, headers } = request;
  const isUpgrade = headers.upgrade?.toLowerCase() === 'websocket';
  return method === 'GET' && httpVersion === '1.1' && isUpgrade && !hasBody(request);
}

/** Passes handshakes to `app`. Any response other than 101 closes the connection. */
export function serveUpgrades(server: Server, app: RequestListener): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const connection = socket as Socket;
    connection.setTimeout(0);
    upgrades.set(request, { socket: connection, head });
    respond(app, request, connection);
  });
}

/** Passes CONNECT to `app`, which rejects it. By default, Node closes the connection without a response. */
export function serveConnects(server: Server, app: RequestListener): void {
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    // The target of CONNECT is an authority, not a path (RFC 9112 section 3.2.3), and Express cannot route it.
    request.url = '/';
    respond(app, request, socket as Socket);
  });
}

/**
 * Passes a request to `app` on a connection that Node no longer manages. The connection closes after the response. If
 * an earlier, pipelined request of the connection has no complete response yet, the connection is destroyed: Node can
 * neither finish that response nor queue another one behind it. The same applies if an earlier response has announced
 * the close of the connection (RFC 9112 section 9.6).
 */
function respond(app: RequestListener, request: IncomingMessage, connection: Socket): void {
  // Without a listener, an error would end the process. The connection closes after an error, so nothing else is
  // needed.
  connection.on('error', () => undefined);
  if (connection.writableEnded) return void connection.destroy();
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  try {
    response.assignSocket(connection);
  } catch {
    connection.destroy();
    return;
  }
  // Node no longer passes this event on. Without it, a response larger than the connection's buffer would never end.
  connection.on('drain', () => response.writableNeedDrain && response.emit('drain'));
  response.once('finish', () => connection.destroySoon());
  app(request, response);
}
