// Joins the upgraded connection of a client with the connection to the upstream, without parsing the data. When one
// connection ends, the other connection is ended too.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { STATUS_CODES } from '../../service/http/node-http.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { upgradeOf } from '../../service/http/upgrades.ts';
import { type ResponseHeaders, responseHeaders } from './response-headers.ts';

export interface Upgraded {
  status: number;
  /** Headers of the upstream's response. */
  headers: IncomingHttpHeaders;
  upstream: Duplex;
}

/**
 * Opens the tunnel. The request is logged when the tunnel closes. If the upstream has switched to a protocol other than
 * WebSocket, throws an Error, which becomes a 502.
 */
export function openTunnel(
  request: IncomingMessage,
  response: HttpResponse,
  { status, headers, upstream }: Upgraded,
): void {
  // Ignores errors, because an error also closes `upstream`. undici has removed its own listener. Without a listener,
  // an `error` event would end the process, for example if this function throws below: undici then destroys `upstream`
  // with the error that was thrown.
  upstream.on('error', () => undefined);
  const passedOn = responseHeaders(headers, status, request);
  const upgrade = upgradeOf(request);
  if (!upgrade) {
    upstream.destroy();
    response.destroy();
    return;
  }
  const { socket: client, head } = upgrade;
  response.statusCode = status;
  client.write(headOf(status, passedOn, response), 'latin1');
  if (head.length > 0) upstream.write(head);
  client.on('error', () => undefined);
  client.once('close', () => upstream.destroy());
  upstream.once('close', () => client.destroy());
  closeAfterEnd(client, upstream);
  closeAfterEnd(upstream, client);
  client.pipe(upstream).pipe(client);
}

/**
 * Milliseconds for the closing handshake: when one side has ended its connection, the other side must follow in this
 * time (RFC 6455 section 7.1.1).
 */
const closingTime = 2_000;

/**
 * When the connection `ended` has ended, closes the connection `other` after `closingTime`. Without this limit, `other`
 * would stay open until its peer ended it.
 */
function closeAfterEnd(ended: Duplex, other: Duplex): void {
  onceEnded(ended, () => {
    const timer = setTimeout(() => other.destroy(), closingTime);
    other.once('close', () => clearTimeout(timer));
  });
}

/** Calls `act` when the peer of the connection has ended it, or now if it has ended it before. */
function onceEnded(connection: Duplex, act: () => void): void {
  if (connection.readableEnded) act();
  else connection.once('end', act);
}

/**
 * Closes the client's socket if the client has ended its side of the connection, and the upstream does not respond in
 * `closingTime`: the client has probably left. Data that the client sends early stays in the socket. The returned
 * function stops this watch. Call that function when the upstream responds, before the tunnel opens.
 */
export function noticeLeaving(request: IncomingMessage): () => void {
  const client = upgradeOf(request)?.socket;
  if (!client) return () => undefined;
  let timer: NodeJS.Timeout | undefined;
  // By default, Node does not read from an upgraded connection. With a listener for `readable`, Node reads until data
  // arrives or the connection ends.
  const onReadable = () => undefined;
  const onEnd = () => {
    timer = setTimeout(() => client.destroy(), closingTime);
  };
  const stop = () => {
    clearTimeout(timer);
    client.off('readable', onReadable).off('end', onEnd).off('close', stop);
  };
  client.on('readable', onReadable).once('close', stop);
  onceEnded(client, onEnd);
  return stop;
}

function headOf(status: number, headers: ResponseHeaders, response: HttpResponse): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, 'Connection: Upgrade', 'Upgrade: websocket'];
  lines.push(`X-Request-Id: ${response.locals.requestId}`);
  for (const [name, value] of Object.entries(headers)) for (const one of [value].flat()) lines.push(`${name}: ${one}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
