// The command `erasures`. It exports the deletions of forms, and applies them after a restore.
import { createInterface } from 'node:readline';
import { parseConfig } from '../../service/operations/config.ts';
import { createLogger } from '../../service/operations/log.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { runMain } from '../../service/operations/run-main.ts';
import { createPool } from '../../service/postgres/postgres.ts';
import { configSchema } from '../migrate/migrate.ts';
import { type ErasuresCommand, help, parseErasuresArguments, UsageError } from './arguments.ts';
import { runErasures } from './erasures.ts';

const name = 'erasures';
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Reads standard input once it is asked for lines: an open input would keep the process from ending. */
async function* readLines(): AsyncGenerator<string> {
  yield* createInterface({ input: process.stdin });
}

function readArguments(): ErasuresCommand {
  try {
    return parseErasuresArguments(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(2);
  }
}

await runMain(name, async () => {
  const command = readArguments();
  if (command.action === 'help') return print(help);
  const config = parseConfig(configSchema);
  const log = createLogger({ name, level: config.LOG_LEVEL });
  const pool = createPool({ url: config.DATABASE_URL, size: 1, log, metrics: createMetrics() });
  try {
    process.exitCode = await runErasures(command, { pool, print, lines: readLines() });
  } finally {
    await pool.end();
  }
});
