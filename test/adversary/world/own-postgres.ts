// A Postgres server for one run. Its commits do not wait for the disk.
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { placePostgres, startPostgres } from '../../../dev/postgres/postgres.ts';

/** Starts a Postgres for `work`, and removes it afterwards, or when this process is ended. */
export async function withPostgres<T>(work: (administratorUrl: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'formgate-adversary-postgres-'));
  // If root runs this, Postgres runs as another account, which must be able to enter the folder.
  await chmod(folder, 0o755);
  const directory = join(folder, 'postgres');
  const settings = { fsync: 'off', synchronous_commit: 'off', max_connections: '200' };
  const postgres = await startPostgres({ directory, password: randomBytes(16).toString('hex'), settings });
  const stop = async () => {
    await postgres.stop();
    await rm(await placePostgres(directory), { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  };
  // Unlike the replicas, Postgres does not end with this process, so stop it on a signal.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stop().finally(() => process.exit(130)));
  try {
    return await work(postgres.url);
  } finally {
    await stop();
  }
}
