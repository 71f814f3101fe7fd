// Tests which errors close a pooled connection. The error of a broken connection must close the connection. The error
// of a refused statement must leave it open.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createPool, withTransaction } from './postgres.ts';
import { createSharedPool } from './shared-pool.ts';

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;
const metrics = createMetrics();
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, size: 1, log: captureLog().log, metrics });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const pid = async () => (await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;

it.each([
  ['a value that Postgres cannot store', 'SELECT $1::text', ['\u0000']],
  ['a syntax error', 'SELEC 1', []],
  ['a statement timeout', 'SET LOCAL statement_timeout = 10; SELECT pg_sleep(1)', undefined],
])('%s keeps the connection', async (_name, sql, values) => {
  const shared = createSharedPool({
    ...{ pool, size: 1, name: `test of ${sql}`, metrics },
    details: { busy: 'busy', locked: 'locked' },
  });
  const requester = { tenant: 't', member: 'm' };
  const before = await pid();
  await expect(pool.query(sql, values)).rejects.toThrow();
  await expect(shared.query(requester, sql, values ?? [])).rejects.toThrow();
  await expect(withTransaction(pool, (client) => client.query(sql, values))).rejects.toThrow();
  expect(await pid()).toBe(before);
});

it.each(['query', 'transaction'])('a connection to a standby is replaced: %s', async (kind) => {
  const shared = createSharedPool({
    ...{ pool, size: 1, name: `standby ${kind}`, metrics, details: { busy: 'busy', locked: 'locked' } },
  });
  const requester = { tenant: 't', member: 'm' };
  const before = await pid();
  // The error of a standby, raised by hand, because the server of this test is not a standby.
  const sql = "DO $$ BEGIN RAISE 'read-only' USING ERRCODE = '25006'; END $$";
  const failing =
    kind === 'query'
      ? shared.query(requester, sql, [])
      : shared.transaction(requester, (client) => client.query(sql).then(() => undefined));
  await expect(failing).rejects.toThrow();
  expect(await pid()).not.toBe(before);
});

it('a terminated connection is replaced', async () => {
  const before = await pid();
  await expect(pool.query('SELECT pg_terminate_backend(pg_backend_pid())')).rejects.toThrow();
  expect(await pid()).not.toBe(before);
});

it('a failure in this process, which may leave a statement half sent, closes the connection', async () => {
  const before = await pid();
  const value = {
    toPostgres: () => {
      throw new Error('no text');
    },
  };
  await expect(pool.query('SELECT $1::text', [value])).rejects.toThrow('no text');
  expect(await pid()).not.toBe(before);
});
