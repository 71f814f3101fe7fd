// Starts the servers of tests on free ports of 127.0.0.1, and closes them.
import type { AddressInfo, Server } from 'node:net';
import { listenOnce } from '../../dev/ports.ts';

/** Listens on a free port of 127.0.0.1, and returns the port. */
export async function listenOnLoopback(server: Server): Promise<number> {
  await listenOnce(server, 0);
  return (server.address() as AddressInfo).port;
}

/**
 * Closes the server, if it is not closed already. Ends the connections of an HTTP server, and waits for those of any
 * other server.
 */
export async function closeServer(server: Server & { closeAllConnections?(): void }): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections?.();
  await closed;
}
