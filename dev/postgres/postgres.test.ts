// Tests that the embedded Postgres keeps its data, restarts after a kill, and refuses a second run in one folder.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { EmbeddedPostgres } from './ownership.ts';
import { startPostgres } from './postgres.ts';

const password = "p'a ss/w:rd";
/** The files of a stopped Postgres. Each test copies them, because that is faster than creating them. */
let created: string;
let folder: string;
let directory: string;
let running: EmbeddedPostgres | undefined;
let child: ChildProcess | undefined;

const createFolder = async () => {
  const made = await mkdtemp(join(tmpdir(), 'formgate-postgres-'));
  await chmod(made, 0o755);
  return made;
};

beforeAll(async () => {
  created = await createFolder();
  const first = await startPostgres({ directory: join(created, 'postgres'), password, settings: { fsync: 'off' } });
  await first.stop();
});
afterAll(() => rm(created, { recursive: true, force: true }));

beforeEach(async () => {
  folder = await createFolder();
  directory = join(folder, 'postgres');
  // `-a` preserves the account that owns the files.
  await promisify(execFile)('cp', ['-a', join(created, 'postgres'), directory]);
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await running?.stop();
  await rm(folder, { recursive: true });
});

const start = async () => {
  running = await startPostgres({ directory, password, settings: { fsync: 'off' } });
  return running;
};

/** Starts Postgres from another process, which then waits until the test kills it. */
async function startElsewhere(): Promise<void> {
  const module = JSON.stringify(join(import.meta.dirname, 'postgres.ts'));
  const script = `const { startPostgres } = await import(${module});
    await startPostgres({ directory: process.argv[1], password: process.argv[2] });
    console.log('ready'); setInterval(() => {}, 1000);`;
  child = spawn(process.execPath, ['--input-type=module', '-e', script, directory, password], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.stdout) await once(child.stdout, 'data');
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}

it('data is kept over a restart, on 127.0.0.1 only and behind a password', async () => {
  const url = await (await start()).ensureDatabase('forms');
  await query(url, 'CREATE TABLE kept AS SELECT 1 AS one');
  expect(await query(url, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }]);
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
  await running?.stop();
  expect(await query(await (await start()).ensureDatabase('forms'), 'SELECT * FROM kept')).toEqual([{ one: 1 }]);
});

it('a folder that another run uses is refused in one clear line, and that run is left alone', async () => {
  const other = await start();
  await expect(startPostgres({ directory, password })).rejects.toThrow(
    /^Another Formgate is running with the data in .*$/,
  );
  expect(await query(other.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('a Postgres whose parent was killed is stopped and started anew', async () => {
  await startElsewhere();
  child?.kill('SIGKILL');
  expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('a Postgres that was killed with its parent starts again', async () => {
  await startElsewhere();
  const [pid] = (await readFile(join(directory, 'data/postmaster.pid'), 'utf8')).split('\n');
  child?.kill('SIGKILL');
  process.kill(Number(pid), 'SIGKILL');
  expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('a stale process id that now belongs to another program neither prevents the start nor ends that program', async () => {
  await (await start()).stop();
  const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await writeFile(
    join(directory, 'data/postmaster.pid'),
    `${bystander.pid}\n${directory}/data\n1\n5999\n\n127.0.0.1\n\nready\n`,
  );
  await start();
  expect(bystander.kill(0)).toBe(true);
  bystander.kill();
});

it('an empty process id file, as a crash of the machine leaves it, does not stop the start', async () => {
  await (await start()).stop();
  await writeFile(join(directory, 'data/postmaster.pid'), '');
  expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('an empty data folder, as a crash of the machine leaves it, does not stop the start', async () => {
  await (await start()).stop();
  await rm(join(directory, 'data'), { recursive: true });
  await mkdir(join(directory, 'data'));
  expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('a start with another password fails, and leaves no Postgres behind that would stop the next start', async () => {
  await (await start()).stop();
  await expect(startPostgres({ directory, password: 'another' })).rejects.toThrow('password authentication failed');
  expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('after a crash of a backend, the owner reconnects and still holds the folder', async () => {
  const postgres = await start();
  let hasFailed = false;
  void postgres.failed.then(() => (hasFailed = true));
  const holders = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted";
  for (let crash = 0; crash < 3; crash += 1) {
    const before = await query(postgres.url, holders);
    const client = new pg.Client({ connectionString: postgres.url });
    client.on('error', () => undefined);
    await client.connect();
    const ended = new Promise((resolve) => client.once('end', resolve));
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    process.kill(rows[0]?.pid ?? 0, 'SIGKILL');
    await ended;
    // Postgres may notice the crash later, and ends all connections then. So waits for another connection of the owner.
    const isHeldAgain = async () => {
      const now = await query(postgres.url, holders).catch(() => []);
      return now.length === 1 && JSON.stringify(now) !== JSON.stringify(before);
    };
    await expect.poll(isHeldAgain).toBe(true);
  }
  await expect(startPostgres({ directory, password })).rejects.toThrow(/^Another Formgate is running/);
  expect(await postgres.ensureDatabase('after')).toContain('/after');
  expect(hasFailed).toBe(false);
});

it('a start that was killed while it created its files is repeated from the beginning', async () => {
  await (await start()).stop();
  await rm(join(directory, 'data'), { recursive: true });
  await writeFile(join(directory, 'data.unfinished'), 'half a cluster');
  expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('the owner is notified when Postgres ends unexpectedly, and can still stop it', async () => {
  const postgres = await start();
  const [pid] = (await readFile(join(directory, 'data/postmaster.pid'), 'utf8')).split('\n');
  process.kill(Number(pid), 'SIGKILL');
  await postgres.failed;
  await postgres.stop();
});
