// The frame of every main.ts: reads the configuration, starts, and says in one line why a process could not.
import pino from 'pino';
import { ConfigError } from './config.ts';
import { createLogger } from './log.ts';

/**
 * Runs `start`. A ConfigError is printed whole and exits 1 before anything listens; any other failure to start, and
 * any later one that nothing catches, is one log line and exit 1.
 */
export async function runMain(name: string, start: () => Promise<void>): Promise<void> {
  // Node would print such an error with all its properties; those of a database error hold values.
  process.on('uncaughtException', (error) => exitWith(name, error, 'a failure that nothing expected'));
  try {
    await start();
  } catch (error) {
    if (!(error instanceof ConfigError)) return exitWith(name, error, 'cannot start');
    process.stderr.write(`${name}: ${error.message}\n`);
    process.exit(1);
  }
}

function exitWith(name: string, error: unknown, message: string): void {
  createLogger({ name, level: 'info', destination: pino.destination({ sync: true }) }).fatal({ err: error }, message);
  process.exit(1);
}
