// Tests the order in which the events of several tenants are routed.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createPool } from '../../service/postgres/postgres.ts';
import { migrationsDirectory } from '../start.ts';
import { migrateJobs } from '../worker.ts';
import { createEventStore } from './store.ts';

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;

beforeAll(async () => {
  const log = captureLog().log;
  database = await createTestDatabase(migrationsDirectory);
  pool = createPool({ url: database.url, name: 'requests', size: 2, log, metrics: createMetrics('platform-server') });
  await migrateJobs(pool, log);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

it('a tenant with many waiting events does not delay the events of another tenant', async () => {
  const events = createEventStore(pool);
  const accept = (tenant: string) =>
    events.accept(
      { tenant, namespace: 'form-service', name: 'form-locked', occurred: new Date(), context: {}, payload: {} },
      new Date(),
    );
  for (let nth = 0; nth < 50; nth += 1) await accept('loud');
  await accept('quiet');
  // The order in which graphile-worker takes the jobs.
  const { rows } = await pool.query<{ tenant: string }>(
    `SELECT e.tenant FROM graphile_worker._private_jobs j JOIN events e ON e.sequence::text = j.payload ->> 'event'
     ORDER BY j.priority, j.run_at, j.id`,
  );
  const ahead = rows.findIndex(({ tenant }) => tenant === 'quiet');
  expect(rows).toHaveLength(51);
  expect(ahead).toBeLessThanOrEqual(10);
});
