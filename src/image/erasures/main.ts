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
    process.exitCode = await runErasures(command, { pool, print, lines: createInterface({ input: process.stdin }) });
  } finally {
    await pool.end();
  }
});
