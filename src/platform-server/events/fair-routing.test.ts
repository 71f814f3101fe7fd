// Tests the order in which the events of several tenants are routed, and how many events a tenant may have.
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { migrationsDirectory } from '../start.ts';
import { migrateJobs } from '../worker.ts';
import { createEventStore } from './store.ts';

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  const log = captureLog().log;
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  await migrateJobs(pool, log);
});
afterAll(() => database.drop());

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

describe('a tenant with 10,000 waiting events and notices', () => {
  const events = () => createEventStore(pool);
  const eventOf = (tenant: string, key?: string, payload = {}) => ({
    ...{ tenant, namespace: 'form-service', name: 'form-locked', occurred: new Date(), payload },
    context: key === undefined ? {} : { idempotencyKey: key },
  });
  const accept = (tenant: string, key?: string, payload?: object) =>
    events().accept(eventOf(tenant, key, payload as Record<string, unknown>), new Date());
  const large = { text: 'x'.repeat(70_000) };

  beforeAll(async () => {
    await pool.query(`
      INSERT INTO subscribers VALUES ('s', 'full', null, 'Ana', now());
      INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted, routed)
      SELECT gen_random_uuid(), 'full', 'n', 'e', now(), '{}', '{}', now(), CASE WHEN n > 4000 THEN now() END
      FROM generate_series(1, 9999) n;
      INSERT INTO deliveries (event, type_id, subscriber_id, created, tenant)
      SELECT sequence, 'u', 's', now(), tenant FROM events WHERE tenant = 'full' AND routed IS NOT NULL`);
  });

  it('may send no further ones until some are delivered; other tenants may', async () => {
    expect(await accept('full', 'last')).toBe('stored');
    expect([await accept('full', 'beyond'), await accept('full')]).toEqual(['full', 'full']);
    // A repetition needs no place, and a refused event leaves no key.
    expect([await accept('full', 'last'), await accept('full', 'beyond')]).toEqual(['repeated', 'full']);
    expect(await accept('other')).toBe('stored');
    await pool.query(`DELETE FROM deliveries WHERE event = (SELECT min(event) FROM deliveries)`);
    expect(await accept('full', 'beyond')).toBe('stored');
    expect(await accept('full')).toBe('full');
  });

  it('may still change its configuration, which causes events', async () => {
    expect(await events().accept(eventOf('full'), new Date(), true)).toBe('stored');
  });

  it('may send events again if its notices are in quarantine', async () => {
    await pool.query(
      `UPDATE deliveries SET quarantined = true WHERE event IN (SELECT event FROM deliveries LIMIT 4000)`,
    );
    expect(await accept('full')).toBe('stored');
  });

  it('may send large events only while it has fewer than 2,000', async () => {
    expect(await accept('full', undefined, large)).toBe('full');
    expect(await accept('other', undefined, large)).toBe('stored');
  });
});
