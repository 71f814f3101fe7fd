// Loaded into each child process before its main: ends the child when its parent is gone, even if the parent was killed
// and could say nothing. The parent holds the other end of standard input, and the system closes it.
import { isMainThread } from 'node:worker_threads';

// Worker threads load this too, and their own standard input ends at once.
if (isMainThread) {
  process.stdin.on('end', () => {
    process.kill(process.pid, 'SIGTERM');
    // All requests came through the parent: there is little left to finish.
    setTimeout(() => process.exit(1), 2_000).unref();
  });
  process.stdin.resume();
  // Waiting for the parent's end must not itself keep the child alive.
  if ('unref' in process.stdin) process.stdin.unref();
}
