// The frame of every main.ts: reads the configuration, starts, and says in one line why a process could not.
import { ConfigError } from './config.ts';
import { createLogger, type Logger } from './log.ts';

/**
 * Runs `start`. A ConfigError is printed whole and exits 1 before anything listens; any other failure to start is one
 * log line and exit 1.
 */
export async function runMain(name: string, start: () => Promise<void>): Promise<void> {
  try {
    await start();
  } catch (error) {
    if (error instanceof ConfigError) process.stderr.write(`${name}: ${error.message}\n`);
    else logFailure(createLogger({ name, level: 'info' }), error);
    process.exitCode = 1;
    // Whatever was opened before the failure must not keep the process alive; the log is flushed first.
    setTimeout(() => process.exit(1), 100).unref();
  }
}

function logFailure(log: Logger, error: unknown): void {
  log.fatal({ err: error }, 'cannot start');
  log.flush();
}
