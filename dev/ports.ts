// Ports for servers that a test or `npm start` closes and reopens, and for programs that need a port number. The ports
// are below the range that systems use for outgoing connections. Therefore no outgoing connection takes the port of a
// server that is closed for a moment.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOfError } from '../src/service/error-code.ts';

/** A server of `node:net`, `node:http` or `node:https`. */
export interface PortServer {
  listen(port: number, host: string, listening: () => void): unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
}

/** Milliseconds to wait for a port, because a process that is ending may still use it. */
const patience = 10_000;

/** Listens on 127.0.0.1. Rejects with `EADDRINUSE` if the port is taken. */
export async function listenOnce(server: PortServer, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, '127.0.0.1', resolve);
  await promise.finally(() => server.off('error', reject));
}

/**
 * The last ports that {@link findFreePort} returned. The programs that need them may not listen yet, so they look free.
 * With random ports alone, one of two hundred worlds of 16 programs would give two of them the same port.
 */
const given: number[] = [];
const remembered = 1_000;

/** Listens on a free port of 127.0.0.1, and returns the port. */
export async function listenOnLowPort(server: PortServer): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    if (given.includes(port)) continue;
    try {
      await listenOnce(server, port);
      return port;
    } catch (error) {
      if (!isTaken(error)) throw error;
    }
  }
}

/** Returns a port that is free now, for a program that needs a port number. Does not return it again soon. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  const port = await listenOnLowPort(server);
  given.push(port);
  if (given.length > remembered) given.shift();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Listens on this port of 127.0.0.1 as soon as it is free. Rejects with `EADDRINUSE` after 10 s. */
export async function listenAt(server: PortServer, port: number): Promise<void> {
  for (const deadline = performance.now() + patience; ; await sleep(50)) {
    try {
      return await listenOnce(server, port);
    } catch (error) {
      if (!isTaken(error) || performance.now() > deadline) throw error;
    }
  }
}

function isTaken(error: unknown): boolean {
  return codeOfError(error) === 'EADDRINUSE';
}
