// Runs a command of the image on the database of one service: parses the command's arguments, opens the database, and
// closes it afterwards.
import type pg from 'pg';
import { readArguments } from '../service/operations/command-line.ts';
import { parseConfig } from '../service/operations/config.ts';
import { createLogger, type Logger } from '../service/operations/log.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { runMain } from '../service/operations/run-main.ts';
import { createPool } from '../service/postgres/postgres.ts';
import { configSchema } from './migrate/migrate.ts';

type Command = { action: string };

export interface DatabaseCommand<C extends Command> {
  name: string;
  help: string;
  /** Throws UsageError if the arguments are invalid. If the returned action is `help`, the text `help` is printed. */
  parse(args: string[]): C;
  /** Actions that print data for other programs. Their log lines go to standard error. */
  dataActions: readonly C['action'][];
  /** Runs the parsed command, and returns the exit code. */
  run(command: Exclude<C, { action: 'help' }>, surroundings: Surroundings): Promise<number>;
}

export interface Surroundings {
  /** A pool of the database. It connects when the command first uses it. */
  pool: pg.Pool;
  /** The URL of the database. */
  url: string;
  log: Logger;
  print(line: string): void;
}

/** Exits with 2 if the arguments are invalid, and with 1 if a setting is invalid or the database fails (`runMain`). */
export async function runDatabaseCommand<C extends Command>({
  name,
  help,
  parse,
  dataActions,
  run,
}: DatabaseCommand<C>): Promise<void> {
  await runMain(name, async () => {
    const command = readArguments(parse);
    if (command.action === 'help') return print(help);
    const config = parseConfig(configSchema);
    const destination = dataActions.includes(command.action) ? process.stderr : undefined;
    const log = createLogger({ name, level: config.LOG_LEVEL, destination });
    const url = config.DATABASE_URL;
    const pool = createPool({ url, size: 1, log, metrics: createMetrics() });
    try {
      process.exitCode = await run(command as Exclude<C, { action: 'help' }>, { pool, url, log, print });
    } finally {
      await pool.end();
    }
  });
}

const print = (line: string) => void process.stdout.write(`${line}\n`);
