// An upstream that responds with exactly the bytes that a test sets, even if HTTP forbids them. It parses requests just
// enough to count them.
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { closeServer, listenOnLoopback } from './loopback-server.ts';

export interface RawUpstream {
  url: string;
  /** The heads of the requests, in the order of arrival. */
  heads: string[];
  /** The response to each request, in pieces. With `close`, the connection is closed afterwards. */
  answer: { pieces: (string | Buffer)[]; close?: boolean };
  /** True if a connection was closed before its response was written. */
  isCut: boolean;
  forget(): void;
  close(): Promise<void>;
}

const plain = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

export async function startRawUpstream(): Promise<RawUpstream> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        upstream.heads.push(head);
        text = text.slice(end + 4);
        const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
        text = text.slice(length);
        void write(socket);
      }
    });
  });
  async function write(socket: Socket): Promise<void> {
    const { pieces, close } = upstream.answer;
    for (const piece of pieces) {
      upstream.isCut ||= socket.destroyed;
      if (socket.destroyed) return;
      socket.write(piece, 'latin1');
      if (pieces.length > 1) await delay(5);
    }
    if (close) socket.end();
  }
  const upstream: RawUpstream = {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}`,
    heads: [],
    answer: { pieces: [plain] },
    isCut: false,
    forget() {
      upstream.heads = [];
      upstream.isCut = false;
      upstream.answer = { pieces: [plain] };
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await closeServer(server);
    },
  };
  return upstream;
}
