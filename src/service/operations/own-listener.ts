// Serves the calls that a process makes to itself on a separate port of the loopback interface. The port stays open
// while the process drains, because a request that is still running may need further calls. A request from any other
// caller gets no response, and its connection is closed.
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '../http/node-http.ts';
import { isOwnCall } from '../http/own-calls.ts';
import { ignoreAfterClose, readRestOfBodies } from '../http/slow-bodies.ts';
import { longestStop } from '../time-limit.ts';
import { prepareDrain } from './serve.ts';

export interface OwnListener {
  /** Serves the calls with this app, on a free port. */
  listen(app: RequestListener): Promise<void>;
  /** Returns the URL to call. Call it only after `listen`. */
  url(): string;
  /** Closes the port, and waits for calls whose caller no longer waits, for `longestStop` at most. */
  close(): Promise<void>;
}

export function createOwnListener(): OwnListener {
  let app: RequestListener | undefined;
  const serve: RequestListener = (request, response) => {
    if (app && isOwnCall(request)) app(request, response);
    else request.socket.destroy();
  };
  const server = createServer(ignoreAfterClose(serve));
  readRestOfBodies(server);
  server.keepAliveTimeout = 65_000;
  const connections = prepareDrain(server);
  return {
    async listen(given) {
      app = given;
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen(0, '127.0.0.1', resolve);
      });
    },
    url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      if (server.listening) await connections.drain(longestStop);
    },
  };
}
