// The Postgres server of a scale run. A folder can keep the filled database for later runs.
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import pino from 'pino';
import { placePostgres, startPostgres } from '../../dev/postgres/postgres.ts';
import { formMigrations } from '../../src/forms/expiry/migrations.ts';
import { migrate } from '../../src/service/postgres/migrate.ts';
import { fill } from './fill.ts';

export interface ScaleDatabase {
  /** URLs of the form service's and the platform server's databases. */
  forms: string;
  platform: string;
  /** Connections to the form service's database, without a statement timeout and without a lock timeout. */
  pool: pg.Pool;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  drafts: number;
  /** URN of the tenant with the most forms. */
  tenant: string;
  /** Folder of the database; it is kept at the end. Without it, the database is temporary. */
  folder: string | undefined;
  log(line: string): void;
}

/** Settings of a small server. Unlike in other benches, commits wait for the disk, as in production. */
const settings = {
  shared_buffers: '1GB',
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
  maintenance_work_mem: '256MB',
  max_connections: '200',
};

/** Number of the last migration of version 0.2.0. */
const lastOfRelease = 5;

/**
 * Starts a Postgres with a database of the form service. The database has the schema of version 0.2.0, unless the
 * folder contains a filled database.
 */
export async function openDatabase({ drafts, tenant, folder, log }: DatabaseOptions): Promise<ScaleDatabase> {
  const directory = folder ? resolve(folder) : join(await mkdtemp(join(tmpdir(), 'formgate-scale-')), 'postgres');
  const postgres = await startPostgres({ directory, password: 'scale', settings });
  const [forms, platform] = [await postgres.ensureDatabase('forms'), await postgres.ensureDatabase('platform')];
  const pool = new pg.Pool({ connectionString: forms, max: 3, options: '-c statement_timeout=0 -c lock_timeout=0' });
  pool.on('error', () => undefined);
  const { rows } = await pool.query("SELECT to_regclass('scale_filled') IS NOT NULL AS done");
  if (!rows[0]?.done) {
    await migrateTo(lastOfRelease, forms);
    await fill({ databaseUrl: forms, drafts, tenant, log });
    await pool.query('CREATE TABLE scale_filled AS SELECT $1::bigint AS drafts', [drafts]);
  }
  return {
    forms,
    platform,
    pool,
    async close() {
      await pool.end();
      await postgres.stop();
      if (folder) return;
      await rm(await placePostgres(directory), { recursive: true, force: true });
      await rm(join(directory, '..'), { recursive: true, force: true });
    },
  };
}

/** Applies the migrations of the form service up to `version`. */
export async function migrateTo(version: number, url: string): Promise<void> {
  const { directory, lockTimeout } = formMigrations;
  const some = await mkdtemp(join(tmpdir(), 'formgate-migrations-'));
  for (const file of await readdir(directory))
    if (Number.parseInt(file, 10) <= version) await copyFile(join(directory, file), join(some, file));
  try {
    await migrate({ url, directory: some, lockTimeout, log: pino({ level: 'silent' }) });
  } finally {
    await rm(some, { recursive: true, force: true });
  }
}
