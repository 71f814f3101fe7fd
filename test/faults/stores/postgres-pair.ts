// A Postgres primary with a standby that confirms each commit, behind one address. A failover stops the primary without
// a checkpoint, promotes the standby, moves the address to it, and starts a new standby.
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { findBinaries } from '../../../dev/postgres/binaries.ts';
import { type Cluster, run, stopServer } from '../../../dev/postgres/cluster.ts';
import type { EmbeddedPostgres } from '../../../dev/postgres/ownership.ts';
import { placePostgres, startPostgres } from '../../../dev/postgres/postgres.ts';
import { findUnprivilegedUser } from '../../../dev/postgres/unprivileged-user.ts';
import { until } from '../../support/until.ts';
import { type FaultProxy, startFaultProxy } from '../fault-proxy.ts';

export interface PostgresPair {
  /** The administrator's URL. Its address always leads to the primary. */
  url: string;
  /** Resolves when the new primary serves and has a standby again. */
  failOver(): Promise<void>;
  close(): Promise<void>;
}

interface Node {
  cluster: Cluster;
  server: EmbeddedPostgres;
  directory: string;
}

const settings = {
  fsync: 'off',
  max_connections: '200',
  wal_keep_size: '512MB',
  shared_buffers: '64MB',
  wal_receiver_timeout: '5s',
  hot_standby: 'on',
};

export async function startPostgresPair(): Promise<PostgresPair> {
  const folder = await mkdtemp(join(tmpdir(), 'formgate-faults-postgres-'));
  // If root runs this process, Postgres runs as another account, which must be able to enter the folder.
  await chmod(folder, 0o755);
  const password = randomBytes(16).toString('hex');
  let count = 0;

  async function start(prepare: (cluster: Cluster) => Promise<void>): Promise<Node> {
    count += 1;
    const directory = join(folder, `node-${count}`);
    const [user, home] = [await findUnprivilegedUser(), await placePostgres(directory)];
    const cluster = { home, data: join(home, 'data'), password, user, binaries: await findBinaries(user) };
    await prepare(cluster);
    return { cluster, directory, server: await startPostgres({ directory, password, settings }) };
  }

  const addStandby = async (to: Node): Promise<Node> => {
    const standby = await start((cluster) => copy(to, cluster));
    await waitForStandby(to);
    return standby;
  };

  let primary = await start(async () => undefined);
  let standby = await addStandby(primary);
  const address: FaultProxy = await startFaultProxy(portOf(primary));
  const url = new URL(primary.server.url);
  url.port = String(address.port);

  const remove = async ({ server, cluster, directory }: Node) => {
    await server.stop();
    await rm(cluster.home, { recursive: true, force: true });
    await rm(await placePostgres(directory), { recursive: true, force: true });
  };
  return {
    url: url.href,
    async failOver() {
      const old = primary;
      await kill(old.cluster);
      await query(standby.server.url, 'SELECT pg_promote(true, 30)');
      [primary] = [standby];
      address.retarget(portOf(primary));
      await remove(old);
      standby = await addStandby(primary);
    },
    async close() {
      await address.close();
      // The primary is removed first, because a primary without a standby would wait for the confirmation of its last
      // commits.
      for (const node of [primary, standby]) await remove(node);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const portOf = ({ server }: Node) => Number(new URL(server.url).port);

async function query(url: string, ...statements: string[]): Promise<pg.QueryResult[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const results: pg.QueryResult[] = [];
    for (const statement of statements) results.push(await client.query(statement));
    return results;
  } finally {
    await client.end();
  }
}

/** Makes a base backup without pg_basebackup, which is not part of the embedded Postgres. */
async function copy(from: Node, { home, data, user }: Cluster): Promise<void> {
  const client = new pg.Client({ connectionString: from.server.url });
  await client.connect();
  try {
    await mkdir(home, { recursive: true, mode: 0o700 });
    if (user) await chown(home, user.uid, user.gid);
    await client.query("SELECT pg_backup_start('standby', true)");
    const { code, text } = await run({ ...from.cluster, home: '/' }, '/bin/sh', [
      '-c',
      // Postgres may remove a file during the copy. This is not an error, because the write-ahead log has the file's
      // contents.
      `cp -a '${from.cluster.data}' '${data}'; rm -f '${data}/postmaster.pid' '${data}/postmaster.opts'; test -f '${data}/PG_VERSION'`,
    ]);
    if (code !== 0) throw new Error(`Postgres was not copied: ${text}`);
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    const { port, username, password } = new URL(from.server.url);
    const source = `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=standby`;
    const automatic = join(data, 'postgresql.auto.conf');
    const own = { mode: 0o600 };
    await writeFile(join(data, 'backup_label'), rows[0]?.labelfile ?? '', own);
    await writeFile(join(data, 'standby.signal'), '', own);
    const kept = (await readFile(automatic, 'utf8')).replaceAll(
      /^(primary_conninfo|synchronous_standby_names).*$/gm,
      '',
    );
    await writeFile(automatic, `${kept}\nprimary_conninfo = '${source}'\n`, own);
    if (user)
      await run({ ...from.cluster, home: '/', user: undefined }, '/bin/chown', ['-R', `${user.uid}:${user.gid}`, home]);
  } finally {
    await client.end();
  }
}

/** Waits until the standby streams. From then on, a commit returns only when the standby has confirmed it. */
async function waitForStandby({ server }: Node): Promise<void> {
  await until('the standby streams', async () => {
    const [result] = await query(server.url, "SELECT FROM pg_stat_replication WHERE state = 'streaming'");
    return result?.rowCount === 1;
  });
  await query(server.url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'", 'SELECT pg_reload_conf()');
}

/** Stops a server as a crash would: without a checkpoint, and with open connections. */
async function kill(cluster: Cluster): Promise<void> {
  const flags = ['stop', `--pgdata=${cluster.data}`, '--mode=immediate', '--wait', '--timeout=15', '--silent'];
  const { code } = await run(cluster, cluster.binaries.pgCtl, flags);
  if (code !== 0) await stopServer(cluster);
}
