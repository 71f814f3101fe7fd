// Tests lists that Postgres ends, because it reads too many forms to find those that match the criteria.
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { formMigrations } from '../expiry/migrations.ts';
import { createFormList, type FormListQuery } from './list-store.ts';

let database: TestDatabase;
let pool: pg.Pool;
let holder: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  pool = new pg.Pool({ connectionString: database.url, max: 1, options: '-c statement_timeout=100ms' });
  holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await pool.end();
  await database.drop();
});

const query: FormListQuery = {
  ...{ tenantId: 't', criteria: { lastAccessedBefore: new Date(0) }, top: 25, includeData: false },
  ...{ sortBy: 'created', sortDirection: 'desc', includeTotal: false },
};

it.each([false, true])(
  'a list that takes too long says how to narrow it, and frees its connection (total: %s)',
  async (total) => {
    const list = createFormList(unsharedPool(pool));
    // The list waits for the table, which takes as long as many forms.
    await holder.query('BEGIN; LOCK TABLE forms');
    const failure = await list({ ...query, includeTotal: total }).catch((error: unknown) => error);
    await holder.query('COMMIT');
    expect(failure).toMatchObject({ status: 503, slug: 'busy', detail: expect.stringContaining('createDateAfter') });
    // Waits for the only connection. On a busy machine, an empty list may take more than 100 ms.
    await pool.query("SET statement_timeout = '60s'");
    expect((await list({ ...query, includeTotal: total })).forms).toEqual([]);
    await pool.query("SET statement_timeout = '100ms'");
  },
);
