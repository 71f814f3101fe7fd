// The frame of every main.ts: reads the configuration, starts the process, and logs why it could not. After an uncaught
// exception the process finishes its running requests, and exits 1.
import pino from 'pino';
import { ConfigError } from './config.ts';
import { createLogger, type Logger } from './log.ts';

/** A started service, as far as stopping it goes. */
export interface Stoppable {
  /** Drains and stops. Repeated calls wait for the first. */
  close(): Promise<void>;
  /** Milliseconds after which `close` has settled. */
  longestStop: number;
}

/**
 * Runs `start`, which returns the service to drain after an uncaught exception; without one, and before, an exception
 * exits 1 at once. A ConfigError is printed whole and exits 1 before anything listens.
 */
export async function runMain(name: string, start: () => Promise<Stoppable> | Promise<void>): Promise<void> {
  const log = createLogger({ name, level: 'info', destination: pino.destination({ sync: true }) });
  let running: Stoppable | undefined;
  let uncaught = 0;
  // An unhandled rejection arrives here too. Node would print the error with all its properties; those of a database
  // error hold values. The logger takes name, message, code and stack.
  process.on('uncaughtException', (error) => {
    process.exitCode = 1;
    uncaught += 1;
    if (uncaught <= mostLogged) tryLog(log, error, 'uncaught exception');
    if (!running) process.exit();
    if (uncaught === 1) drain(running);
  });
  try {
    running = (await start()) || undefined;
  } catch (error) {
    if (error instanceof ConfigError) process.stderr.write(`${name}: ${error.message}\n`);
    else tryLog(log, error, 'cannot start');
    process.exit(1);
  }
}

/** Uncaught exceptions of one process that are logged: what is broken may throw for as long as it drains. */
const mostLogged = 10;

function drain(running: Stoppable): void {
  // What was thrown may have broken the drain as well.
  setTimeout(() => process.exit(), running.longestStop);
  running.close().then(
    () => process.exit(),
    () => process.exit(),
  );
}

/** A log that cannot be written must not keep the process from ending. */
function tryLog(log: Logger, error: unknown, message: string): void {
  try {
    log.fatal({ err: error }, message);
  } catch {
    // Nowhere is left to say it.
  }
}
