// The main function of an HTTP service: reads the configuration, starts the service, and stops it on a signal.
import type { z } from 'zod';
import { startTracing } from '../tracing/start-tracing.ts';
import { longestFlush, type Tracing } from '../tracing/tracing.ts';
import type { TracingSettings, tracingFields } from '../tracing/tracing-fields.ts';
import { type ProcessSettings, parseSettings } from './config.ts';
import { createLogger, type Logger } from './log.ts';
import { runMain } from './run-main.ts';
import type { RunningService } from './serve.ts';
import { warnOfVariables } from './variable-warnings.ts';

type ServiceSchema = z.ZodObject<{ LOG_LEVEL: z.ZodType<string> } & typeof tracingFields>;

export function runService<S extends ServiceSchema>(
  name: string,
  settings: ProcessSettings<S>,
  start: (options: { config: z.output<S>; log: Logger; env: NodeJS.ProcessEnv }) => Promise<RunningService>,
): Promise<void> {
  return runMain(name, async (takeSignals) => {
    const config = parseSettings(settings);
    const log = createLogger({ name, level: (config as { LOG_LEVEL: string }).LOG_LEVEL });
    warnOfVariables(settings, process.env, log);
    const tracing = await startTracing(name, config as TracingSettings, log);
    const running = await start({ config, log, env: process.env });
    const stoppable = tracing ? closingLast(running, tracing) : running;
    stopOnSignals(stoppable, log);
    takeSignals();
    return stoppable;
  });
}

/** Returns a service that closes tracing last, because even its last requests have spans. */
function closingLast(running: RunningService, tracing: Tracing): RunningService {
  const close = async () => {
    try {
      await running.close();
    } finally {
      await tracing.close();
    }
  };
  return { ...running, close, longestStop: running.longestStop + longestFlush };
}

/**
 * Drains the service on SIGTERM, SIGINT and SIGHUP, then exits with 0, or with 1 if closing failed or after an uncaught
 * exception. SIGHUP means that the terminal or the reader of the log is gone. A second SIGTERM, or a second SIGINT,
 * ends the process immediately.
 */
function stopOnSignals(running: RunningService, log: Logger): void {
  const stop = (signal: NodeJS.Signals) => {
    log.info({ signal }, 'signal received');
    running.close().then(
      () => process.exit(),
      (error: unknown) => {
        log.error({ err: error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // Registered with `on`, not `once`, because a second SIGHUP must not end the process: the reader of the log may close
  // its stream while the service is already stopping.
  process.on('SIGHUP', stop);
}
