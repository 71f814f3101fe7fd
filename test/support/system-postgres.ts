// Starts the Postgres server of the machine's own packages, for tests that use pg_dump, pg_restore and psql. The
// embedded server comes without these programs, and the machine's programs refuse a server that is newer than they are.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, globSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findFreePort } from '../../dev/ports.ts';
import { findUnprivilegedUser } from '../../dev/postgres/unprivileged-user.ts';
import { endWithThisProcess, failedStart, hasEnded } from './child-processes.ts';

export interface SystemPostgres {
  /** URL of the database `postgres`, with the rights of a superuser. */
  url: string;
  /** Folder of psql, pg_dump and pg_restore, in the server's version. */
  programs: string;
  /** Creates an empty database, and returns its URL. */
  createDatabase(name: string): Promise<string>;
  close(): Promise<void>;
}

/** Starts the server. Throws an error with a one-line message if the machine has no Postgres server. */
export async function startSystemPostgres(): Promise<SystemPostgres> {
  const programs = findPrograms();
  if (programs === undefined) throw new Error('There is no Postgres server: apt-get install postgresql brings it.');
  const user = await findUnprivilegedUser();
  const account = user ? { uid: user.uid, gid: user.gid } : {};
  const folder = await mkdtemp(join(tmpdir(), 'formgate-system-postgres-'));
  chmodSync(folder, 0o700);
  if (user) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const options = { cwd: folder, ...account, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } };
  const flags = ['--auth=trust', '--username=formgate', '--encoding=UTF8', '--no-sync', `--pgdata=${data}`];
  const made = spawnSync(join(programs, 'initdb'), flags, { ...options, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const port = await findFreePort();
  const settings = [
    'fsync=off',
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'max_connections=200',
  ];
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
    { ...options, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  endWithThisProcess(server, 'SIGQUIT');
  let log = '';
  server.stderr.on('data', (chunk: Buffer) => {
    log = `${log}${chunk}`.slice(-10_000);
  });
  const url = `postgres://formgate@127.0.0.1:${port}/postgres`;
  await untilReady(url, () => {
    if (hasEnded(server)) throw failedStart('Postgres server', server, log);
  });
  return {
    ...{ url, programs },
    async createDatabase(name) {
      await query(url, `CREATE DATABASE ${pg.escapeIdentifier(name)}`);
      return Object.assign(new URL(url), { pathname: `/${name}` }).href;
    },
    async close() {
      const ended = once(server, 'exit');
      server.kill('SIGQUIT');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the folder of the newest installed server. On Debian, PATH leads only to client programs, not to servers. */
function findPrograms(): string | undefined {
  const versions = globSync('/usr/lib/postgresql/*/bin/postgres').sort((a, b) =>
    a.localeCompare(b, 'en', { numeric: true }),
  );
  const server = versions.at(-1) ?? spawnSync('sh', ['-c', 'command -v postgres'], { encoding: 'utf8' }).stdout.trim();
  return server === '' ? undefined : join(server, '..');
}

/** Waits until the server accepts connections. `check` throws if the server has ended. */
async function untilReady(url: string, check: () => void): Promise<void> {
  for (const deadline = performance.now() + 60_000; ; await sleep(50)) {
    const isReady = await query(url, 'SELECT').then(
      () => true,
      () => false,
    );
    if (isReady) return;
    check();
    if (performance.now() > deadline) throw new Error('Postgres did not start within a minute.');
  }
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
