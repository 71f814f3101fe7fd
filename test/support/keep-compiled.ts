// Loaded into a process by `--import`, before its main, for tests that kill it: Node writes its compile cache as a process
// ends well, so one that has listened for a moment writes it here. It changes nothing else.
import { Server } from 'node:http';
import { flushCompileCache } from 'node:module';
import { isMainThread } from 'node:worker_threads';

type Listen = (...values: unknown[]) => unknown;

// Worker threads load this too.
if (isMainThread) {
  const listen = Server.prototype.listen as Listen;
  Server.prototype.listen = function (this: Server, ...values: unknown[]) {
    setTimeout(flushCompileCache, 200).unref();
    return listen.apply(this, values);
  } as typeof Server.prototype.listen;
}
