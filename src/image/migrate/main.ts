// The command `migrate`. It migrates the database of one process before the pods of that process start. If the command
// is not run, the pods migrate the database when they start.
import { parseConfig } from '../../service/operations/config.ts';
import { createLogger } from '../../service/operations/log.ts';
import { runMain } from '../../service/operations/run-main.ts';
import { configSchema, migrateDatabase } from './migrate.ts';

const name = 'migrate';

await runMain(name, async () => {
  const config = parseConfig(configSchema);
  const log = createLogger({ name, level: config.LOG_LEVEL });
  await migrateDatabase({ processName: process.argv[2] ?? '', url: config.DATABASE_URL, log });
  log.info({ process: process.argv[2] }, 'database is up to date');
});
