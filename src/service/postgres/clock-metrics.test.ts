// Tests the metric that compares clocks, with a real Postgres.
import pg from 'pg';
import prom from 'prom-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createClockMetrics } from './clock-metrics.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Returns the exported value for a process whose clock is ahead by some milliseconds, and ends the pool afterwards. */
async function exported({ ahead, isUp = true }: { ahead: number; isUp?: boolean }): Promise<number | undefined> {
  const registry = new prom.Registry();
  const pool = new pg.Pool({ connectionString: database.url });
  createClockMetrics({ registry, pool, clock: () => new Date(Date.now() + ahead) });
  if (!isUp) await pool.end();
  const [, value] = /^formgate_clock_offset_seconds (\S+)$/m.exec(await registry.metrics()) ?? [];
  if (isUp) await pool.end();
  return value === undefined ? undefined : Number(value);
}

it.each([0, 60, -60])('exports that the clock of the process is %i s ahead of that of Postgres', async (seconds) => {
  const value = (await exported({ ahead: seconds * 1_000 })) ?? Number.NaN;
  // The query may take a while on a busy machine, and only makes the difference smaller.
  expect(Math.abs(value)).toBeLessThanOrEqual(Math.abs(seconds) + 0.1);
  expect(Math.abs(value)).toBeGreaterThan(Math.abs(seconds) - 20);
  expect(Math.sign(value)).toBe(Math.sign(seconds));
});

it('exports nothing while Postgres cannot be read', async () => {
  expect(await exported({ ahead: 60_000, isUp: false })).toBeUndefined();
});
