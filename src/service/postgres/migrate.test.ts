// Tests migrations on a real Postgres.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { startTcpGate } from '../../../test/support/tcp-gate.ts';
import { migrate } from './migrate.ts';

let directory: string;
let database: TestDatabase;
let captured: ReturnType<typeof captureLog>;
let clients: pg.Client[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'formgate-migrations-'));
  database = await createTestDatabase();
  captured = captureLog();
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.end()));
  clients = [];
  await database.drop();
  rmSync(directory, { recursive: true });
});

const write = (name: string, sql: string) => writeFileSync(join(directory, name), sql);
const run = () => migrate({ url: database.url, directory, log: captured.log });
const applied = () => captured.lines().filter(({ msg }) => msg === 'migration applied').length;

async function query<T extends object>(sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query<T>(sql)).rows;
  } finally {
    await client.end();
  }
}

const tables = async () =>
  (await query<{ tablename: string }>("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")).map(
    ({ tablename }) => tablename,
  );
const versions = async () =>
  (await query<{ version: string }>('SELECT version FROM schema_migrations ORDER BY version')).map(({ version }) =>
    Number(version),
  );

describe('migrations', () => {
  it('are applied in the order of their numbers, each once', async () => {
    write('010.do.fill.sql', 'INSERT INTO things VALUES (1);');
    write('002.do.create.sql', 'CREATE TABLE things (n int); CREATE TABLE others (n int);');
    await run();
    await run();
    expect(await query('SELECT n FROM things')).toEqual([{ n: 1 }]);
    expect([await versions(), applied()]).toEqual([[0, 2, 10], 2]);
  });

  it.each([
    ['refuses the password', { password: 'wrong' }, 'it refuses the user or the password (28P01)'],
    ['has no such database', { pathname: '/nowhere' }, 'there is no database of this name (3D000)'],
    ['is not there', { port: '1' }, 'its host refuses connections (ECONNREFUSED)'],
    [
      'has an unknown host',
      { hostname: 'nowhere.invalid' },
      expect.stringMatching(/^the name of its host .*\(E\w+\)$/),
    ],
  ])('fail with one line that names the reason if Postgres %s', async (_what, change, why) => {
    const url = Object.assign(new URL(database.url), change).href;
    const failure = await migrate({ url, directory, patience: 0, log: captured.log }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    const [beginning, end] = String((failure as Error).message).split('opened: ');
    expect([beginning, end]).toEqual(['the database cannot be ', why]);
  });

  it('wait for a database that starts later, with one line about the wait', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    const gate = await startTcpGate(Number(new URL(database.url).port));
    onTestFinished(() => gate.close());
    await gate.shut();
    const url = Object.assign(new URL(database.url), { hostname: '127.0.0.1', port: String(gate.port) }).href;
    const done = migrate({ url, directory, log: captured.log });
    await expect.poll(() => captured.lines().map(({ msg }) => msg)).toContain('waiting for the database');
    await gate.open();
    await done;
    expect(applied()).toBe(1);
    expect(captured.lines().map(({ msg }) => msg)).toEqual([
      'waiting for the database',
      'the database can be reached',
      'migration applied',
    ]);
  });

  it.each([
    ['the password', { password: 'wrong' }],
    ['the database', { pathname: '/nowhere' }],
  ])('do not wait if %s is wrong', async (_what, change) => {
    const url = Object.assign(new URL(database.url), change).href;
    await expect(migrate({ url, directory, log: captured.log })).rejects.toThrow('the database cannot be opened');
    expect(captured.lines()).toEqual([]);
  });

  it('are applied once by five processes that start together', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int); SELECT pg_sleep(0.3);');
    write('002.do.fill.sql', 'INSERT INTO things VALUES (1);');
    const script = join(directory, 'main.mjs');
    writeFileSync(
      script,
      `import { migrate } from '${join(import.meta.dirname, 'migrate.ts')}';
       await migrate({ url: process.argv[2], directory: process.argv[3], log: { info: () => console.log('applied'), warn() {} } });`,
    );
    const processes = Array.from({ length: 5 }, () => spawn(process.execPath, [script, database.url, directory]));
    const outputs = await Promise.all(
      processes.map(async (child) => {
        let output = '';
        for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
        const [code] = await once(child, 'close');
        return `${code} ${output}`;
      }),
    );
    expect(outputs.sort()).toEqual(['0 ', '0 ', '0 ', '0 ', '0 applied\napplied\n']);
    expect(await query('SELECT n FROM things')).toEqual([{ n: 1 }]);
  });

  it('leave nothing behind if one of them fails', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    write('002.do.fail.sql', 'CREATE TABLE others (n int); SELECT 1/0;');
    await expect(run()).rejects.toMatchObject({
      message: 'the database cannot be migrated: it rejected a statement (22012)',
      cause: { message: 'division by zero' },
    });
    expect([await tables(), applied()]).toEqual([[], 0]);
    write('002.do.fail.sql', 'CREATE TABLE others (n int);');
    await run();
    expect(await tables()).toEqual(['others', 'schema_migrations', 'things']);
  });

  it('leave nothing behind if the connection breaks', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int); SELECT pg_terminate_backend(pg_backend_pid());');
    await expect(run()).rejects.toThrow();
    expect(await tables()).toEqual([]);
  });

  it('that were changed after they ran are rejected, even if none is pending', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    await run();
    write('001.do.create.sql', 'CREATE TABLE things (n bigint);');
    await expect(run()).rejects.toThrow('its migration 1 (create) is not the one of this version of the service');
    write('002.do.more.sql', 'CREATE TABLE others (n int);');
    await expect(run()).rejects.toThrow('its migration 1 (create) is not the one of this version of the service');
    expect(await tables()).toEqual(['schema_migrations', 'things']);
  });

  it('of a newer version are accepted by an older version of the service', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    write('002.do.more.sql', 'CREATE TABLE others (n int);');
    await run();
    rmSync(join(directory, '002.do.more.sql'));
    await run();
    expect([await versions(), await tables()]).toEqual([
      [0, 1, 2],
      ['others', 'schema_migrations', 'things'],
    ]);
  });

  it('of another service are refused, also if they are more than those of this service', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    write('002.do.more.sql', 'CREATE TABLE others (n int);');
    await run();
    rmSync(join(directory, '002.do.more.sql'));
    rmSync(join(directory, '001.do.create.sql'));
    write('001.do.clients.sql', 'CREATE TABLE clients (n int);');
    const refusal = 'it belongs to another service, whose migration 1 is create, not clients; check DATABASE_URL';
    await expect(run()).rejects.toThrow(refusal);
    for (const nth of [2, 3]) write(`00${nth}.do.next.sql`, `CREATE TABLE clients${nth} (n int);`);
    await expect(run()).rejects.toThrow(refusal);
    expect(await tables()).toEqual(['others', 'schema_migrations', 'things']);
  });

  it('that are missing are an error', async () => {
    await expect(run()).rejects.toThrow('no migrations in');
    await expect(
      migrate({ url: database.url, directory: join(directory, 'nowhere'), log: captured.log }),
    ).rejects.toThrow();
  });

  it('may take longer than the limits of the role', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    await run();
    await query(
      "DO $$ BEGIN EXECUTE format('ALTER ROLE %I IN DATABASE %I SET statement_timeout = 100', current_user, current_database()); END $$",
    );
    write('002.do.slow.sql', 'SELECT pg_sleep(0.4);');
    await run();
    expect(await versions()).toEqual([0, 1, 2]);
  });
});

describe('migrations of a database in use', () => {
  const outside = '-- Runs outside of a transaction';
  const names = ['001.do.create.sql', '002.do.index.sql'] as const;
  const indexSql = `${outside}.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS things_by_n ON things (n);
---
CREATE INDEX CONCURRENTLY IF NOT EXISTS things_by_m ON things (m);`;
  const indexes = () =>
    query<{ name: string; valid: boolean }>(
      `SELECT indexrelid::regclass::text AS name, indisvalid AS valid FROM pg_index
       WHERE indrelid = 'things'::regclass ORDER BY 1`,
    );

  /** Returns a connection, which ends when the test drops the database. */
  async function connected(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: database.url });
    client.on('error', () => undefined);
    await client.connect();
    clients.push(client);
    return client;
  }

  /** Applies a migration that creates a table. Then writes a pending migration that adds a column to the table. */
  async function leaveColumn(): Promise<void> {
    write(names[0], 'CREATE TABLE things (n int);');
    await run();
    write('002.do.column.sql', 'ALTER TABLE things ADD COLUMN m int;');
  }

  /** Makes each reading of the clock return a time `milliseconds` later than the previous reading. */
  function hasten(milliseconds: number): void {
    let now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += milliseconds));
    onTestFinished(() => clock.mockRestore());
  }

  it('keep the files before the one that fails, and continue with it', async () => {
    write(names[0], 'CREATE TABLE things (n int);');
    await run();
    write('002.do.more.sql', 'CREATE TABLE others (n int);');
    write('003.do.fail.sql', 'SELECT 1/0;');
    await expect(run()).rejects.toThrow();
    expect(await versions()).toEqual([0, 1, 2]);
    write('003.do.fail.sql', 'SELECT 1;');
    await run();
    expect(await versions()).toEqual([0, 1, 2, 3]);
  });

  it('build an index while a transaction writes to the table, and block no other write', async () => {
    write(names[0], 'CREATE TABLE things (n int, m int);');
    await run();
    const [writer, other] = [await connected(), await connected()];
    await writer.query('BEGIN; INSERT INTO things VALUES (1, 1)');
    write(names[1], indexSql);
    const done = run();
    const waits = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INDEX CONCURRENTLY%'`;
    await expect.poll(async () => (await other.query(waits)).rowCount).toBe(1);
    await other.query("SET lock_timeout = '1s'");
    await other.query('INSERT INTO things VALUES (2, 2)');
    await writer.query('COMMIT');
    await done;
    expect(await indexes()).toEqual([
      { name: 'things_by_m', valid: true },
      { name: 'things_by_n', valid: true },
    ]);
  });

  it('replace an index whose build was interrupted', async () => {
    write(names[0], 'CREATE TABLE things (n int, m int); INSERT INTO things VALUES (1, 1), (1, 1);');
    await run();
    write(names[1], indexSql);
    await expect(run()).rejects.toThrow();
    expect(await indexes()).toEqual([{ name: 'things_by_n', valid: false }]);
    await query('DELETE FROM things WHERE ctid = (SELECT min(ctid) FROM things)');
    await run();
    expect((await indexes()).map(({ valid }) => valid)).toEqual([true, true]);
    expect(await versions()).toEqual([0, 1, 2]);
  });

  it('keep an index that Postgres is still building for a process that was killed', async () => {
    write(names[0], 'CREATE TABLE things (n int, m int);');
    await run();
    const [writer, builder] = [await connected(), await connected()];
    await writer.query('BEGIN; INSERT INTO things VALUES (1, 1)');
    // A killed process leaves such a statement. Postgres notices only at its end that nobody waits for it.
    const built = builder.query(indexSql.split('---')[0] ?? '');
    const builds = 'SELECT indexrelid AS oid FROM pg_index WHERE indrelid = $$things$$::regclass AND NOT indisvalid';
    await expect.poll(() => query(builds)).toHaveLength(1);
    const [started] = await query(builds);
    write(names[1], indexSql);
    const done = run();
    const isWaiting = () => captured.lines().some(({ msg }) => msg === 'waiting for an earlier build of an index');
    await expect.poll(isWaiting).toBe(true);
    await writer.query('COMMIT');
    await Promise.all([built, done]);
    expect((await indexes()).map(({ valid }) => valid)).toEqual([true, true]);
    expect(await query("SELECT 'things_by_n'::regclass::oid AS oid")).toEqual([started]);
  });

  it('build it once if several processes start together', async () => {
    write(names[0], 'CREATE TABLE things (n int, m int);');
    await run();
    write(names[1], indexSql);
    await Promise.all([run(), run(), run()]);
    expect([await versions(), applied()]).toEqual([[0, 1, 2], 2]);
  });

  it('let other statements through while they wait for a table', async () => {
    write(names[0], 'CREATE TABLE things (n int);');
    await run();
    const [reader, other] = [await connected(), await connected()];
    await reader.query('BEGIN; SELECT FROM things');
    write('002.do.column.sql', 'ALTER TABLE things ADD COLUMN m int;');
    const done = run();
    await expect.poll(() => captured.lines().at(-1)?.msg).toBe('a table is in use, the migration will be retried');
    await other.query("SET lock_timeout = '2s'");
    await other.query('SELECT FROM things');
    await reader.query('COMMIT');
    await done;
    expect(await versions()).toEqual([0, 1, 2]);
  });

  it('fail no request that may wait a second for a lock, however often they are tried again', async () => {
    await leaveColumn();
    const [reader, other] = [await connected(), await connected()];
    await reader.query('BEGIN; SELECT FROM things');
    // The limit of the form service.
    await other.query("SET lock_timeout = '1s'");
    const done = run();
    const retries = () =>
      captured.lines().filter(({ msg }) => msg === 'a table is in use, the migration will be retried');
    while (retries().length < 5) {
      await other.query('SELECT FROM things');
      await sleep(10);
    }
    await reader.query('COMMIT');
    await done;
    expect(await versions()).toEqual([0, 1, 2]);
  });

  it('wait for a table even after a long wait for another process that migrates', async () => {
    await leaveColumn();
    const [migrating, reader] = [await connected(), await connected()];
    await migrating.query('BEGIN; SELECT pg_advisory_xact_lock(4711026)');
    await reader.query('BEGIN; SELECT FROM things');
    // By the mocked clock, the wait for the other process takes five minutes.
    const began = performance.now();
    let passed = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => began + passed);
    onTestFinished(() => clock.mockRestore());
    const done = run();
    await expect.poll(() => clock.mock.calls.length).toBeGreaterThan(2);
    passed = 300_000;
    const calls = clock.mock.calls.length;
    await expect.poll(() => clock.mock.calls.length).toBeGreaterThan(calls + 1);
    await migrating.query('COMMIT');
    await Promise.race([done, expect.poll(() => captured.lines().at(-1)?.msg).toContain('will be retried')]);
    await reader.query('COMMIT');
    await done;
    expect(await versions()).toEqual([0, 1, 2]);
  });

  it('give up a table that stays in use for two minutes', async () => {
    await leaveColumn();
    const reader = await connected();
    await reader.query('BEGIN; SELECT FROM things');
    hasten(25_000);
    await expect(run()).rejects.toThrow('55P03');
    const retries = captured.lines().filter(({ msg }) => msg === 'a table is in use, the migration will be retried');
    expect(retries.length).toBeGreaterThan(1);
  });

  it('give up after ten minutes if another process is still migrating', async () => {
    await leaveColumn();
    const migrating = await connected();
    await migrating.query('BEGIN; SELECT pg_advisory_xact_lock(4711026)');
    hasten(100_000);
    await expect(run()).rejects.toThrow('another process is still migrating it');
  });

  it('need no repetition if a file replaced one with the same result', async () => {
    write(names[0], 'CREATE TABLE things (n int);');
    await run();
    const [{ md5 } = { md5: '' }] = await query<{ md5: string }>('SELECT md5 FROM schema_migrations WHERE version = 1');
    write(names[0], 'CREATE TABLE things (n integer);');
    await expect(run()).rejects.toThrow('the file was changed');
    write('superseded.json', JSON.stringify({ 1: [md5] }));
    write('002.do.more.sql', 'CREATE TABLE others (n int);');
    await run();
    expect(await versions()).toEqual([0, 1, 2]);
  });
});

describe('the limits of the role', () => {
  it('apply to new connections to this database only', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    await run();
    const shown = async () => ({
      ...(await query<object>('SHOW statement_timeout'))[0],
      ...(await query<object>('SHOW lock_timeout'))[0],
      ...(await query<object>('SHOW idle_in_transaction_session_timeout'))[0],
      ...(await query<object>('SHOW tcp_keepalives_idle'))[0],
    });
    expect(await shown()).toEqual({
      statement_timeout: '15s',
      lock_timeout: '5s',
      idle_in_transaction_session_timeout: '1min',
      tcp_keepalives_idle: '30',
    });
    const other = await createTestDatabase();
    onTestFinished(() => other.drop());
    const client = new pg.Client({ connectionString: other.url });
    onTestFinished(() => client.end());
    await client.connect();
    expect((await client.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '0' }]);
  });

  it('are written once, and not by the second start', async () => {
    write('001.do.create.sql', 'CREATE TABLE things (n int);');
    await run();
    const rowVersion =
      'SELECT s.xmin::text FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE datname = current_database()';
    const first = await query(rowVersion);
    await run();
    expect(first).toHaveLength(1);
    expect(await query(rowVersion)).toEqual(first);
  });
});
