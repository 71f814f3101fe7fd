// Runs the database migrations of one process. For the platform server, it also creates the tables of its job queue.
import { z } from 'zod';
import { formMigrations } from '../../forms/expiry/migrations.ts';
import { migrateJobs } from '../../platform-server/worker.ts';
import { ConfigError } from '../../service/operations/config.ts';
import type { Logger } from '../../service/operations/log.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { databaseFields, processFields } from '../../service/operations/process-fields.ts';
import { migrate, requireSchema } from '../../service/postgres/migrate.ts';
import { createPool } from '../../service/postgres/postgres.ts';
import { programFile } from '../../service/program-files.ts';

export const configSchema = z.object({
  LOG_LEVEL: processFields.LOG_LEVEL,
  DATABASE_URL: databaseFields.DATABASE_URL,
});

const processes = ['forms', 'token-handler', 'platform-server'];

export interface MigrateOptions {
  processName: string;
  url: string;
  log: Logger;
  /**
   * The name of the process, such as `the form service`. If it is given, the database must already have tables of the
   * process.
   */
  owner?: string | undefined;
}

/** Throws ConfigError for an unknown process, and StartupError if the database cannot be migrated. */
export async function migrateDatabase({ processName, url, log, owner }: MigrateOptions): Promise<void> {
  if (!processes.includes(processName))
    throw new ConfigError([{ name: 'migrate', problem: `name one of ${processes.join(', ')}` }]);
  const directory = programFile(`src/${processName}/migrations`);
  if (owner !== undefined) await requireSchema({ url, directory, owner, log });
  await migrate({ url, directory, log, ...(processName === 'forms' && formMigrations) });
  if (processName !== 'platform-server') return;
  const pool = createPool({ url, size: 3, log, metrics: createMetrics() });
  try {
    await migrateJobs(pool, log);
  } finally {
    await pool.end();
  }
}
