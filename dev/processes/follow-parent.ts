// Ends a child process when its parent has ended, even by SIGKILL. Each child loads this file before its main. Standard
// input is a pipe from the parent, and ends with the parent, because the system then closes the parent's end.
import { isMainThread } from 'node:worker_threads';

// Worker threads load this file too, but their standard input ends immediately.
if (isMainThread) {
  process.stdin.on('end', () => {
    process.kill(process.pid, 'SIGTERM');
    // Two seconds are enough: all requests came through the parent.
    setTimeout(() => process.exit(1), 2_000).unref();
  });
  process.stdin.resume();
  // The open pipe must not keep the child alive.
  if ('unref' in process.stdin) process.stdin.unref();
}
