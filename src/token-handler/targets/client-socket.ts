// Controls the connection between the client and the proxy: keeps it open while a stream is idle, or resets it.
import type { IncomingMessage } from 'node:http';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { resetSocket } from '../../service/http/reset-socket.ts';

/**
 * Removes the idle timeout of the client's connection, because a stream may be idle for a long time. TCP keep-alive
 * detects a client that has gone.
 */
export function keepOpen({ socket }: IncomingMessage, response: HttpResponse): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 60_000);
  response.locals.began = performance.now();
}

/** Milliseconds that the client may take to read the rest of a response that `endSoon` has ended. */
const longestEnd = 2_000;

/**
 * Ends a response normally. If the client does not read the rest in time, aborts the response, because the other limits
 * of the request no longer apply.
 */
export function endSoon(response: HttpResponse): void {
  response.end();
  const timer = setTimeout(() => cut(response), longestEnd).unref();
  response.once('close', () => clearTimeout(timer));
}

/** Aborts a response that has begun. Resets the connection, so that the kernel drops unsent data. */
export function cut(response: HttpResponse): void {
  const { socket } = response;
  if (socket) resetSocket(socket);
  // `resetSocket` may reset the connection only later. If the response were destroyed now, the connection would be
  // closed without a reset.
  if (!socket || socket.destroyed) response.destroy();
}

/**
 * Ignores an error of a response or a tunnel. The error also closes the response or tunnel, and other listeners handle
 * its event `close`.
 */
export const ignore = (): void => undefined;
