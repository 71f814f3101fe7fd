// Loaded into a process with `--import`, before its main, for tests that kill the process. Node writes its compile
// cache only at a normal exit; this file writes it shortly after the process starts to listen.
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
