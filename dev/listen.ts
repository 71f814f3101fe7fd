// Opens a loopback port for something that answers HTTP, and closes it without waiting for idle connections.
import { randomInt } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';

export interface Listening {
  server: Server;
  port: number;
  close(): Promise<void>;
}

/** On 127.0.0.1 only. Port 0 is any free one. Rejects with `EADDRINUSE` when it is taken. */
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
      // The server itself knows upgraded ones no more.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/**
 * A port that nothing uses at the moment, for a program that has to be told one. It is below those that systems give to
 * outgoing connections, so that none of these takes it before the program does.
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
