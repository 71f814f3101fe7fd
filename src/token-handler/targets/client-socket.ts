// Handles the client's connection of a proxied request: lets it be silent while a stream lasts, or cuts it.
import type { IncomingMessage } from 'node:http';
import type { HttpResponse } from '../../service/http/request-context.ts';

/** A stream may be silent for long; TCP keep-alive probes notice when its client is gone. */
export function keepOpen({ socket }: IncomingMessage, response: HttpResponse): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 60_000);
  response.locals.began = performance.now();
}

/** Cuts a response that has begun. The reset makes the kernel drop unsent data. */
export function cut(response: HttpResponse): void {
  response.socket?.resetAndDestroy();
  response.destroy();
}

/** A listener for errors after which a response or a tunnel also closes: the close is handled. */
export const ignore = (): void => undefined;
