// Generates random proxied requests that the client or the upstream aborts at some point. The same seed gives the same
// requests, but how concurrent requests overlap depends on the machine.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { closeServer, listenOnLoopback } from './loopback-server.ts';
import type { Person } from './targets.ts';
import { acceptWebSocket } from './upstream.ts';

export type Random = () => number;

/** Returns a generator of random numbers (Mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const oneOf = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

const block = Buffer.alloc(300_000, 'x');

/** How the upstream treats a request, keyed by the mode in the request path (`/mode-<key>`). */
const upstreamModes: Record<string, (request: IncomingMessage, response: ServerResponse) => unknown> = {
  answers: (_request, response) => response.end('ok'),
  waits: (_request, response) => setTimeout(() => response.end('late'), 30),
  hangs: (request) => setTimeout(() => request.socket.destroy(), 150),
  resets: (request) => request.socket.resetAndDestroy(),
  ignores: (request) => {
    request.pause();
    setTimeout(() => request.socket.resetAndDestroy(), 80);
  },
  hurries: (_request, response) => response.writeHead(413, { 'Content-Length': 3 }).end('big'),
  downloads: (_request, response) => response.writeHead(200, { 'Content-Length': block.length }).end(block),
  breaks: (request, response) => {
    response.writeHead(200, { 'Content-Length': block.length }).write(block.subarray(0, 100_000));
    setTimeout(() => request.socket.resetAndDestroy(), 20);
  },
  trickles: (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const timer = setInterval(() => response.write('data: x\n\n'), 10);
    response.once('close', () => clearInterval(timer));
    setTimeout(() => response.destroy(), 120);
  },
  nonsense: (request) => request.socket.end('nonsense\r\n\r\n'),
};

export function answerByMode(request: IncomingMessage, response: ServerResponse): void {
  const mode = /\/mode-(\w+)/.exec(request.url ?? '')?.[1] ?? 'answers';
  response.on('error', () => undefined);
  upstreamModes[mode]?.(request, response);
}

export function upgradeByMode(request: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => undefined);
  if (request.url?.includes('mode-resets')) return void (socket as Socket).resetAndDestroy();
  if (request.url?.includes('mode-nonsense')) return void socket.end('nonsense\r\n\r\n');
  acceptWebSocket(request, socket);
  socket.write(block.subarray(0, 50_000));
  setTimeout(() => (socket as Socket).resetAndDestroy(), 60);
}

/**
 * Starts a TCP server that never answers a TLS handshake. After a call of `hold`, it keeps new connections open until
 * `drop` closes them. At all other times, it closes new connections immediately.
 */
export async function startSilentServer() {
  const sockets = new Set<Socket>();
  let isDropping = true;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    if (isDropping) socket.destroy();
  });
  return {
    port: await listenOnLoopback(server),
    hold() {
      isDropping = false;
    },
    drop() {
      isDropping = true;
      for (const socket of sockets) socket.destroy();
    },
    close: () => closeServer(server),
  };
}

const shapes = ['get', 'get', 'whole', 'upload', 'upload', 'chunked', 'upgrade', 'events'] as const;

function headOf(random: Random, { cookie, csrf }: Person): { head: string; body: Buffer } {
  const target = oneOf(random, ['api', 'api', 'api', 'api', 'dead', 'other']);
  const shape = oneOf(random, shapes);
  const mode = oneOf(random, Object.keys(upstreamModes));
  const method = shape === 'whole' || shape === 'upload' || shape === 'chunked' ? 'POST' : 'GET';
  const lines = [`${method} /token-handler/v1/targets/${target}/mode-${mode} HTTP/1.1`, 'Host: a'];
  lines.push(`Cookie: ${cookie}`, `X-XSRF-TOKEN: ${csrf}`);
  if (shape === 'events') lines.push('Accept: text/event-stream');
  if (shape === 'upgrade') lines.push('Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: eA==');
  if (shape === 'whole') lines.push('Content-Length: 5');
  if (shape === 'upload') lines.push(`Content-Length: ${2 * block.length}`);
  if (shape === 'chunked') lines.push('Transfer-Encoding: chunked');
  const chunked = Buffer.concat([Buffer.from(`${block.length.toString(16)}\r\n`), block]);
  const bodies = { whole: Buffer.from('hello'), upload: block, chunked, upgrade: block, get: '', events: '' };
  return { head: `${lines.join('\r\n')}\r\n\r\n`, body: Buffer.from(bodies[shape]) };
}

/** Sends one random request, perhaps only in part, and then ends, destroys or resets the connection, or waits. */
export async function cutRequest(random: Random, port: number, person: Person): Promise<void> {
  const { head, body } = headOf(random, person);
  const [part, pause, leave] = [random(), random() * 60, oneOf(random, ['end', 'destroy', 'reset', 'stay'])];
  const isDeaf = random() < 0.3;
  const socket = connect({ port, host: '127.0.0.1' });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  if (!isDeaf) socket.resume();
  socket.write(part < 0.1 ? head.slice(0, head.length * part * 10) : head);
  if (part > 0.2) socket.write(body.subarray(0, Math.ceil(body.length * Math.min(part * 2 - 0.4, 1))));
  if (random() < 0.9) await delay(pause);
  if (leave === 'end') socket.end();
  else if (leave === 'destroy') socket.destroy();
  else if (leave === 'reset') socket.resetAndDestroy();
  await Promise.race([closed, delay(100)]);
  socket.destroy();
}
