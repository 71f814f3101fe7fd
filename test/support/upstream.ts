// An upstream of a target: a real HTTP server that records each request byte for byte, responds as a test sets it, and
// echoes WebSocket messages. It accepts every request.
import { hash } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createHttpServer } from './http-server.ts';

export interface SeenRequest {
  method: string;
  /** The request target, as in the request line. */
  target: string;
  headers: IncomingMessage['headers'];
  /** Names and values of the headers, alternating, in the order received. */
  rawHeaders: string[];
  /** The request body. Of a body of more than 1 MiB, only the beginning is kept. */
  body: string;
  bodyBytes: number;
  /** True if the whole body was received. */
  isComplete: boolean;
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export interface Upstream {
  url: string;
  port: number;
  /** Requests in the order of arrival. The body is complete only once it has been read. */
  seen: SeenRequest[];
  /** How to respond; by default `answerWhenRead`. */
  answer: Answer;
  /** Handles an upgraded connection. By default, the upstream echoes its messages. */
  onUpgrade: ((request: IncomingMessage, socket: Duplex) => void) | undefined;
  /** Number of open connections. */
  connections(): number;
  /** Waits until `count` requests have been seen, or fails after a minute. */
  waitFor(count: number): Promise<SeenRequest[]>;
  /** Returns the latest request; throws if there is none. */
  last(): SeenRequest;
  forget(): void;
  close(): Promise<void>;
}

const keptBody = 1_048_576;

/** Responds with an empty 200 after the whole body was received. */
export const answerWhenRead: Answer = (request, response) => {
  request.once('end', () => response.end());
};

export async function startUpstream({ port = 0, host = '127.0.0.1' } = {}): Promise<Upstream> {
  const sockets = new Set<Socket>();
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const seen = record(request);
    upstream.seen.push(seen);
    readBody(request, seen);
    upstream.answer(request, response);
  };
  const server = createHttpServer(handle, { requireHostHeader: false, requestTimeout: 0 });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (request, socket) => {
    upstream.seen.push(record(request));
    if (upstream.onUpgrade) upstream.onUpgrade(request, socket);
    else echo(request, socket);
  });
  const bound = await listen(server, port, host);
  const upstream: Upstream = {
    url: `http://${host}:${bound}`,
    port: bound,
    seen: [],
    answer: answerWhenRead,
    onUpgrade: undefined,
    connections: () => sockets.size,
    async waitFor(count) {
      for (let waited = 0; upstream.seen.length < count; waited += 10) {
        if (waited > 60_000) throw new Error(`${upstream.seen.length} of ${count} requests came`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return upstream.seen;
    },
    last() {
      const seen = upstream.seen.at(-1);
      if (!seen) throw new Error('nothing was asked');
      return seen;
    },
    forget() {
      upstream.seen = [];
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return upstream;
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
  });
}

function record({ method = '', url = '', headers, rawHeaders }: IncomingMessage): SeenRequest {
  return { method, target: url, headers, rawHeaders, body: '', bodyBytes: 0, isComplete: false };
}

function readBody(request: IncomingMessage, seen: SeenRequest): void {
  request.on('data', (chunk: Buffer) => {
    seen.bodyBytes += chunk.length;
    if (seen.bodyBytes <= keptBody) seen.body += chunk.toString('latin1');
  });
  request.on('end', () => {
    seen.isComplete = true;
  });
  request.on('error', () => undefined);
}

/** Switches to the WebSocket protocol (RFC 6455 section 4.2.2). */
export function acceptWebSocket(request: IncomingMessage, socket: Duplex, headers: string[] = []): void {
  const { 'sec-websocket-protocol': protocol } = request.headers;
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${hash('sha1', key, 'base64')}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    ...headers,
  ];
  socket.on('error', () => undefined);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
}

/** Echoes texts of up to 125 bytes, and responds to a close frame. */
function echo(request: IncomingMessage, socket: Duplex): void {
  acceptWebSocket(request, socket);
  socket.on('data', (frame: Buffer) => {
    const length = (frame[1] ?? 0) & 0x7f;
    const mask = frame.subarray(2, 6);
    const payload = frame.subarray(6, 6 + length).map((byte, index) => byte ^ (mask[index % 4] ?? 0));
    socket.write(Buffer.concat([Buffer.from([frame[0] ?? 0, length]), payload]));
    if (((frame[0] ?? 0) & 0x0f) === 8) socket.end();
  });
}
