// Tests the plan of the list of subscriptions, with a real Postgres. A large tenant shares the tables with a small one.
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { migrationsDirectory } from '../start.ts';
import { createSubscriptionStore } from './subscriptions-store.ts';

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  await pool.query(`
    INSERT INTO subscribers
    SELECT 's' || n, CASE WHEN n % 1000 = 0 THEN 'small' ELSE 'large' END, null, 'Ana', now() FROM generate_series(1, 20000) n;
    INSERT INTO subscriptions SELECT id, 'u', tenant, false FROM subscribers;
    INSERT INTO subscription_criteria (subscriber_id, type_id, tenant, correlation_id, context)
    SELECT id, 'u', tenant, 'form:' || id, '{}' FROM subscribers;
    ANALYZE`);
});
afterAll(() => database.drop());

/** Lists subscriptions, and returns the number of pages (8 KiB) that Postgres read for it. */
async function pagesRead(tenant: string, match: { correlationId: string } | undefined): Promise<number> {
  let read = Number.NaN;
  const explained = {
    async query(sql: string, values: unknown[]) {
      const { rows } = await pool.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`, values);
      const { Plan: plan } = rows[0]['QUERY PLAN'][0];
      read = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      return { rows: [] };
    },
  } as unknown as Queryable;
  await createSubscriptionStore(explained).list(tenant, 'u', { top: 10, after: 's1', match });
  return read;
}

it.each(['small', 'large'])('a page of a %s tenant is read without the subscriptions of others', async (tenant) => {
  expect(await pagesRead(tenant, undefined)).toBeLessThan(200);
  expect(await pagesRead(tenant, { correlationId: 'form:s2000' })).toBeLessThan(200);
});
