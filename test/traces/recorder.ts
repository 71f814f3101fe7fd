// Loaded into a process with `--import`: records which modules of this repository run functions between two commands on
// a Unix socket (TRACE_SOCKET). V8 counts the calls. An import alone is not recorded, because V8 does not count the
// evaluation of modules. A function that was called before the recording and continues after an await is not recorded
// either.
import { Session } from 'node:inspector';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Coverage {
  result: { url: string; functions: { ranges: { startOffset: number; count: number }[] }[] }[];
}

const root = `${pathToFileURL(join(import.meta.dirname, '../..')).href}/`;
const session = new Session();
session.connect();

function start(): string {
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return '[]';
}

/** Returns the modules that ran since `start`, as a JSON array. The callback of `post` runs synchronously. */
function take(): string {
  let modules: string[] = [];
  session.post('Profiler.takePreciseCoverage', (_error: Error | null, coverage: object) => {
    modules = modulesOf(coverage as Coverage);
  });
  session.post('Profiler.stopPreciseCoverage');
  return JSON.stringify(modules);
}

function modulesOf({ result }: Coverage): string[] {
  return result
    .filter(({ url }) => /^(?:src|reconciler)\//.test(url.slice(root.length)) && url.startsWith(root))
    .filter(({ functions }) =>
      functions.some(({ ranges: [whole] }) => whole && whole.startOffset > 0 && whole.count > 0),
    )
    .map(({ url }) => url.slice(root.length))
    .sort();
}

const server = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.on('data', (command: Buffer) => socket.end(command.toString() === 'start' ? start() : take()));
});
// A child process inherits TRACE_SOCKET. It is not recorded, because its parent process already listens on this socket.
server.on('error', () => undefined);
server.listen(process.env.TRACE_SOCKET);
server.unref();
