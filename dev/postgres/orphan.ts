// Cleans up after a run that was killed: stops an orphaned Postgres, or removes a stale postmaster.pid. A process is
// stopped only if it is the Postgres of this folder and no running Formgate owns it.
import { spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type Cluster, connect, databaseUrl, isAlive, ownerLock, stopServer } from './cluster.ts';

/** Milliseconds that Postgres may take to notice that a killed owner has disconnected. */
const ownerExitTime = 3_000;

/**
 * Stops the server in this folder if it is an orphan: a server that no running Formgate owns. Throws if a running
 * Formgate owns it.
 */
export async function stopOrphan(cluster: Cluster): Promise<void> {
  const pidFile = join(cluster.data, 'postmaster.pid');
  const [pid, , , port] = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
  // A crash of the machine can leave an empty pid file. Postgres does not start while the pid file is empty.
  if (!pid) return rm(pidFile, { force: true });
  const begun = Date.now();
  for (const deadline = begun + 15_000; isAlive(Number(pid)); await sleep(100)) {
    const client = await connect(databaseUrl(cluster, port ?? '', 'postgres')).catch(() => undefined);
    if (client) {
      const found = await describe(client).finally(() => client.end());
      if (found?.directory !== cluster.data) break;
      if (found.isFree) return stopServer(cluster);
      // Postgres takes a moment to notice that a killed owner has disconnected, so this error is thrown only after a
      // wait.
      if (Date.now() > begun + ownerExitTime)
        throw new Error(`Another Formgate is running with the data in ${cluster.home}. Stop it first.`);
      continue;
    }
    // Either Postgres is starting or stopping, or the process id now belongs to another program. Waiting helps only in
    // the first case.
    if (!(await commandOf(Number(pid))).includes(cluster.data)) break;
    if (Date.now() > deadline)
      throw new Error(`The Postgres in ${cluster.home} does not respond. Stop process ${pid}.`);
  }
  // Postgres refuses to start while the pid file contains the id of a running process.
  await rm(pidFile, { force: true });
}

/** Returns the data folder of the server. `isFree` is true if no Formgate holds the owner's lock. */
async function describe(client: pg.Client): Promise<{ directory: string; isFree: boolean } | undefined> {
  const { rows } = await client.query<{ directory: string; isFree: boolean }>(
    `SELECT current_setting('data_directory') AS directory, pg_try_advisory_lock($1) AS "isFree"`,
    [ownerLock],
  );
  return rows[0];
}

/** Returns the command line of a process, or an empty text if the system does not provide it. */
async function commandOf(pid: number): Promise<string> {
  const fromKernel = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (fromKernel !== undefined) return fromKernel.replaceAll('\0', ' ');
  const child = spawn('ps', ['-o', 'command=', '-p', String(pid)], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await new Promise((done) => child.on('close', done).on('error', done));
  return text;
}
