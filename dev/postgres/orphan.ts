// What a run that was killed leaves behind: a Postgres without a parent, or the trace of one. A process is only ever
// stopped when it proves to be the Postgres of this folder, and to belong to no run that is still alive.
import { spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { type Cluster, connect, databaseUrl, isAlive, ownerLock, stopServer } from './cluster.ts';

/** Milliseconds. */
const longestGoodbye = 3_000;

/** Stops the orphan, if there is one. Throws when the server in this folder belongs to a run that is alive. */
export async function stopOrphan(cluster: Cluster): Promise<void> {
  const pidFile = join(cluster.data, 'postmaster.pid');
  const [pid, , , port] = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
  // Postgres refuses to start over an empty file, as a crash of the machine leaves it.
  if (!pid) return rm(pidFile, { force: true });
  const begun = Date.now();
  for (const deadline = begun + 15_000; isAlive(Number(pid)); await delay(100)) {
    const client = await connect(databaseUrl(cluster, port ?? '', 'postgres')).catch(() => undefined);
    if (client) {
      const found = await describe(client).finally(() => client.end());
      if (found?.directory !== cluster.data) break;
      if (found.isFree) return stopServer(cluster);
      // Postgres needs a moment to notice that a killed owner has gone.
      if (Date.now() > begun + longestGoodbye)
        throw new Error(`Another Formgate is running with the data in ${cluster.home}: stop it first.`);
      continue;
    }
    // Starting, stopping, or another program that was given the same process id: only the first two may be waited for.
    if (!(await commandOf(Number(pid))).includes(cluster.data)) break;
    if (Date.now() > deadline)
      throw new Error(`A Postgres runs in ${cluster.home} and does not answer: stop process ${pid}.`);
  }
  // Postgres itself takes a process with its old id, of the same account, for a running server, and refuses to start.
  await rm(pidFile, { force: true });
}

/** The data folder of the server, and whether nobody holds the lock of its owner. */
async function describe(client: pg.Client): Promise<{ directory: string; isFree: boolean } | undefined> {
  const { rows } = await client.query<{ directory: string; isFree: boolean }>(
    `SELECT current_setting('data_directory') AS directory, pg_try_advisory_lock($1) AS "isFree"`,
    [ownerLock],
  );
  return rows[0];
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
