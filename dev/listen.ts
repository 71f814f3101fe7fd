// Opens an HTTP server on a loopback port. Closing the server ends all connections, including idle and upgraded ones.
import { randomInt } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';

export interface Listening {
  server: Server;
  port: number;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1. Port 0 means any free port. Rejects with `EADDRINUSE` if the port is taken. */
export async function listen(handle: RequestListener, port = 0): Promise<Listening> {
  const server = createServer(handle);
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((done, fail) => server.once('error', fail).listen(port, '127.0.0.1', done));
  const address = server.address();
  if (!address || typeof address === 'string') throw new Error('The server has no port.');
  return {
    server,
    port: address.port,
    close: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      // The server does not close upgraded connections.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/**
 * Returns a port that is free now, for a program that needs a port number. The port is below the range that systems use
 * for outgoing connections, so that no such connection takes it before the program starts.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    try {
      const { port, close } = await listen(() => undefined, randomInt(10_000, 32_000));
      await close();
      return port;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    }
  }
}
