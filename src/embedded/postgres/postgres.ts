// Runs the embedded Postgres in a folder of its own: creates it, starts it and stops it. Two runs never share a folder.
import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../listen.ts';
import { findBinaries, openFolder } from './binaries.ts';
import { administrator, type Cluster, connect, databaseUrl, lastLine, ownerLock, run, stopServer } from './cluster.ts';
import { stopOrphan } from './orphan.ts';
import { findUnprivilegedUser, isOpenToAll } from './unprivileged-user.ts';

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

/** Removes the Postgres in `directory` with all its data. Throws if a run uses it. */
export async function removePostgres(options: { directory: string; password: string }): Promise<void> {
  const user = await findUnprivilegedUser();
  const home = await placePostgres(options.directory);
  const binaries = await findBinaries(user);
  await stopOrphan({ home, data: join(home, 'data'), password: options.password, user, binaries });
  await rm(home, { recursive: true, force: true });
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
  const urlOf = (name: string) => databaseUrl(cluster, port, name);
  const owner = await connect(urlOf('postgres'));
  await owner.query('SELECT pg_advisory_lock($1)', [ownerLock]);
  let stopping = false;
  const failed = new Promise<void>((fail) => {
    owner.on('end', () => {
      if (!stopping) fail();
    });
  });
  return {
    url: urlOf('postgres'),
    databaseUrl: urlOf,
    ensureDatabase: async (name) => {
      const { rowCount } = await owner.query('SELECT FROM pg_database WHERE datname = $1', [name]);
      if (rowCount === 0) await owner.query(`CREATE DATABASE ${owner.escapeIdentifier(name)}`);
      return urlOf(name);
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
