// Owns a Postgres server while this process runs, through a connection that holds an advisory lock. The lock tells a
// later start that the server is in use. If a Postgres backend crashes, Postgres ends all connections; this process
// then connects and takes the lock again.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { codeOfError } from '../../src/service/error-code.ts';
import { type Cluster, connect, databaseUrl, ownerLock, stopServer } from './cluster.ts';

export interface EmbeddedPostgres {
  /** URL of the database `postgres`, with the administrator's name and password. */
  url: string;
  databaseUrl(name: string): string;
  /** Creates the database if it does not exist, and returns its URL. */
  ensureDatabase(name: string): Promise<string>;
  /**
   * Resolves when Postgres has ended unexpectedly, or does not recover from a backend's crash within 60 s. Does not
   * resolve after `stop`.
   */
  failed: Promise<void>;
  stop(): Promise<void>;
}

/** Milliseconds that Postgres may take to recover from the crash of a backend. */
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
    for (const deadline = Date.now() + longestRecovery; !stopping; await sleep(200)) {
      try {
        owner = await own(urlOf('postgres'));
        return;
      } catch (error) {
        // During a recovery, the postmaster accepts connections but rejects sessions. A refused connection means that
        // the postmaster has ended.
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

/** Opens the connection that holds the owner's lock. */
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
  return codeOfError(error) === 'ECONNREFUSED';
}
