// The upstream of the honest target. It returns the caller, headers and path that it received, and sends and receives
// bodies. It verifies nothing, so its responses show exactly the request that the proxy forwarded.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHttpServer } from '../../support/http-server.ts';
import { listenOnLoopback } from '../../support/loopback-server.ts';
import { acceptWebSocket } from '../../support/upstream.ts';

/** The response to `GET /base/v1/whoami` and to most other requests. */
export interface Seen {
  method: string;
  /** Path and query of the request, as they arrived. */
  target: string;
  email: string | undefined;
  /** Names and values of the request headers, alternating. */
  rawHeaders: string[];
  bodyBytes: number;
  /** Checksum of the request body. */
  checksum: number;
}

/** The base path of the target `api` in the platform's directory. */
export const basePath = '/base/v1';

export function checksumOf(chunk: Buffer, start = 0): number {
  let sum = start;
  for (const byte of chunk) sum = (sum * 31 + byte) | 0;
  return sum;
}

const pattern = 'the quick brown fox ';
/** The body of `GET /base/v1/download?bytes=n`. */
export const downloadOf = (bytes: number) => Buffer.alloc(bytes, pattern);
const piece = downloadOf(3_200 * pattern.length);

export async function startHonestUpstream(): Promise<number> {
  const server = createHttpServer(respond, { requireHostHeader: false, requestTimeout: 0 });
  server.on('upgrade', (request, socket) => acceptWebSocket(request, socket));
  server.on('clientError', (_error, socket) => socket.destroy());
  return listenOnLoopback(server);
}

function respond(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://upstream');
  response.on('error', () => undefined);
  if (pathname === `${basePath}/download`) return void download(response, Number(searchParams.get('bytes')));
  if (pathname === `${basePath}/events`) return void sendEvents(request, response);
  const seen = { bodyBytes: 0, checksum: 0 };
  request.on('error', () => undefined);
  request.on('data', (chunk: Buffer) => {
    seen.bodyBytes += chunk.length;
    seen.checksum = checksumOf(chunk, seen.checksum);
  });
  request.once('end', () => {
    const { method = '', url: target = '', rawHeaders } = request;
    const body: Seen = { method, target, email: emailOf(request), rawHeaders, ...seen };
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  });
}

function download(response: ServerResponse, bytes: number): void {
  response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': bytes });
  let left = bytes;
  // Hundreds of downloads may wait for slow readers, so each buffers only one piece.
  const send = () => {
    while (left > 0 && !response.destroyed) {
      const part = piece.subarray(0, Math.min(left, piece.length));
      left -= part.length;
      if (!response.write(part)) return void response.once('drain', send);
    }
    response.end();
  };
  send();
}

/** Sends an event with the caller's email address immediately, and then one per second. */
function sendEvents(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  let count = 0;
  const send = () => {
    count += 1;
    response.write(`data: ${JSON.stringify({ email: emailOf(request), count })}\n\n`);
  };
  send();
  const timer = setInterval(send, 1_000);
  response.once('close', () => clearInterval(timer));
}

function emailOf({ headers }: IncomingMessage): string | undefined {
  const [, payload = ''] = headers.authorization?.split('.') ?? [];
  try {
    const claims: { email?: string } = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return claims.email;
  } catch {
    return undefined;
  }
}
