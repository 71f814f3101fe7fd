// Migrates a database to the schema of this version, from plain SQL files. Takes an advisory lock, so that several pods
// can start together and each file is still applied only once.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../operations/log.ts';
import { StartupError } from '../operations/startup-check.ts';
import { retryDelay } from '../retry.ts';
import { applyPending } from './apply-migrations.ts';
import { explainDatabaseFailure, isDatabaseOutage } from './database-failure.ts';
import { hasMd5, inspectSchema, readMigrationFiles } from './schema-state.ts';

/**
 * Applies the pending `NNN.do.<name>.sql` files of `directory`, in order. Files only add objects, so that old and new
 * pods can run side by side. A file that was changed after it ran is an error.
 *
 * The lock is a transaction lock, because session locks do not work behind a transaction-pooling PgBouncer. For the
 * same reason, timeouts are settings of the role: 15 s for statements, `lockTimeout` for locks. They apply to
 * connections that are opened later.
 *
 * Throws StartupError.
 */
export async function migrate(options: {
  url: string;
  directory: string;
  /** Longest wait of a statement for a lock, in the syntax of Postgres. The default is 5 s. */
  lockTimeout?: string | undefined;
  /** Longest wait for a database that cannot be reached, in milliseconds. The default is a minute. */
  patience?: number | undefined;
  log: Logger;
}): Promise<void> {
  const limits = roleLimits(options.lockTimeout);
  const client = await connect(options);
  try {
    if (await isUpToDate(client, options.directory, limits)) return;
    await applyPending({ ...options, client, finish: () => setRoleLimits(client, limits) });
  } catch (error) {
    throw new StartupError(`the database cannot be migrated: ${explainDatabaseFailure(error)}`, { cause: error });
  } finally {
    await client.end();
  }
}

/**
 * Checks that another process has created the schema. `owner` is the name of that process, such as `the form service`.
 * Some migrations may still be pending, unless `mustBeCurrent`. Does not wait for the database. Throws StartupError.
 */
export async function requireSchema(options: {
  url: string;
  directory: string;
  owner: string;
  mustBeCurrent?: boolean;
  log: Logger;
}): Promise<void> {
  const { url, directory, owner, mustBeCurrent, log } = options;
  const client = await connect({ url, patience: 0, log });
  try {
    const { kind } = await inspectSchema(client, directory);
    if (kind === 'none') throw new Error(`it has no tables of ${owner}, which creates them; check DATABASE_URL`);
    if (kind === 'pending' && mustBeCurrent)
      throw new Error('migrations of this version are pending, which a dry run does not apply');
  } catch (error) {
    throw new StartupError(`the database cannot be used: ${explainDatabaseFailure(error)}`, { cause: error });
  } finally {
    await client.end();
  }
}

interface ConnectOptions {
  url: string;
  patience?: number | undefined;
  log: Logger;
}

/**
 * Connects, and waits while the database cannot be reached. On a fresh installation, the pods start together with their
 * database. Without the wait, they would exit, and Kubernetes would restart them with growing delays.
 */
async function connect({ url, patience = 60_000, log }: ConnectOptions): Promise<pg.Client> {
  const deadline = performance.now() + patience;
  for (let attempt = 1; ; attempt += 1) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
    client.on('error', (error) => log.warn({ err: error }, 'connection for migrations broke'));
    try {
      await client.connect();
      if (attempt > 1) log.info({ attempts: attempt }, 'the database can be reached');
      return client;
    } catch (error) {
      // A client cannot connect twice, so each attempt uses a new one. The end of the old client is not awaited,
      // because Postgres may never confirm it.
      client.end().catch(() => undefined);
      const reason = explainDatabaseFailure(error);
      const isLate = performance.now() >= deadline;
      if (isLate || !isDatabaseOutage(error))
        throw new StartupError(`the database cannot be opened: ${reason}`, { cause: error });
      if (attempt === 1) log.warn({ reason, patienceMs: patience }, 'waiting for the database');
      await sleep(retryDelay(attempt, { first: 250, cap: 2_000 }));
    }
  }
}

const presentLimits = `SELECT setconfig FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
  JOIN pg_roles r ON r.oid = s.setrole WHERE d.datname = current_database() AND r.rolname = current_user`;
/** The statement timeout of the role, in seconds. */
export const statementSeconds = 15;
/** Settings of the role. Unlike settings that a client requests, they also apply behind a PgBouncer. */
const roleLimits = (lockTimeout = '5s') => [
  `statement_timeout=${statementSeconds}s`,
  `lock_timeout=${lockTimeout}`,
  'idle_in_transaction_session_timeout=60s',
  // After a minute, Postgres closes a connection whose client cannot be reached. With the default of Linux, connections
  // that a network has dropped would count toward max_connections for two hours.
  'tcp_keepalives_idle=30',
  'tcp_keepalives_interval=10',
  'tcp_keepalives_count=3',
];
const undefinedTable = '42P01';

/**
 * True if no migration is pending and the role has its limits, which is the usual case. The check needs one query, but
 * neither the lock nor Postgrator.
 */
async function isUpToDate(client: pg.Client, directory: string, limits: string[]): Promise<boolean> {
  const files = await readMigrationFiles(directory);
  const query = `SELECT version, md5, (${presentLimits}) AS limits FROM schema_migrations`;
  try {
    const { rows } = await client.query<{ version: string; md5: string; limits: string[] | null }>(query);
    const applied = new Map(rows.map(({ version, md5 }) => [Number(version), md5]));
    const isApplied = files.every((file) => hasMd5(file, applied.get(file.version)));
    return files.length > 0 && isApplied && limits.every((limit) => rows[0]?.limits?.includes(limit));
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === undefinedTable) return false;
    throw error;
  }
}

/** Sets the limits of the role. Writes only limits that differ from the current ones. */
async function setRoleLimits(client: pg.Client, limits: string[]): Promise<void> {
  const { rows } = await client.query<{ setconfig: string[] }>(presentLimits);
  const present = new Set(rows[0]?.setconfig ?? []);
  for (const limit of limits.filter((candidate) => !present.has(candidate))) {
    const [name, value] = limit.split('=');
    const { rows: statements } = await client.query<{ sql: string }>(
      "SELECT format('ALTER ROLE %I IN DATABASE %I SET ' || $1 || ' = %L', current_user, current_database(), $2::text) AS sql",
      [name, value],
    );
    await client.query(statements[0]?.sql ?? '');
  }
}
