// The command `migrate`: brings the database of one process to the schema that this version needs, as the process itself
// does when it starts. For whoever wants that to happen before the first pod does.
import { parseConfig } from '../../service/operations/config.ts';
import { createLogger } from '../../service/operations/log.ts';
import { runMain } from '../../service/operations/run-main.ts';
import { configSchema, migrateDatabase } from './migrate.ts';

const name = 'migrate';

await runMain(name, async () => {
  const config = parseConfig(configSchema);
  const log = createLogger({ name, level: config.LOG_LEVEL });
  await migrateDatabase({ processName: process.argv[2] ?? '', url: config.DATABASE_URL, log });
  log.info({ process: process.argv[2] }, 'the database is as this version needs it');
});
