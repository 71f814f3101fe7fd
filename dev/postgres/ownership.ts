// Holds a running Postgres for as long as this process lives: by a connection with an advisory lock, which is how a later
// start tells an orphan from a server in use. A crashed backend makes the postmaster end all connections and recover;
// the lock is then taken again.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { type Cluster, connect, databaseUrl, ownerLock, stopServer } from './cluster.ts';

export interface EmbeddedPostgres {
  /** Of the database `postgres`, with the administrator's name and password. */
  url: string;
  databaseUrl(name: string): string;
  /** Creates the database unless it is there, and answers its URL. */
  ensureDatabase(name: string): Promise<string>;
  /** Resolves when Postgres has ended by itself; not while it recovers from a crash of a backend, and not after `stop`. */
  failed: Promise<void>;
  stop(): Promise<void>;
}

/** Milliseconds that the recovery after a crash may take. */
const longestRecovery = 60_000;

export async function takeOwnership(cluster: Cluster, port: number): Promise<EmbeddedPostgres> {
  const urlOf = (name: string) => databaseUrl(cluster, port, name);
  const failure = Promise.withResolvers<void>();
  let stopping = false;
  let owner = await own(urlOf('postgres'));

  function watch(): void {
    owner.once('end', () => {
      if (!stopping) void recover().then(watch, () => failure.resolve());
    });
  }

  async function recover(): Promise<void> {
    for (const deadline = Date.now() + longestRecovery; !stopping; await delay(200)) {
      try {
        owner = await own(urlOf('postgres'));
        return;
      } catch (error) {
        // A postmaster that recovers says so. One that refuses connections is gone.
        if (isRefused(error) || Date.now() > deadline) throw error;
      }
    }
  }

  watch();
  return {
    url: urlOf('postgres'),
    databaseUrl: urlOf,
    async ensureDatabase(name) {
      const { rowCount } = await owner.query('SELECT FROM pg_database WHERE datname = $1', [name]);
      if (rowCount === 0) await owner.query(`CREATE DATABASE ${owner.escapeIdentifier(name)}`);
      return urlOf(name);
    },
    failed: failure.promise,
    async stop() {
      if (stopping) return;
      stopping = true;
      await owner.end().catch(() => undefined);
      await stopServer(cluster);
    },
  };
}

/** A connection that holds the lock of the owner. */
async function own(url: string): Promise<pg.Client> {
  const owner = await connect(url);
  try {
    await owner.query('SELECT pg_advisory_lock($1)', [ownerLock]);
    return owner;
  } catch (error) {
    await owner.end().catch(() => undefined);
    throw error;
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
