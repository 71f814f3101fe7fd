// Loaded into a process with `--import`, before its main, for tests that kill the process. Writes Node's compile cache
// shortly after the process starts to listen, because Node itself writes the cache only at a normal exit.
import { Server } from 'node:http';
import { flushCompileCache } from 'node:module';
import { isMainThread } from 'node:worker_threads';

type Listen = (...values: unknown[]) => unknown;

// Worker threads load this file too, but only the main thread listens.
if (isMainThread) {
  const listen = Server.prototype.listen as Listen;
  Server.prototype.listen = function (this: Server, ...values: unknown[]) {
    setTimeout(flushCompileCache, 200).unref();
    return listen.apply(this, values);
  } as typeof Server.prototype.listen;
}
