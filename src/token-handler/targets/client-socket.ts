// Changes the client's connection of a proxied request: keeps an idle connection open during a stream, or resets it.
import type { IncomingMessage } from 'node:http';
import type { HttpResponse } from '../../service/http/request-context.ts';
import { resetSocket } from '../../service/http/reset-socket.ts';

/** Removes the idle timeout, because streams may be idle for long. TCP keep-alive detects a client that is gone. */
export function keepOpen({ socket }: IncomingMessage, response: HttpResponse): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 60_000);
  response.locals.began = performance.now();
}

/** Aborts a response that has begun. Resets the connection, so that the kernel drops unsent data. */
export function cut(response: HttpResponse): void {
  const { socket } = response;
  if (socket) resetSocket(socket);
  // If the reset has to wait, destroying the response now would close the connection without a reset.
  if (!socket || socket.destroyed) response.destroy();
}

/** Ignores errors of a response or a tunnel. An error also closes the response or tunnel, which is handled. */
export const ignore = (): void => undefined;
