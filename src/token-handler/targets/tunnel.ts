// Joins an upgraded connection of a client with the one to the upstream. It understands nothing of what passes; when either
// side ends, so does the other.
import type { Duplex } from 'node:stream';
import type { Request, Response } from 'express';
import { STATUS_CODES } from '../../service/node-http.ts';
import { upgradeOf } from '../../service/upgrades.ts';
import type { AnswerHeaders } from './response-headers.ts';

export interface Upgraded {
  status: number;
  headers: AnswerHeaders;
  upstream: Duplex;
}

/** The response is closed, as far as its log line is concerned, when the tunnel is. */
export function openTunnel(request: Request, response: Response, { status, headers, upstream }: Upgraded): void {
  const upgrade = upgradeOf(request);
  if (!upgrade) {
    upstream.destroy();
    response.destroy();
    return;
  }
  const { socket: client, head } = upgrade;
  response.statusCode = status;
  client.write(headOf(status, headers, response), 'latin1');
  if (head.length > 0) upstream.write(head);
  // Each side's errors show as its end.
  client.on('error', () => undefined);
  upstream.on('error', () => undefined);
  client.once('close', () => upstream.destroy());
  upstream.once('close', () => client.destroy());
  client.pipe(upstream).pipe(client);
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
