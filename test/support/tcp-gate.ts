// A TCP proxy that simulates outages. When shut, it closes open connections and refuses new ones, like a stopped
// server. When frozen, it accepts connections but forwards nothing. When stranded, it lets open connections hang, as
// after a firewall has lost its state, but new connections work.
import { connect, createServer, type Socket } from 'node:net';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';
import { resetSocket } from '../../src/service/http/reset-socket.ts';

export interface TcpGate {
  port: number;
  shut(): Promise<void>;
  freeze(): void;
  strand(): void;
  /**
   * Forwards everything again. With `port`, new connections go to that port, for a server that was restarted elsewhere.
   */
  open(port?: number): Promise<void>;
  close(): Promise<void>;
}

export async function startTcpGate(target: number): Promise<TcpGate> {
  let to = target;
  let frozen = false;
  const sockets = new Set<Socket>();
  const server = createServer((incoming) => {
    const outgoing = connect({ port: to, host: '127.0.0.1' });
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.once('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
      if (frozen) socket.pause();
    }
  });
  const port = await listenOnLowPort(server);
  const shut = async () => {
    const closed = server.listening && new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) resetSocket(socket);
    await closed;
  };
  return {
    port,
    shut,
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    strand() {
      for (const socket of sockets) socket.pause();
    },
    async open(moved) {
      to = moved ?? to;
      frozen = false;
      for (const socket of sockets) socket.resume();
      if (!server.listening) await listenAt(server, port);
    },
    close: shut,
  };
}
