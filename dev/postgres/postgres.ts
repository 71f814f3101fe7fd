// Creates, starts and removes the embedded Postgres of a folder. Refuses a folder that another run uses.
import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../ports.ts';
import { findBinaries, openFolder } from './binaries.ts';
import { administrator, type Cluster, lastLine, run, stopServer } from './cluster.ts';
import { stopOrphan } from './orphan.ts';
import { type EmbeddedPostgres, takeOwnership } from './ownership.ts';
import { findUnprivilegedUser, isOpenToAll } from './unprivileged-user.ts';

/**
 * Starts Postgres on a free port of 127.0.0.1 with its files in `directory`. If this process runs as root and the
 * account that Postgres runs as cannot enter that folder, the files are in `/var/lib/formgate/<hash>`. Throws if
 * another run uses the folder. `settings` are server settings, such as `fsync: 'off'`.
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
  if (!(await isCluster(cluster))) await createCluster(cluster);
  const port = await launch(cluster, options.settings ?? {});
  return takeOwnership(cluster, port).catch(async (error: unknown) => {
    await stopServer(cluster).catch(() => undefined);
    throw error;
  });
}

/** Removes the Postgres in `directory` with all its data. Throws if a run uses it. */
export async function removePostgres(options: { directory: string; password: string }): Promise<void> {
  const user = await findUnprivilegedUser();
  const home = await placePostgres(options.directory);
  const binaries = await findBinaries(user);
  await stopOrphan({ home, data: join(home, 'data'), password: options.password, user, binaries });
  await rm(home, { recursive: true, force: true });
}

/** Returns the folder for Postgres's files: `directory`, or a folder in `/var/lib/formgate` (see `startPostgres`). */
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
  // The process id makes the folder's name unique. If an earlier start was killed, its initdb may still be writing to
  // another such folder.
  const unfinished = join(cluster.home, `data.unfinished.${process.pid}`);
  const passwordFile = join(cluster.home, 'password');
  await removeUnfinished(cluster);
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

async function removeUnfinished({ home }: Cluster): Promise<void> {
  for (const name of await readdir(home))
    if (name.startsWith('data.unfinished'))
      await rm(join(home, name), { recursive: true, force: true }).catch(() => undefined);
}

/** True if initdb has completed. Deletes an empty folder, which a crash of the machine can leave. */
async function isCluster({ data }: Cluster): Promise<boolean> {
  const files = await readdir(data).catch(() => []);
  if (files.length === 0) await rm(data, { recursive: true, force: true });
  return files.length > 0;
}

/** Starts the Postgres server and returns its port. */
async function launch(cluster: Cluster, settings: Record<string, string>): Promise<number> {
  const log = join(cluster.home, 'log');
  let reason = '';
  // The loop retries the start for two reasons. Another program may take the port before Postgres does. Children of a
  // killed postmaster can block the start until their statements end, which takes 15 s at most.
  for (let attempt = 0; attempt < 8; attempt += 1) {
    if (attempt > 0) await sleep(700 * attempt);
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
