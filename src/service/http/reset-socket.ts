// Resets a TCP connection in every state.
import type { Socket } from 'node:net';

/**
 * Closes the connection with a reset (RFC 9293 section 3.10.5), so that the kernel drops data that was not sent yet. If
 * Node's own `resetAndDestroy` is called during a shutdown of the connection, it fails with EINVAL and then never
 * closes the connection. So the reset waits until the shutdown has ended. The wait is short, because a shutdown begins
 * only after the kernel has taken all data.
 */
export function resetSocket(socket: Socket): void {
  const { writableEnded, writableFinished, writableLength } = socket;
  if (!writableEnded || writableFinished || writableLength > 0) socket.resetAndDestroy();
  else socket.once('finish', () => socket.resetAndDestroy());
}
