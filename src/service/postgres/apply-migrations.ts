// Applies the pending migrations of a database. On a new database, all files run in one transaction. On a database in
// use, each file has its own transaction, so that no lock is held longer than its file takes. A file that begins with
// `-- Runs outside of a transaction` consists of statements that are separated by lines `---`. These statements take no
// locks that requests wait for, and can be repeated.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../operations/log.ts';
import { isLockTimeout } from './postgres.ts';
import { checkApplied, readMigrationFiles } from './schema-state.ts';

export interface ApplyOptions {
  client: pg.Client;
  url: string;
  directory: string;
  log: Logger;
  /** Called in the last transaction, when no file is pending. */
  finish(): Promise<void>;
}

const lockKey = 4_711_026;

/** Longest waits in milliseconds: for another process that migrates, and for the locks of tables. */
const patience = { other: 600_000, locks: 120_000 };
/**
 * Milliseconds between two attempts: while another process migrates, after a table's lock was not granted, and while
 * another session builds an index.
 */
const pauses = { other: 200, locks: 1_000, build: 1_000 };

/** Applies all pending files. If a file fails, the files before it stay applied. */
export async function applyPending(options: ApplyOptions): Promise<void> {
  /**
   * Milliseconds waited so far. The two waits have separate limits, because the other process may migrate for minutes.
   */
  const waited = { other: 0, locks: 0 };
  for (let attempt = 1; ; ) {
    const began = performance.now();
    let obstacle: keyof typeof patience;
    try {
      const step = await applyNext(options, attempt);
      if (step === 'done') return;
      attempt = 1;
      if (step !== 'busy') {
        for (const file of step) options.log.info({ migration: file }, 'migration applied');
        continue;
      }
      if (waited.other > patience.other) throw new Error('another process is still migrating it');
      obstacle = 'other';
    } catch (error) {
      if (!isLockTimeout(error) || waited.locks > patience.locks) throw error;
      options.log.warn({ attempt }, 'a table is in use, the migration will be retried');
      attempt += 1;
      obstacle = 'locks';
    }
    await sleep(pauses[obstacle]);
    waited[obstacle] += performance.now() - began;
  }
}

/**
 * True if an autovacuum has locked a table of this database. Its process has no role, and roles without privileges may
 * read nothing else about it.
 */
const autovacuumSql = `
SELECT EXISTS (
  SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
  WHERE l.mode = 'ShareUpdateExclusiveLock' AND l.granted AND a.usesysid IS NULL
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS runs`;

/**
 * Returns the longest wait for the lock of a table. The wait is short, because requests queue behind a waiting
 * migration, and fail after a second. An autovacuum releases its lock only if a migration waits for more than a second.
 * While an autovacuum runs, every fourth attempt therefore waits for so long.
 */
async function lockTimeout(client: pg.Client, attempt: number): Promise<string> {
  if (attempt % 4 !== 0) return '300ms';
  const { rows } = await client.query<{ runs: boolean }>(autovacuumSql);
  return rows[0]?.runs ? '1200ms' : '300ms';
}

/**
 * Applies the next file, or all files on a new database, and returns their names. Returns `done` if no file is pending,
 * and `busy` if another process is migrating.
 */
async function applyNext(options: ApplyOptions, attempt: number): Promise<'done' | 'busy' | string[]> {
  const { client, finish } = options;
  await client.query('BEGIN');
  try {
    await client.query(
      `SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '${await lockTimeout(client, attempt)}';
       SET LOCAL idle_in_transaction_session_timeout = 0`,
    );
    // Does not wait for the lock. A waiting statement would hold a snapshot, and CREATE INDEX CONCURRENTLY in another
    // process would wait for that snapshot.
    const sql = 'SELECT pg_try_advisory_xact_lock($1) AS mine';
    const { rows } = await client.query<{ mine: boolean }>(sql, [lockKey]);
    const outcome = rows[0]?.mine ? await runPending(options) : 'busy';
    if (outcome === 'done') await finish();
    await client.query('COMMIT');
    return outcome;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function runPending({ client, url, directory, log }: ApplyOptions): Promise<'done' | string[]> {
  // Postgrator is loaded only when needed, because loading it takes time.
  const { default: Postgrator } = await import('postgrator');
  const files = await readMigrationFiles(directory);
  if (files.length === 0) throw new Error(`no migrations in ${directory}`);
  const present = await checkApplied(client, files);
  const isNew = present.length === 0;
  const last = Math.max(0, ...present);
  // A database that is newer than this release has no pending files. Older pods work with the newer schema, for example
  // after a rollback of the release, because migrations only add objects.
  const pending = files.map(({ version }) => version).filter((version) => version > last);
  if (pending.length === 0) return 'done';
  const postgrator = new Postgrator({
    migrationPattern: join(directory, '*.sql'),
    driver: 'pg',
    schemaTable: 'schema_migrations',
    // Postgrator need not compare the checksums, because `checkApplied` compares them.
    validateChecksums: false,
    execQuery: (sql) => client.query(sql),
    execSqlScript: async (sql) => {
      if (isNew) await client.query(sql.replaceAll(/\bCONCURRENTLY\b/g, ''));
      else if (sql.startsWith(outsideMark)) await runOutside(url, sql, log);
      else await client.query(sql);
    },
  });
  const target = isNew ? Math.max(...pending) : Math.min(...pending);
  const applied = await postgrator.migrate(String(target));
  return applied.map(({ filename }) => filename ?? 'unnamed');
}

const outsideMark = '-- Runs outside of a transaction';

/** Runs the statements one by one on another connection, while the transaction of `applyNext` holds the lock. */
async function runOutside(url: string, sql: string, log: Logger): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, keepAlive: true });
  client.on('error', (error) => log.warn({ err: error }, 'connection for migrations broke'));
  await client.connect();
  try {
    for (const statement of sql.split(/^---$/m)) {
      // Sets the timeouts before each statement, because a pooler may give each statement a different connection.
      await client.query("SET statement_timeout = '60min'");
      await client.query('SET lock_timeout = 0');
      await dropUnfinished(client, statement, log);
      await client.query(statement);
    }
  } finally {
    await client.query('RESET statement_timeout').catch(() => undefined);
    await client.query('RESET lock_timeout').catch(() => undefined);
    await client.end();
  }
}

/**
 * Drops the invalid index that an interrupted build has left. Postgres would update such an index, but never use it.
 * First waits until no other session builds the index. If a process is killed, Postgres continues its statement.
 */
async function dropUnfinished(client: pg.Client, statement: string, log: Logger): Promise<void> {
  const [create, index] = /CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+)/.exec(statement) ?? [];
  if (!create || !index) return;
  for (let waits = 0; await isRunning(client, create); waits += 1) {
    if (waits === 0) log.info({ index }, 'waiting for an earlier build of an index');
    await sleep(pauses.build);
  }
  const sql = 'SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid';
  const { rowCount } = await client.query(sql, [index]);
  if (rowCount === 1) await client.query(`DROP INDEX CONCURRENTLY ${index}`);
}

/** True if another session of this database executes a statement with this text. The transaction has then not ended. */
async function isRunning(client: pg.Client, text: string): Promise<boolean> {
  const sql = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND state = 'active' AND position($1 IN query) > 0`;
  const { rowCount } = await client.query(sql, [text]);
  return rowCount !== 0;
}
