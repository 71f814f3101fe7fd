// Ends a child process when its parent has ended, even if the parent was killed with SIGKILL. Each child loads this
// file before its main. The child's standard input is a pipe from the parent. When the parent ends, the system closes
// the pipe, and the input ends.
import { isMainThread } from 'node:worker_threads';

// Worker threads load this file too, but their standard input ends immediately, although the parent still runs.
if (isMainThread) {
  process.stdin.on('end', () => {
    process.kill(process.pid, 'SIGTERM');
    // Two seconds are enough: all open requests came through the parent, so nobody waits for their responses any more.
    setTimeout(() => process.exit(1), 2_000).unref();
  });
  process.stdin.resume();
  // The open pipe must not keep the child alive.
  if ('unref' in process.stdin) process.stdin.unref();
}
