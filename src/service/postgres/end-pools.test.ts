// Tests the end of connection pools with a real Postgres.
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { endPools } from './end-pools.ts';

it('a stop does not wait for a slow statement of background work, because the process must stop in time', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const observer = new pg.Client({ connectionString: database.url });
  await observer.connect();
  onTestFinished(() => observer.end());
  const [busy, idle] = [1, 2].map(() => new pg.Pool({ connectionString: database.url })) as [pg.Pool, pg.Pool];
  await idle.query('SELECT');
  const cancelled = expect(busy.query('SELECT pg_sleep(600)')).rejects.toMatchObject({ code: '57014' });
  const sleeping = `FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`;
  await expect.poll(async () => (await observer.query(`SELECT ${sleeping}`)).rowCount).toBe(1);
  await endPools([busy, idle]);
  expect([busy.ended, idle.ended]).toEqual([false, true]);
  await observer.query(`SELECT pg_cancel_backend(pid) ${sleeping}`);
  await cancelled;
  await expect.poll(() => busy.ended).toBe(true);
});
