// Runs the embedded Postgres in a folder of its own: creates it, starts it, recovers what a killed run left behind, and
// stops it. It never touches a process that it cannot prove to be the Postgres of that folder.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Binaries, findBinaries, openFolder } from './binaries.ts';
import { findUnprivilegedUser, isOpenToAll, type UnprivilegedUser } from './unprivileged-user.ts';

export interface EmbeddedPostgres {
  /** Of the database `postgres`, with the administrator's name and password. */
  url: string;
  databaseUrl(name: string): string;
  /** Creates the database unless it is there, and answers its URL. */
  ensureDatabase(name: string): Promise<string>;
  /** Resolves when Postgres ends by itself; never after `stop`. */
  failed: Promise<void>;
  stop(): Promise<void>;
}

interface Cluster {
  home: string;
  data: string;
  password: string;
  user: UnprivilegedUser | undefined;
  binaries: Binaries;
}

const administrator = 'formgate';
// Held by whoever runs this Postgres, for as long as it lives: so a run can tell an orphan from a neighbour's server.
const ownerLock = 7_110_264;

/**
 * Starts Postgres on a free port of 127.0.0.1 with its files in `directory` (`/var/lib/formgate/<hash>` if root runs us
 * in a folder that the account of Postgres cannot enter). Throws if another run uses the folder.
 * `settings` are server settings, `fsync: 'off'` for example.
 */
export async function startPostgres(options: {
  directory: string;
  password: string;
  settings?: Record<string, string>;
}): Promise<EmbeddedPostgres> {
  const user = await findUnprivilegedUser();
  const home = await placePostgres(options.directory);
  const binaries = await findBinaries(user);
  const cluster: Cluster = { home, data: join(home, 'data'), password: options.password, user, binaries };
  await createHome(cluster);
  await stopOrphan(cluster);
  if (!(await stat(cluster.data).catch(() => undefined))) await createCluster(cluster);
  const port = await launch(cluster, options.settings ?? {});
  return takeOwnership(cluster, port);
}

/** Where the files of a Postgres in `directory` really are. */
export async function placePostgres(directory: string): Promise<string> {
  const wanted = resolve(directory);
  if (process.getuid?.() !== 0 || (await isOpenToAll(resolve(wanted, '..')))) return wanted;
  return join(openFolder, createHash('sha256').update(wanted).digest('hex').slice(0, 16));
}

async function createHome({ home, user }: Cluster): Promise<void> {
  await mkdir(home, { recursive: true });
  await chmod(home, 0o700);
  if (user) await chown(home, user.uid, user.gid);
}

async function createCluster(cluster: Cluster): Promise<void> {
  const unfinished = join(cluster.home, 'data.unfinished');
  const passwordFile = join(cluster.home, 'password');
  await rm(unfinished, { recursive: true, force: true });
  await writeFile(passwordFile, `${cluster.password}\n`, { mode: 0o600 });
  if (cluster.user) await chown(passwordFile, cluster.user.uid, cluster.user.gid);
  try {
    const flags = [
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
    ];
    const output = await run(cluster, cluster.binaries.initdb, [
      `--pgdata=${unfinished}`,
      `--username=${administrator}`,
      `--pwfile=${passwordFile}`,
      ...flags,
    ]);
    if (output.code !== 0) throw new Error(`Postgres could not create its files: ${lastLine(output.text)}`);
  } finally {
    await rm(passwordFile, { force: true });
  }
  await rename(unfinished, cluster.data);
}

/** @returns the port */
async function launch(cluster: Cluster, settings: Record<string, string>): Promise<number> {
  const log = join(cluster.home, 'log');
  let reason = '';
  // A port may be taken between the look and the start, and the children of a killed postmaster need a moment to go.
  for (let attempt = 0; attempt < 5; attempt += 1) {
    if (attempt > 0) await delay(500 * attempt);
    const port = await findFreePort();
    const all = {
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: '',
      lc_messages: 'C',
      ...settings,
    };
    const flags = Object.entries(all).map(([name, value]) => `-c ${name}='${value}'`);
    await rm(log, { force: true });
    const started = await run(cluster, cluster.binaries.pgCtl, [
      'start',
      `--pgdata=${cluster.data}`,
      `--log=${log}`,
      '--wait',
      '--timeout=60',
      '--silent',
      `--options=${flags.join(' ')}`,
    ]);
    if (started.code === 0) return port;
    reason = lastLine(await readFile(log, 'utf8').catch(() => started.text));
  }
  throw new Error(`Postgres did not start: ${reason} (its log is ${log})`);
}

async function takeOwnership(cluster: Cluster, port: number): Promise<EmbeddedPostgres> {
  const databaseUrl = (name: string) =>
    `postgres://${administrator}:${encodeURIComponent(cluster.password)}@127.0.0.1:${port}/${name}`;
  const owner = await connect(databaseUrl('postgres'));
  await owner.query('SELECT pg_advisory_lock($1)', [ownerLock]);
  let stopping = false;
  const failed = new Promise<void>((fail) => {
    owner.on('end', () => {
      if (!stopping) fail();
    });
  });
  return {
    url: databaseUrl('postgres'),
    databaseUrl,
    ensureDatabase: async (name) => {
      const { rowCount } = await owner.query('SELECT FROM pg_database WHERE datname = $1', [name]);
      if (rowCount === 0) await owner.query(`CREATE DATABASE ${owner.escapeIdentifier(name)}`);
      return databaseUrl(name);
    },
    failed,
    stop: async () => {
      if (stopping) return;
      stopping = true;
      await owner.end().catch(() => undefined);
      await stopServer(cluster);
    },
  };
}

/** Postgres outlives a parent that was killed. Throws when the server in this folder is not an orphan. */
async function stopOrphan(cluster: Cluster): Promise<void> {
  const pidFile = join(cluster.data, 'postmaster.pid');
  const [pid, , , port] = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
  if (!pid) return;
  for (const deadline = Date.now() + 15_000; isAlive(Number(pid)); await delay(100)) {
    const client = await connect(
      `postgres://${administrator}:${encodeURIComponent(cluster.password)}@127.0.0.1:${port}/postgres`,
    ).catch(() => undefined);
    if (client) {
      const isOurs = await isOrphanOf(client, cluster);
      if (isOurs) return stopServer(cluster);
      break;
    }
    // Starting, stopping, or another program that was given the same process id: only the first two may be waited for.
    if (!(await commandOf(Number(pid))).includes(cluster.data) || Date.now() > deadline) break;
  }
  // Postgres itself takes a process with its old id, of the same account, for a running server, and refuses to start.
  await rm(pidFile, { force: true });
}

async function isOrphanOf(client: pg.Client, { data, home }: Cluster): Promise<boolean> {
  try {
    const { rows } = await client.query<{ directory: string; free: boolean }>(
      "SELECT current_setting('data_directory') AS directory, pg_try_advisory_lock($1) AS free",
      [ownerLock],
    );
    if (rows[0]?.directory !== data) return false;
    if (!rows[0].free) throw new Error(`Another Formgate is running with the data in ${home}: stop it first.`);
    return true;
  } finally {
    await client.end();
  }
}

async function stopServer(cluster: Cluster): Promise<void> {
  const flags = ['stop', `--pgdata=${cluster.data}`, '--mode=fast', '--wait', '--timeout=30', '--silent'];
  const { code, text } = await run(cluster, cluster.binaries.pgCtl, flags);
  if (code !== 0 && (await stat(join(cluster.data, 'postmaster.pid')).catch(() => undefined))) {
    throw new Error(`Postgres did not stop: ${lastLine(text)}`);
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, ssl: false });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Runs a program as the account of Postgres, without the caller's PG* variables, which would redirect it. */
async function run(cluster: Cluster, program: string, flags: string[]): Promise<{ code: number | null; text: string }> {
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith('PG') && !name.startsWith('LC_'));
  const child: ChildProcess = spawn(program, flags, {
    cwd: cluster.home,
    env: { ...Object.fromEntries(environment), LC_ALL: 'C' },
    // Postgres inherits these from pg_ctl: a pipe would keep our end open for as long as the server runs.
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    ...(cluster.user && { uid: cluster.user.uid, gid: cluster.user.gid }),
  });
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('exit', done);
  });
  child.stdout?.destroy();
  child.stderr?.destroy();
  return { code, text };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** The command line of a process, empty where the system does not tell. */
async function commandOf(pid: number): Promise<string> {
  const fromKernel = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (fromKernel !== undefined) return fromKernel.replaceAll('\0', ' ');
  const child = spawn('ps', ['-o', 'command=', '-p', String(pid)], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await new Promise((done) => child.on('close', done).on('error', done));
  return text;
}

async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done, fail) => server.on('error', fail).listen(0, '127.0.0.1', done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  if (!address || typeof address === 'string') throw new Error('No free port.');
  return address.port;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
