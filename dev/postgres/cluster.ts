// Runs the Postgres programs (such as pg_ctl) on one database cluster, and connects to its server.
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { codeOfError } from '../../src/service/error-code.ts';
import type { Binaries } from './binaries.ts';
import type { UnprivilegedUser } from './unprivileged-user.ts';

export interface Cluster {
  home: string;
  data: string;
  password: string;
  user: UnprivilegedUser | undefined;
  binaries: Binaries;
}

export const administrator = 'formgate';

/** Advisory lock that the owning process holds while it runs. A server whose lock is free is an orphan. */
export const ownerLock = 7_110_264;

export function databaseUrl({ password }: Cluster, port: number | string, name: string): string {
  return `postgres://${administrator}:${encodeURIComponent(password)}@127.0.0.1:${port}/${name}`;
}

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, ssl: false });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/**
 * Runs a program under the account that Postgres runs as. Omits the caller's PG* variables, which would change the
 * program's target.
 */
export async function run(
  cluster: Cluster,
  program: string,
  flags: string[],
): Promise<{ code: number | null; text: string }> {
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith('PG') && !name.startsWith('LC_'));
  const child = spawn(program, flags, {
    cwd: cluster.home,
    env: { ...Object.fromEntries(environment), LC_ALL: 'C' },
    // Postgres inherits the pipes from pg_ctl, so they stay open while the server runs: see destroy() below.
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    ...(cluster.user && { uid: cluster.user.uid, gid: cluster.user.gid }),
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('exit', done);
  });
  child.stdout.destroy();
  child.stderr.destroy();
  return { code, text };
}

export async function stopServer(cluster: Cluster): Promise<void> {
  // A server that is recovering from a crash may ignore the stop mode `fast`. After a stop with `immediate`, the server
  // recovers at its next start.
  for (const mode of ['fast', 'immediate']) {
    const flags = ['stop', `--pgdata=${cluster.data}`, `--mode=${mode}`, '--wait', '--timeout=15', '--silent'];
    const { code, text } = await run(cluster, cluster.binaries.pgCtl, flags);
    if (code === 0) return;
    const [pid] = (await readFile(join(cluster.data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
    // The server had already ended.
    if (!pid || !isAlive(Number(pid))) return;
    if (mode === 'immediate') throw new Error(`Postgres did not stop: ${lastLine(text)}`);
  }
}

/** True if a process has this id. After the original process has ended, another process may have got the same id. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOfError(error) === 'EPERM';
  }
}

export function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
