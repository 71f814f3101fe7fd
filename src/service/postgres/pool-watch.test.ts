// Tests when a pool counts as broken. A proxy in front of a real Postgres can leave connections open but dead, refuse
// connections, or freeze.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { startTcpGate, type TcpGate } from '../../../test/support/tcp-gate.ts';
import { createMetrics } from '../operations/metrics.ts';
import { type PoolWatch, type PoolWatchOptions, watchPool } from './pool-watch.ts';
import { createPool } from './postgres.ts';

const size = 3;
let database: TestDatabase;
let gate: TcpGate;
let pool: pg.Pool;
let watch: PoolWatch;
let isUp: boolean[];
beforeEach(async () => {
  database = await createTestDatabase();
  gate = await startTcpGate(Number(new URL(database.url).port));
});
afterEach(async () => {
  watch.stop();
  await gate.open();
  await pool.end();
  await gate.close();
  await database.drop();
});

async function start(options: Partial<PoolWatchOptions> = {}): Promise<void> {
  const url = new URL(database.url);
  url.host = `127.0.0.1:${gate.port}`;
  pool = createPool({ url: url.href, size, log: captureLog().log, metrics: createMetrics() });
  isUp = [];
  const onChecked = (value: boolean) => void isUp.push(value);
  watch = watchPool({ pool, url: url.href, onChecked, interval: 50, patience: 500, ...options });
  await Promise.all(Array.from({ length: size }, () => pool.query('SELECT pg_sleep(0.05)')));
}

/** Returns the distinct results of the watch during `milliseconds`. */
async function problemsDuring(milliseconds: number): Promise<(string | undefined)[]> {
  const seen = new Set<string | undefined>();
  for (const end = performance.now() + milliseconds; performance.now() < end; await delay(20))
    seen.add(watch.problem());
  return [...seen];
}

describe('a pool', () => {
  it('whose connections hang while new ones work is broken until they are replaced', async () => {
    await start({ patience: 2_500 });
    expect(watch.problem()).toBeUndefined();
    gate.strand();
    await expect.poll(() => watch.problem()).toContain('a new connection to Postgres works');
    await expect.poll(() => watch.problem()).toBeUndefined();
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(isUp).not.toContain(false);
  });

  it.each([
    ['are refused', 'shut'],
    ['hang', 'freeze'],
  ] as const)('reports Postgres as down while new connections %s, and is not broken itself', async (_how, fault) => {
    await start();
    await expect.poll(() => isUp.at(-1)).toBe(true);
    await gate[fault]();
    await expect.poll(() => isUp.at(-1)).toBe(false);
    isUp.length = 0;
    await expect.poll(() => isUp.length).toBeGreaterThan(3);
    expect(isUp).not.toContain(true);
    expect(watch.problem()).toBeUndefined();
    await gate.open();
    await expect.poll(() => isUp.at(-1)).toBe(true);
  });

  it('with every connection waiting for a lock and a queue of requests is not broken', async () => {
    await start();
    await pool.query('CREATE TABLE things (n int)');
    const holder = await pool.connect();
    await holder.query('BEGIN; LOCK TABLE things');
    const waiting = Array.from({ length: size + 5 }, () => pool.query('SELECT * FROM things'));
    expect(await problemsDuring(1_600)).toEqual([undefined]);
    await holder.query('COMMIT');
    holder.release();
    await Promise.all(waiting);
  });

  it('whose connections never come back is broken', async () => {
    await start({ longestSilence: 500 });
    const lost = await Promise.all(Array.from({ length: size }, () => pool.connect()));
    await expect.poll(() => watch.problem()).toContain('the connection pool fails');
    for (const client of lost) client.release();
    await expect.poll(() => watch.problem()).toBeUndefined();
  });

  it('that becomes full after hours without requests is not broken', async () => {
    await start({ interval: 3_600_000, longestSilence: 500 });
    watch.stop();
    await delay(700);
    const lent = await Promise.all(Array.from({ length: size }, () => pool.connect()));
    watch = watchPool({ pool, url: database.url, interval: 20, longestSilence: 500 });
    expect(await problemsDuring(300)).toEqual([undefined]);
    for (const client of lent) client.release();
  });

  it.each(['shut', 'freeze'] as const)('is not broken while Postgres is down: %s', async (fault) => {
    await start();
    await gate[fault]();
    expect(await problemsDuring(1_600)).toEqual([undefined]);
    await gate.open();
    await expect
      .poll(() =>
        pool.query('SELECT 1').then(
          ({ rowCount }) => rowCount,
          () => 0,
        ),
      )
      .toBe(1);
    expect(await problemsDuring(300)).toEqual([undefined]);
  });
});
