// Runs a process and logs why it could not start. After an uncaught exception the process finishes its running requests
// and exits with 1.
import pino from 'pino';
import { ConfigError } from './config.ts';
import { endOnSignals } from './end-on-signals.ts';
import { describeError } from './error-description.ts';
import { createLogger, type Logger } from './log.ts';
import { StartupError } from './startup-check.ts';

export interface Stoppable {
  /** Drains and stops the service. Repeated calls wait for the first. */
  close(): Promise<void>;
  /** Maximum time in milliseconds until `close` settles. */
  longestStop: number;
}

/**
 * Runs `start`. If `start` returns a service, an uncaught exception drains the service. If `start` returns no service,
 * or has not returned yet, an uncaught exception ends the process with status 1. All problems of a configuration are
 * logged in one line; on a terminal they are printed as text. SIGTERM and SIGINT end the process until `start` calls
 * `takeSignals`. It does so after it has registered its own handlers, because a signal without a handler would be lost.
 */
export async function runMain(
  name: string,
  start: (takeSignals: () => void) => Promise<Stoppable> | Promise<void>,
): Promise<void> {
  const log = createLogger({ name, level: 'info', destination: pino.destination({ sync: true }) });
  let running: Stoppable | undefined;
  let uncaught = 0;
  // Unhandled rejections arrive here too. By default, Node prints an error with all its properties, which may contain
  // values of the database. The logger writes only name, message, code and stack.
  process.on('uncaughtException', (error) => {
    process.exitCode = 1;
    uncaught += 1;
    if (uncaught <= mostLogged) tryLog(log, { err: error }, 'uncaught exception');
    if (!running) process.exit();
    if (uncaught === 1) drain(running);
  });
  const takeSignals = endOnSignals();
  try {
    running = (await start(takeSignals)) || undefined;
  } catch (error) {
    reportFailedStart(log, name, error);
    process.exit(1);
  }
}

function reportFailedStart(log: Logger, name: string, error: unknown): void {
  if (error instanceof ConfigError && process.stderr.isTTY) process.stderr.write(`${name}: ${error.message}\n`);
  else if (error instanceof ConfigError)
    tryLog(log, { problems: error.problems.map((one) => `${one.name}: ${one.problem}`) }, 'invalid configuration');
  else tryLog(log, startFailure(error), 'cannot start');
}

/**
 * Returns the log fields of a failed start. Omits the stack of a failure that the operating system reports, such as a
 * port in use, because the stack would only hide the reason.
 */
function startFailure(error: unknown): object {
  if (error instanceof StartupError) return { reason: error.message };
  if (!(error instanceof Error && 'syscall' in error)) return { err: error };
  return { reason: describeError(error).message };
}

/**
 * Maximum number of uncaught exceptions that one process logs. Faulty code may throw repeatedly while the process
 * drains.
 */
const mostLogged = 10;

function drain(running: Stoppable): void {
  // The process exits even if the exception has broken the drain.
  setTimeout(() => process.exit(), running.longestStop);
  running.close().then(
    () => process.exit(),
    () => process.exit(),
  );
}

/** Logs a fatal error. Ignores a failure of the log, because it must not prevent the end of the process. */
function tryLog(log: Logger, facts: object, message: string): void {
  try {
    log.fatal(facts, message);
  } catch {
    // The failure cannot be logged anywhere.
  }
}
