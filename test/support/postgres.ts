// Gives each test file its own migrated database, on the Postgres server that global-setup started. A database is a
// copy of a template, because a copy is faster than migrations. There is one template for each set of migrations.
import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import pino from 'pino';
import { inject } from 'vitest';
import { formMigrations } from '../../src/forms/expiry/migrations.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { migrate } from '../../src/service/postgres/migrate.ts';
import { createPool } from '../../src/service/postgres/postgres.ts';

export interface TestDatabase {
  url: string;
  /** Connections to the database, as the product opens them. */
  pool: pg.Pool;
  /** Ends the pool, and removes the database, even if other connections are still open. */
  drop(): Promise<void>;
}

const templateLock = 5_151_027;
const silentLog = pino({ level: 'silent' });
const metrics = createMetrics();

/** Creates a database with the migrations of `migrationsDirectory`. Without a directory, the database is empty. */
export async function createTestDatabase(migrationsDirectory?: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const url = databaseUrl(name);
  await asAdministrator(async (client) => {
    const template =
      migrationsDirectory === undefined ? 'template1' : await ensureTemplate(client, migrationsDirectory);
    // Postgres copies files faster than it copies through its write-ahead log (decision 0027).
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
    await copyRoleSettings(client, template, name);
  });
  const pool = createPool({ url, size: 20, log: silentLog, metrics });
  return {
    url,
    pool,
    async drop() {
      if (!pool.ended) await pool.end();
      await asAdministrator(async (client) => {
        await untilLeft(client, name);
        await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
      });
    },
  };
}

const nameOf = (url: string) => new URL(url).pathname.slice(1);

/** Closes every connection to a database and refuses new ones, like a stopped server, until `restoreDatabase`. */
export async function cutDatabase(url: string): Promise<void> {
  await asAdministrator(async (client) => {
    await client.query(`ALTER DATABASE ${nameOf(url)} ALLOW_CONNECTIONS false`);
    await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [nameOf(url)]);
  });
}

export async function restoreDatabase(url: string): Promise<void> {
  await asAdministrator((client) => client.query(`ALTER DATABASE ${nameOf(url)} ALLOW_CONNECTIONS true`));
}

/**
 * Waits until all connections to the database `name` have closed. A pool's `end` resolves before its connections have
 * closed. If the server then cuts such a connection, the connection raises an error that nothing handles.
 */
async function untilLeft(client: pg.Client, name: string): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const { rowCount } = await client.query('SELECT FROM pg_stat_activity WHERE datname = $1', [name]);
    if (rowCount === 0) return;
    await sleep(25);
  }
}

/**
 * Copies the settings of roles in the template, such as the time limits that `migrate` sets, to the new database.
 * `CREATE DATABASE` does not copy them.
 */
async function copyRoleSettings(client: pg.Client, template: string, name: string): Promise<void> {
  const { rows } = await client.query<{ sql: string }>(
    `SELECT format('ALTER ROLE %I IN DATABASE %I SET %I = %L', r.rolname, $2::text,
      split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1)) AS sql
    FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase JOIN pg_roles r ON r.oid = s.setrole,
      unnest(s.setconfig) AS setting
    WHERE d.datname = $1`,
    [template, name],
  );
  if (rows.length > 0) await client.query(rows.map(({ sql }) => sql).join('; '));
}

/**
 * Returns the name of the template with these migrations. Test files run in parallel processes: the first process makes
 * the template while the others wait.
 */
async function ensureTemplate(client: pg.Client, directory: string): Promise<string> {
  const name = `template_${await hashFiles(directory)}`;
  await client.query('SELECT pg_advisory_lock($1)', [templateLock]);
  try {
    const { rows } = await client.query<{ datistemplate: boolean }>(
      'SELECT datistemplate FROM pg_database WHERE datname = $1',
      [name],
    );
    if (rows[0]?.datistemplate) return name;
    if (rows[0]) await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await client.query(`CREATE DATABASE ${name}`);
    const lockTimeout = directory === formMigrations.directory ? formMigrations.lockTimeout : undefined;
    await migrate({ url: databaseUrl(name), directory, lockTimeout, log: silentLog });
    // Marks the database as a template only now, so that a database whose migration failed is created again.
    await client.query(`ALTER DATABASE ${name} IS_TEMPLATE true`);
    return name;
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [templateLock]);
  }
}

async function hashFiles(directory: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of (await readdir(directory)).sort())
    hash.update(`${file}\0`).update(await readFile(join(directory, file)));
  return hash.digest('hex').slice(0, 24);
}

function databaseUrl(name: string): string {
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  return url.href;
}

async function asAdministrator<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
