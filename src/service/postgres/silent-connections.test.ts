// Tests dead connections that both ends still consider open, because a proxy keeps them open but passes nothing on.
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../../../test/faults/fault-proxy.ts';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createPool, databaseProblem } from './postgres.ts';

const size = 4;
let database: TestDatabase;
let proxy: FaultProxy;
let pool: pg.Pool;
let url: URL;

beforeEach(async () => {
  database = await createTestDatabase();
  url = new URL(database.url);
  proxy = await startFaultProxy(Number(url.port));
  url.port = String(proxy.port);
  url.hostname = '127.0.0.1';
  const silence = { suspicious: 400, longest: 20_000 };
  pool = createPool({ url: url.href, size, silence, log: captureLog().log, metrics: createMetrics() });
  // Opens all connections of the pool.
  await pids();
});

afterEach(async () => {
  await proxy.close();
  await pool.end();
  await database.drop();
});

/** Takes all connections of the pool at the same time, and returns their process ids. */
async function pids(): Promise<Set<number | undefined>> {
  const clients = await Promise.all(Array.from({ length: size }, () => pool.connect()));
  const found = await Promise.all(
    clients.map((client) => client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')),
  );
  for (const client of clients) client.release();
  return new Set(found.map(({ rows }) => rows[0]?.pid));
}

describe('when all connections of a pool are half-open', () => {
  it('a statement fails as unavailable within seconds, and then every connection is new', async () => {
    proxy.strand();
    const stopwatch = startStopwatch();
    const failure = await pool.query('SELECT 1').catch((error: unknown) => error);
    expect(databaseProblem(failure)?.status).toBe(503);
    // If Postgres were not asked over a new connection, the statement would wait for 20 s.
    expect(stopwatch.stop()).toBeLessThan(10_000);
    // The idle connections were checked as soon as the first dead connection was found.
    await expect.poll(() => pool.totalCount).toBeLessThanOrEqual(1);
    const again = startStopwatch();
    await Promise.all(Array.from({ length: size }, () => pool.query('SELECT 1')));
    expect(again.stop()).toBeLessThan(5_000);
  });

  it('other pools of the process notice it, too, before a statement uses them', async () => {
    const options = { url: url.href, size: 1, log: captureLog().log, metrics: createMetrics() };
    const other = createPool(options);
    await other.query('SELECT 1');
    proxy.strand();
    await expect(pool.query('SELECT 1')).rejects.toThrow('does not respond');
    await expect.poll(() => other.totalCount).toBe(0);
    await other.end();
  });

  it('a transaction between two statements is found as well', async () => {
    const client = await pool.connect();
    client.on('error', () => undefined);
    await client.query('BEGIN');
    proxy.strand();
    await expect(client.query('SELECT 1')).rejects.toThrow('does not respond');
    client.release(true);
  });
});

it('a silent connection is closed at its limit if Postgres does not respond to the check on another connection either', async () => {
  const silence = { suspicious: 400, longest: 2_000 };
  const other = createPool({ url: url.href, size: 1, silence, log: captureLog().log, metrics: createMetrics() });
  await other.query('SELECT 1');
  proxy.set({ lost: 'both' });
  const stopwatch = startStopwatch();
  await expect(other.query('SELECT 1')).rejects.toThrow('does not respond');
  // Five checks in sequence, each with 400 ms of silence and a query without a response for 2 s, would take 12 s.
  expect(stopwatch.stop()).toBeLessThan(8_000);
  await proxy.heal();
  await other.end();
});

describe('a connection is kept', () => {
  it('while Postgres works on a long statement, or waits for a lock', async () => {
    await pool.query('CREATE TABLE things (n int)');
    const before = await pids();
    const holder = await pool.connect();
    await holder.query('BEGIN');
    await holder.query('LOCK TABLE things');
    const waiting = pool.query('SELECT count(*) FROM things');
    expect((await pool.query<{ slept: string }>('SELECT pg_sleep(3)::text AS slept')).rows).toHaveLength(1);
    await holder.query('COMMIT');
    holder.release();
    await waiting;
    expect(await pids()).toEqual(before);
  });

  it('while Postgres cannot be asked', async () => {
    const long = pool.query('SELECT pg_sleep(2)');
    const sql = `SELECT FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(2)'`;
    await expect.poll(async () => (await pool.query(sql)).rowCount, { interval: 20 }).toBe(1);
    proxy.set({ lost: 'both' });
    setTimeout(() => void proxy.heal(), 1_500);
    expect((await long).rows).toHaveLength(1);
  });
});
