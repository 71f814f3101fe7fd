// Opens an HTTP server on a loopback port. Closing the server ends all connections, including idle and upgraded ones.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { listenOnce } from './ports.ts';

export interface Listening {
  server: Server;
  port: number;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1. Port 0 means any free port. Rejects with `EADDRINUSE` if the port is taken. */
export async function listen(handle: RequestListener, port = 0): Promise<Listening> {
  const server = createServer(handle);
  // By default, Node closes an idle connection after 5 s, possibly at the moment when the client sends its next
  // request.
  server.keepAliveTimeout = 65_000;
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await listenOnce(server, port);
  const address = server.address();
  if (!address || typeof address === 'string') throw new Error('The server has no port.');
  return {
    server,
    port: address.port,
    close: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      // `server.close` does not end upgraded connections.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
