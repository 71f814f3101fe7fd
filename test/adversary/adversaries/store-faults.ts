// Faults of the shared stores: lost connections, an outage of Postgres, a restart of Redis. Requests that need the
// store may get 503 during the fault. No data is lost, and no one is signed out.
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '@redis/client';
import pg from 'pg';
import { type Adversary, type Attack, isStoreFault } from './adversary.ts';

const recovery = 3_000;

export const terminatedConnections: Adversary = {
  name: 'terminated-connections',
  about: 'pg_terminate_backend of every connection, repeatedly',
  excuses: isStoreFault,
  recovery,
  run: (attack) =>
    asAdministrator(attack, async (client) => {
      while (!attack.signal.aborted) {
        await terminateAll(client, attack);
        await delay(attack.random.integer(50, 1_200));
      }
    }),
};

/** Requests of live sessions, which the token handler serves without Postgres. */
const needNoPostgres = ['target GET', 'target POST', 'upload', 'download', 'events'];

export const databaseOutage: Adversary = {
  name: 'database-outage',
  about: 'Postgres refuses every connection for some seconds',
  excuses: (failure) => isStoreFault(failure) && !needNoPostgres.includes(failure.kind),
  recovery,
  run: (attack) =>
    asAdministrator(attack, async (client) => {
      const allow = async (isAllowed: boolean) => {
        for (const name of attack.addresses.databases.names)
          await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS ${isAllowed}`);
      };
      try {
        await allow(false);
        await terminateAll(client, attack);
        await delay(5_000, undefined, { signal: attack.signal }).catch(() => undefined);
      } finally {
        await allow(true);
      }
    }),
};

export const redisRestarts: Adversary = {
  name: 'redis-restarts',
  about: 'Redis is shut down and restarted',
  // The token handler may end an event stream while it cannot check in Redis whether the stream's session is alive. The
  // browser then reconnects.
  excuses: (failure) => isStoreFault(failure) || (failure.kind === 'events' && !failure.isWrong),
  recovery,
  async run({ addresses, random, signal }) {
    while (!signal.aborted) {
      const client = createClient({
        socket: { host: '127.0.0.1', port: addresses.redisPort, reconnectStrategy: false },
      });
      client.on('error', () => undefined);
      await client.connect().then(
        () => client.sendCommand(['SHUTDOWN']).catch(() => undefined),
        () => undefined,
      );
      client.destroy();
      await delay(random.integer(2_000, 4_000), undefined, { signal }).catch(() => undefined);
    }
  },
};

async function asAdministrator({ addresses }: Attack, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: addresses.databases.administrator });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

async function terminateAll(client: pg.Client, { addresses }: Attack): Promise<void> {
  const sql = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ANY($1)';
  await client.query(sql, [addresses.databases.names]);
}
