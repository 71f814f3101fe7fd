// Tests broken connections, transactions, and the problems that clients get for database errors. Uses a real Postgres:
// the tests terminate its connections, block statements and make it unreachable.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { startApp } from '../../../test/support/listening-app.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { createTestDatabase, cutDatabase, restoreDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { startTcpGate, type TcpGate } from '../../../test/support/tcp-gate.ts';
import { anonymous, route } from '../http/http-app.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createPool, databaseProblem, withTransaction } from './postgres.ts';

let database: TestDatabase;
let pool: pg.Pool;
const metrics = createMetrics();
const { log, lines } = captureLog();

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, size: 4, log, metrics });
  await pool.query('CREATE TABLE things (name text PRIMARY KEY, n int NOT NULL DEFAULT 0 CHECK (n >= 0), data jsonb)');
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function failureOf(work: Promise<unknown>): Promise<Error> {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (error instanceof Error) return error;
  throw new Error('nothing failed');
}

const problemOf = async (work: Promise<unknown>) => databaseProblem(await failureOf(work));
const names = async () =>
  (await pool.query<{ name: string }>('SELECT name FROM things ORDER BY name')).rows.map(({ name }) => name);

async function terminate(pid: number): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('SELECT pg_terminate_backend($1)', [pid]);
  await client.end();
}

const pidOf = async (client: pg.PoolClient) =>
  (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid ?? 0;

describe('a connection that falls silent', () => {
  /** Limit for the silence of a connection in milliseconds: longer than a statement takes, even on a busy machine. */
  const silence = 1_500;
  let gate: TcpGate;
  let gated: pg.Pool;
  beforeAll(async () => {
    const url = new URL(database.url);
    gate = await startTcpGate(Number(url.port));
    url.port = String(gate.port);
    url.hostname = '127.0.0.1';
    gated = createPool({ url: url.href, size: 1, silence: { suspicious: silence, longest: silence }, log, metrics });
  });
  afterAll(async () => {
    await gated.end();
    await gate.close();
  });

  it('is closed while a statement waits, also in a transaction; the next statement gets another', async () => {
    for (const ask of [
      () => gated.query('SELECT 1'),
      () => withTransaction(gated, (client) => client.query('SELECT 1')),
    ]) {
      await gated.query('SELECT 1');
      gate.freeze();
      expect((await problemOf(ask()))?.status).toBe(503);
      await gate.open();
      expect((await gated.query('SELECT 2 AS two')).rows).toEqual([{ two: 2 }]);
    }
  });

  it('is kept while it is idle, between the statements of a transaction, and during many of them', async () => {
    const pid = async () => (await gated.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
    const before = await pid();
    await delay(silence + 400);
    await withTransaction(gated, async (client) => {
      await client.query('SELECT 1');
      await delay(silence + 400);
      await client.query('SELECT 1');
    });
    await Promise.all([1, 2, 3].map(() => gated.query('SELECT pg_sleep(0.6)')));
    expect(await pid()).toBe(before);
  });
});

describe('a transaction', () => {
  it('commits when its work resolves and rolls back when it throws', async () => {
    await withTransaction(pool, (client) => client.query("INSERT INTO things VALUES ('kept')"));
    const failure = await failureOf(
      withTransaction(pool, async (client) => {
        await client.query("INSERT INTO things VALUES ('dropped')");
        throw new Error('changed my mind');
      }),
    );
    expect([failure.message, await names()]).toEqual(['changed my mind', ['kept']]);
  });

  it('whose connection is terminated while idle fails as unavailable, and the process continues', async () => {
    const work = withTransaction(pool, async (client) => {
      await client.query("INSERT INTO things VALUES ('lost')");
      await terminate(await pidOf(client));
      await delay(100);
      await client.query('SELECT 1');
    });
    expect((await problemOf(work))?.status).toBe(503);
    expect(await names()).not.toContain('lost');
    expect((await pool.query('SELECT 1')).rowCount).toBe(1);
  });

  it('whose connection is terminated during a statement fails as unavailable, and the connection is not used again', async () => {
    let pid = 0;
    const work = withTransaction(pool, async (client) => {
      pid = await pidOf(client);
      setTimeout(() => void terminate(pid), 100);
      await client.query('SELECT pg_sleep(5)');
    });
    const problem = await problemOf(work);
    expect([problem?.slug, problem?.headers['Retry-After']]).toEqual(['unavailable', '5']);
    const clients = await Promise.all([1, 2, 3, 4].map(() => pool.connect()));
    expect(await Promise.all(clients.map(pidOf))).not.toContain(pid);
    for (const client of clients) client.release();
  });

  it('returns its connection after success and after failure', async () => {
    for (let attempt = 0; attempt < 20; attempt += 1)
      await withTransaction(pool, async (client) => {
        await client.query('SELECT 1');
        if (attempt % 2) throw new Error('x');
      }).catch(() => undefined);
    expect([pool.waitingCount, pool.totalCount - pool.idleCount]).toEqual([0, 0]);
  });
});

describe('an idle connection that breaks', () => {
  it('is replaced, counted and logged', async () => {
    const client = await pool.connect();
    const pid = await pidOf(client);
    client.release();
    await terminate(pid);
    await expect.poll(() => lines().map(({ msg }) => msg)).toContain('idle Postgres connection broke');
    expect((await pool.query('SELECT 1')).rowCount).toBe(1);
    expect(await metrics.registry.metrics()).toContain(
      'formgate_dependency_failures_total{dependency="postgres",kind="connection"}',
    );
    expect(lines()).toContainEqual(expect.objectContaining({ level: 'warn', msg: 'idle Postgres connection broke' }));
  });
});

// The tests run concurrently, because each of the first two waits for 5 s.
describe.concurrent('a database error gives the client', () => {
  it('503 if nothing listens', async () => {
    const nowhere = createPool({ url: 'postgres://a@127.0.0.1:1/a', log, metrics });
    onTestFinished(() => nowhere.end());
    expect((await problemOf(nowhere.query('SELECT 1')))?.status).toBe(503);
    await expect(nowhere.query('SELECT 1')).rejects.toThrow();
  });

  it('503 if the host has several addresses, and all of them refuse the connection', async () => {
    const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    const socket = connect({ host: 'db', port: 1, lookup: (_host, _options, found) => found(null, addresses) });
    const [refused] = await once(socket, 'error').catch((error: unknown) => [error]);
    expect(refused).toBeInstanceOf(AggregateError);
    expect(databaseProblem(refused)).toMatchObject({ slug: 'unavailable', status: 503 });
  });

  it('503 if the host is unknown, or the role, the database or the password is wrong', async () => {
    const url = (change: (url: URL) => void) => {
      const changed = new URL(database.url);
      change(changed);
      return changed.href;
    };
    const urls = [
      url((u) => (u.hostname = 'nowhere.invalid')),
      url((u) => (u.username = 'nobody')),
      url((u) => (u.pathname = '/nothing')),
      url((u) => (u.password = 'wrong')),
    ];
    for (const wrong of urls) {
      const misconfigured = createPool({ url: wrong, log, metrics });
      expect((await problemOf(misconfigured.query('SELECT 1')))?.status).toBe(503);
      await misconfigured.end();
    }
  });

  it('503 if the server accepts connections and never responds', async () => {
    const silent = createServer((socket) => void socket.resume());
    const waiting = createPool({ url: `postgres://a@127.0.0.1:${await listenOnLoopback(silent)}/a`, log, metrics });
    onTestFinished(() => waiting.end());
    expect((await problemOf(waiting.query('SELECT 1')))?.status).toBe(503);
    silent.close();
  });

  it('503 if all connections are in use for 5 s', async () => {
    const small = createPool({ url: database.url, size: 1, log, metrics });
    const client = await small.connect();
    expect((await problemOf(small.query('SELECT 1')))?.status).toBe(503);
    client.release();
    await small.end();
    expect((await problemOf(small.query('SELECT 1')))?.status).toBe(503);
  });

  it('503 for a statement timeout, a lock timeout, a deadlock and a standby', async () => {
    const client = await pool.connect();
    expect((await problemOf(client.query("SET statement_timeout = '50ms'; SELECT pg_sleep(2)")))?.status).toBe(503);
    await client.query('RESET statement_timeout');
    const holder = await pool.connect();
    await holder.query('BEGIN; LOCK TABLE things');
    expect((await problemOf(client.query("SET lock_timeout = '50ms'; SELECT * FROM things")))?.status).toBe(503);
    await holder.query('ROLLBACK');
    expect((await problemOf(client.query("BEGIN READ ONLY; INSERT INTO things VALUES ('x')")))?.status).toBe(503);
    client.release(true);
    holder.release(true);
    let locked = 0;
    const bothLocked = Promise.withResolvers<void>();
    const deadlock = Promise.all(
      ['a', 'b'].map((first, index) =>
        withTransaction(pool, async (one) => {
          await one.query("SET LOCAL deadlock_timeout = '50ms'");
          await one.query('SELECT pg_advisory_xact_lock(hashtext($1))', [first]);
          locked += 1;
          if (locked === 2) bothLocked.resolve();
          await bothLocked.promise;
          await one.query('SELECT pg_advisory_xact_lock(hashtext($1))', [['b', 'a'][index]]);
        }),
      ),
    );
    expect((await problemOf(deadlock))?.status).toBe(503);
  });

  it('400 for a value that Postgres cannot store', async () => {
    for (const [sql, value] of [
      ['INSERT INTO things (name) VALUES ($1)', 'a\0b'],
      ["INSERT INTO things (name, data) VALUES ('j', $1)", '{"a":"\\u0000"}'],
      ["INSERT INTO things (name, data) VALUES ('j', $1)", '{"a":"\\ud800"}'],
      ["INSERT INTO things (name, data) VALUES ('j', $1)", `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ] as const)
      expect((await problemOf(pool.query(sql, [value])))?.status).toBe(400);
  });

  it('neither of these statuses for a defect: a violated constraint, a missing table, a syntax error', async () => {
    await pool.query("INSERT INTO things VALUES ('taken')");
    for (const sql of [
      "INSERT INTO things VALUES ('taken')",
      "INSERT INTO things VALUES ('x', -1)",
      'SELECT * FROM nothing',
      'SELEC 1',
    ])
      expect(await problemOf(pool.query(sql))).toBeUndefined();
    expect(databaseProblem(new Error('x'))).toBeUndefined();
    expect(databaseProblem('ECONNREFUSED')).toBeUndefined();
    // EPERM for a file is unexpected; EPERM for a connection means that a network policy forbids it.
    const forbidden = (syscall: string) => Object.assign(new Error('EPERM'), { code: 'EPERM', syscall });
    expect(databaseProblem(forbidden('open'))).toBeUndefined();
    expect(databaseProblem(forbidden('connect'))).toMatchObject({ status: 503 });
  });
});

it('a route returns 503 with Retry-After while its database is stopped, counts it, and recovers', async () => {
  const own = await createTestDatabase();
  onTestFinished(() => own.drop());
  const ownPool = createPool({ url: own.url, log, metrics });
  onTestFinished(() => ownPool.end());
  const app = await startApp([
    route({
      method: 'get',
      path: '/now',
      summary: 'The time of the database',
      guards: [anonymous],
      responses: { 200: { description: 'Fine' } },
      async handle(_input, _request, response) {
        response.json((await ownPool.query('SELECT now()')).rows);
      },
    }),
  ]);
  onTestFinished(() => app.close());
  expect((await fetch(`${app.url}/now`)).status).toBe(200);
  await cutDatabase(own.url);
  const down = await fetch(`${app.url}/now`);
  expect([down.status, down.headers.get('retry-after')]).toEqual([503, '5']);
  expect(await down.json()).toMatchObject({ type: 'urn:formgate:problem:unavailable' });
  expect(await app.metrics.registry.metrics()).toContain(
    'formgate_dependency_failures_total{dependency="postgres",kind="request"} 1',
  );
  await restoreDatabase(own.url);
  expect((await fetch(`${app.url}/now`)).status).toBe(200);
});
