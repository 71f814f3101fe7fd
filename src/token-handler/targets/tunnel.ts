// Joins the upgraded connection of a client with the one to the upstream. It does not parse the data; when either side ends,
// it ends the other.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { STATUS_CODES } from '../../service/http/node-http.ts';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { upgradeOf } from '../../service/http/upgrades.ts';
import { type ResponseHeaders, responseHeaders } from './response-headers.ts';

export interface Upgraded {
  status: number;
  /** Of the upstream. */
  headers: IncomingHttpHeaders;
  upstream: Duplex;
}

/**
 * The request is logged when the tunnel closes. Throws an Error, which becomes a 502, for a switch to a protocol other than
 * the WebSocket protocol.
 */
export function openTunnel(
  request: IncomingMessage,
  response: HttpResponse,
  { status, headers, upstream }: Upgraded,
): void {
  // An error of a side also closes it. undici has removed its listeners, and destroys the socket with an error thrown here.
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

/** Milliseconds for the closing handshake of the other side (RFC 6455 section 7.1.1). */
const closingTime = 2_000;

/** Closes a tunnel that one side has ended. Otherwise a socket whose peer never ends its side would stay open. */
function closeAfterEnd(ended: Duplex, other: Duplex): void {
  ended.once('end', () => {
    const timer = setTimeout(() => other.destroy(), closingTime);
    other.once('close', () => clearTimeout(timer));
  });
}

/**
 * Notices when the client closes the connection before the upstream has switched: Node does not read from an upgraded
 * connection. Data that the client sends early stays in the socket. Call the result before the tunnel opens.
 */
export function noticeLeaving(request: IncomingMessage): () => void {
  const client = upgradeOf(request)?.socket;
  // Readable without data means that the client has ended.
  const onReadable = () => {
    if (client?.readableLength === 0) client.read();
  };
  const onEnd = () => client?.destroy();
  client?.on('readable', onReadable).once('end', onEnd);
  return () => client?.off('readable', onReadable).off('end', onEnd);
}

function headOf(status: number, headers: ResponseHeaders, response: HttpResponse): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, 'Connection: Upgrade', 'Upgrade: websocket'];
  lines.push(`X-Request-Id: ${response.locals.requestId}`);
  for (const [name, value] of Object.entries(headers)) for (const one of [value].flat()) lines.push(`${name}: ${one}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
