// Tests counts towards the limits of the intake application, with concurrent requests and with a pod that stalls.
import type pg from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createPool } from '../../service/postgres/postgres.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { createApplyStore, type Limit } from './store.ts';

const tenant = 'tenant';
const start = new Date(Date.UTC(2030, 0, 1));
let database: TestDatabase;
let pool: pg.Pool;
const open = (url = database.url) => createPool({ url, size: 5, log: captureLog().log, metrics: createMetrics() });

beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  pool = open();
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const limit = (name: string, key: string, most: number, amount = 1): Limit => ({
  ...{ name, key: Buffer.from(key), most, amount },
});
const used = async (key: string) =>
  (await pool.query<{ used: number }>('SELECT used FROM apply_counts WHERE key = $1', [Buffer.from(key)])).rows[0]
    ?.used;

it('a pod that stalls after it has counted does not keep other pods from counting', async () => {
  const stalling = open();
  const [stalled, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  stalling.on('connect', (client) => {
    const query: (text: string, values?: unknown[]) => Promise<pg.QueryResult> = client.query.bind(client);
    const stall: typeof query = async (text, values) => {
      const result = await query(text, values);
      if (text.includes('apply_counts')) {
        stalled.resolve();
        await resumed.promise;
      }
      return result;
    };
    Object.assign(client, { query: stall });
  });
  const limits = [limit('total', 'stalling', 10)];
  const first = createApplyStore(unsharedPool(stalling)).count(tenant, limits, start);
  onTestFinished(async () => {
    resumed.resolve();
    await Promise.allSettled([first]);
    await stalling.end();
  });
  await stalled.promise;
  expect(await createApplyStore(unsharedPool(pool)).count(tenant, limits, start)).toBeUndefined();
  resumed.resolve();
  expect([await first, await used('stalling')]).toEqual([undefined, 2]);
});

it('of two concurrent requests for the last place, one is refused and uses up nothing of its other limits', async () => {
  // The requests wait for a lock until both have begun, however long that takes.
  const patient = open(`${database.url}?options=${encodeURIComponent('-c lock_timeout=0')}`);
  onTestFinished(() => patient.end());
  const store = createApplyStore(unsharedPool(patient));
  const shared = limit('shared', 'last place', 2);
  await store.count(tenant, [shared], start);
  const holder = await pool.connect();
  onTestFinished(() => holder.release());
  await holder.query('BEGIN');
  await holder.query('SELECT FROM apply_counts WHERE key = $1 FOR UPDATE', [shared.key]);
  const requests = ['one', 'two'].map((key) =>
    store.count(tenant, [limit('address', key, 5), shared, limit('zone', key, 5)], start),
  );
  const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(2);
  await holder.query('COMMIT');
  const [one, two] = await Promise.all(requests);
  expect([one, two].sort()).toEqual(['shared', undefined]);
  expect(await used('last place')).toBe(2);
  const { rows } = await pool.query(
    'SELECT name, sum(used)::int AS used FROM apply_counts WHERE key = ANY ($1) GROUP BY name ORDER BY name',
    [['one', 'two'].map((key) => Buffer.from(key))],
  );
  expect(rows).toEqual([
    { name: 'address', used: 1 },
    { name: 'zone', used: 1 },
  ]);
});

it('a request that is larger than a limit is refused, and counts nothing', async () => {
  const store = createApplyStore(unsharedPool(pool));
  expect(await store.count(tenant, [limit('address', 'large', 9), limit('total', 'large total', 3, 4)], start)).toBe(
    'total',
  );
  expect([await used('large'), await used('large total')]).toEqual([undefined, undefined]);
});

it('of several limits that are reached, the first is named', async () => {
  const store = createApplyStore(unsharedPool(pool));
  const limits = [limit('retry', 'full', 1), limit('address', 'full too', 1)];
  expect(await store.count(tenant, limits, start)).toBeUndefined();
  expect(await store.count(tenant, limits, start)).toBe('retry');
  expect(await store.count(tenant, limits.toReversed(), start)).toBe('address');
});
