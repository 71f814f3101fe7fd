// Joins an upgraded connection of a client with the one to the upstream. It understands nothing of what passes; when either
// side ends, so does the other.
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Request, Response } from 'express';
import { STATUS_CODES } from '../../service/http/node-http.ts';
import { upgradeOf } from '../../service/http/upgrades.ts';
import { type AnswerHeaders, answerHeaders } from './response-headers.ts';

export interface Upgraded {
  status: number;
  /** As they came. */
  headers: IncomingHttpHeaders;
  upstream: Duplex;
}

/**
 * The response is closed, as far as its log line is concerned, when the tunnel is. Throws an Error, which is a 502, for a
 * switch to another protocol than the WebSocket protocol.
 */
export function openTunnel(request: Request, response: Response, { status, headers, upstream }: Upgraded): void {
  // Each side's errors show as its end. undici has removed its listeners, and destroys the socket with what is thrown here.
  upstream.on('error', () => undefined);
  const answer = answerHeaders(headers, status, request);
  const upgrade = upgradeOf(request);
  if (!upgrade) {
    upstream.destroy();
    response.destroy();
    return;
  }
  const { socket: client, head } = upgrade;
  response.statusCode = status;
  client.write(headOf(status, answer, response), 'latin1');
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

/** Closes a tunnel that one side has ended. A socket whose peer never ends its own side would stay open for ever. */
function closeAfterEnd(ended: Duplex, other: Duplex): void {
  ended.once('end', () => {
    const timer = setTimeout(() => other.destroy(), closingTime);
    other.once('close', () => clearTimeout(timer));
  });
}

/**
 * Notices that the client leaves before the upstream has switched: nothing reads from an upgraded connection by itself. What
 * the client sends early stays in the socket. Call the result before the tunnel opens.
 */
export function noticeLeaving(request: Request): () => void {
  const client = upgradeOf(request)?.socket;
  // With nothing to read, this is the end of what the client sends.
  const onReadable = () => {
    if (client?.readableLength === 0) client.read();
  };
  const onEnd = () => client?.destroy();
  client?.on('readable', onReadable).once('end', onEnd);
  return () => client?.off('readable', onReadable).off('end', onEnd);
}

function headOf(status: number, headers: AnswerHeaders, response: Response): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, 'Connection: Upgrade', 'Upgrade: websocket'];
  lines.push(`X-Request-Id: ${response.locals.requestId}`);
  for (const [name, value] of Object.entries(headers)) for (const one of [value].flat()) lines.push(`${name}: ${one}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
