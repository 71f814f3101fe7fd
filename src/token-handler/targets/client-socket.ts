// What happens to the client's connection of a proxied request: it may stay silent while a stream lasts, or is cut.
import type { Request, Response } from 'express';

/** A stream may be silent for long; that its client is gone shows at TCP's own probes. */
export function keepOpen({ socket }: Request, response: Response): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 60_000);
  response.locals.began = performance.now();
}

/** Cuts a response that has begun. With a reset, so that the kernel drops what it has not sent yet. */
export function cut(response: Response): void {
  response.socket?.resetAndDestroy();
  response.destroy();
}

/** For errors of a response or a tunnel that also show as its close. */
export const ignore = (): void => undefined;
