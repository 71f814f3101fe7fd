// Tests the cleanup of the platform server, with the stores that it uses and a real Postgres.
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { productVersion } from '../service/operations/product-version.ts';
import { createEventStore } from './events/store.ts';
import { createPlatformJobs } from './jobs.ts';
import { createDeliveryStore } from './notifications/deliveries-store.ts';
import { createJobQuarantine, dropSql, resumeDeliveriesSql, tidySql } from './notifications/job-quarantine.ts';
import { migrationsDirectory } from './start.ts';
import { migrateJobs } from './worker.ts';

const tables = ['event_keys', 'events', 'quarantine'] as const;
let database: TestDatabase;
let pool: pg.Pool;
let log: CapturedLog;

beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  await migrateJobs(pool, captureLog().log);
});
afterAll(() => database.drop());
beforeEach(async () => {
  log = captureLog();
  await pool.query(`TRUNCATE ${tables.join(', ')} CASCADE`);
});
afterEach(() => pool.query('DROP FUNCTION IF EXISTS refuse() CASCADE'));

const now = () => new Date();
const nothing = async () => undefined;
const createJobs = (events = createEventStore(pool), clock = now) =>
  createPlatformJobs({
    jobs: { routeEvent: async () => true, deliver: nothing },
    quarantine: createJobQuarantine({ pool, clock, log: log.log }),
    ...{ events, deliveries: createDeliveryStore(pool), clock, log: log.log, perTenant: 1 },
  });
const upkeep = (signal = new AbortController().signal) => createJobs().upkeep(signal);

/** Adds rows to each table that the cleanup removes, and one row to each table that it keeps. */
async function fill(rows: number): Promise<void> {
  await pool.query(
    `INSERT INTO event_keys (tenant, namespace, key, accepted)
     SELECT 't', 'n', 'old ' || n, now() - interval '31 days' FROM generate_series(1, ${rows}) n
     UNION ALL SELECT 't', 'n', 'new', now() - interval '29 days'`,
  );
  await pool.query(
    `INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted, routed)
     SELECT gen_random_uuid(), 't', 'n', 'e', now(), '{}'::jsonb, '{}'::json, now(), now() - interval '1 day'
       FROM generate_series(1, ${rows}) n
     UNION ALL SELECT gen_random_uuid(), 't', 'n', 'e', now(), '{}', '{}', now(), now()`,
  );
  await pool.query(
    `INSERT INTO quarantine (kind, item, about, reason, detail, first_seen, last_tried, attempts, version)
     SELECT 'event', '-1', '{}', 'rendering-failed', 'x', now(), now(), 1, '0'`,
  );
}

const left = async () => {
  const counts = tables.map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`);
  return (await pool.query(`SELECT ${counts.join(', ')}`)).rows[0];
};

/** Makes each statement fail that deletes more than `most` rows of the table. */
async function refuseDeletions(table: string, most: number): Promise<void> {
  await pool.query(`
    CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM removed) > TG_ARGV[0]::int THEN RAISE 'refused by the test'; END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER refuse AFTER DELETE ON ${table} REFERENCING OLD TABLE AS removed
      FOR EACH STATEMENT EXECUTE FUNCTION refuse(${most})`);
}

describe('the cleanup', () => {
  it('removes everything that has piled up, without a statement that removes very many rows', async () => {
    await fill(20_001);
    for (const table of ['event_keys', 'events']) await refuseDeletions(table, 10_000);
    await upkeep();
    expect(log.lines()).toEqual([]);
    expect(await left()).toEqual({ event_keys: 1, events: 1, quarantine: 0 });
  });

  it.each<[string, (typeof tables)[number], string]>([
    ['idempotency keys', 'event_keys', 'event-keys'],
    ['events', 'events', 'events'],
    ['quarantine entries', 'quarantine', 'quarantine'],
  ])('removes other rows although %s cannot be removed, which is logged', async (_what, table, step) => {
    await fill(1);
    const before = await left();
    await refuseDeletions(table, 0);
    await upkeep();
    expect(log.lines()).toMatchObject([{ level: 'warn', msg: 'job upkeep failed', step }]);
    expect(await left()).toEqual({ event_keys: 1, events: 1, quarantine: 0, [table]: before[table] });
  });

  it('keeps, once an hour, the newest idempotency keys of a tenant with too many, and those of others', async () => {
    const [loud, quiet] = ['a'.repeat(24), 'b'.repeat(24)];
    await pool.query(
      `INSERT INTO tenants (id, name, realm) VALUES ('${loud}', 'Loud', 'loud'), ('${quiet}', 'Quiet', 'quiet')`,
    );
    const add = () =>
      pool.query(`
        INSERT INTO event_keys (tenant, namespace, key, accepted)
        SELECT id, 'n', n, now() - n * interval '1 hour'
        FROM generate_series(1, 50) n, tenants WHERE name = 'Loud' OR n > 40
        ON CONFLICT DO NOTHING`);
    let minutes = 0;
    const jobs = createJobs(createEventStore(pool, undefined, 20), () => new Date(Date.now() + minutes * 60_000));
    const oldestOfLoud: number[] = [];
    for (minutes of [0, 58, 62]) {
      await add();
      await jobs.upkeep(new AbortController().signal);
      const { rows } = await pool.query(
        'SELECT tenant, min(key::int), max(key::int) FROM event_keys GROUP BY 1 ORDER BY 1',
      );
      expect(rows).toMatchObject([
        { tenant: loud, min: 1 },
        { tenant: quiet, min: 41, max: 50 },
      ]);
      oldestOfLoud.push(rows[0].max);
    }
    expect(oldestOfLoud).toEqual([20, 50, 20]);
  });

  it('removes no further rows once the process stops', async () => {
    await fill(1);
    await upkeep(AbortSignal.abort());
    expect(await left()).toMatchObject({ event_keys: 2, events: 2 });
  });
});

describe('a large quarantine', () => {
  async function planOf(sql: string, values: unknown[] = []): Promise<string> {
    const client = await pool.connect();
    try {
      await client.query('BEGIN; SET LOCAL enable_seqscan = off');
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${sql}`, values);
      return rows.map((row) => row['QUERY PLAN']).join('\n');
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }

  beforeEach(async () => {
    await pool.query(`
      INSERT INTO subscribers SELECT 's' || n, 't', null, 'Ana', now() FROM generate_series(1, 5000) n;
      WITH e AS (
        INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted)
        SELECT gen_random_uuid(), 't', 'n', 'e', now(), '{}', '{}', now() FROM generate_series(1, 5000) RETURNING sequence)
      INSERT INTO deliveries (event, type_id, subscriber_id, created, quarantined)
      SELECT sequence, 'u', 's1', now(), true FROM e;
      INSERT INTO quarantine (kind, item, about, reason, detail, first_seen, last_tried, attempts, version)
      SELECT 'delivery', concat_ws(':', event, type_id, subscriber_id),
        jsonb_build_object('event', event::text, 'typeId', type_id, 'subscriberId', subscriber_id), 'r', 'd', now(), now(), 1, '0'
      FROM deliveries LIMIT 10;
      ANALYZE`);
  });
  afterEach(() => pool.query('TRUNCATE subscribers CASCADE'));

  it('is cleaned up without reading all events and deliveries for each entry', async () => {
    const plan = await planOf(tidySql);
    expect(plan).toMatch(/using events_pkey[^\n]*\n *Index Cond: \(sequence = /);
    expect(plan).toMatch(/using deliveries_pkey[^\n]*\n *Index Cond: \(\(event = /);
  });

  it('loses old entries without reading all events and deliveries', async () => {
    const plan = await planOf(dropSql, [new Date(), 5_000]);
    expect(plan).toMatch(/using events_pkey[^\n]*\n *Index Cond: \(sequence = /);
    expect(plan).toMatch(/using deliveries_pkey[^\n]*\n *Index Cond: \(\(event = /);
  });

  it('is released without reading all deliveries', async () => {
    const about = JSON.stringify({ event: '1', typeId: 'u', subscriberId: 's1' });
    expect(await planOf(resumeDeliveriesSql, [[about]])).toMatch(/deliveries_pkey[^\n]*\n *Index Cond: \(\(event = /);
  });

  it('keeps an undelivered notice with its event for 30 days', async () => {
    await pool.query(`
      UPDATE events SET routed = now() - interval '1 day';
      UPDATE quarantine SET version = '${productVersion()}',
        first_seen = now() - interval '30 days' + CASE WHEN id IN (SELECT id FROM quarantine LIMIT 4)
          THEN -interval '1 minute' ELSE interval '1 minute' END;
      UPDATE quarantine SET released = true WHERE id IN (
        SELECT id FROM quarantine WHERE first_seen < now() - interval '30 days' LIMIT 1)`);
    // The second cleanup deletes the events without notices.
    await upkeep();
    await upkeep();
    expect(log.lines()).toMatchObject([{ notices: 3, events: 0, msg: 'quarantined items dropped' }]);
    expect(await left()).toEqual({ event_keys: 0, events: 4_997, quarantine: 7 });
  });

  it('loses the oldest items of a tenant with more than 5,000', async () => {
    await pool.query(`
      TRUNCATE quarantine;
      INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
      SELECT 'event', sequence::text, CASE WHEN n > 2 THEN 'loud' ELSE 'quiet' END, '{}', 'r', 'd',
        now() - interval '1 day' + n * interval '1 second', now(), 1, '${productVersion()}'
      FROM (SELECT sequence, row_number() OVER (ORDER BY sequence) AS n FROM events) AS numbered;
      INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted)
      SELECT gen_random_uuid(), 't', 'n', 'e', now(), '{}', '{}', now() FROM generate_series(1, 5);
      INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
      SELECT 'event', sequence::text, 'loud', '{}', 'r', 'd', now(), now(), 1, '${productVersion()}'
      FROM events ORDER BY sequence DESC LIMIT 5`);
    await upkeep();
    expect(log.lines()).toMatchObject([{ notices: 0, events: 3 }]);
    expect(await left()).toMatchObject({ quarantine: 5_002 });
  });

  it('keeps an event that cannot be routed for 30 days', async () => {
    await pool.query(`
      TRUNCATE quarantine;
      INSERT INTO quarantine (kind, item, about, reason, detail, first_seen, last_tried, attempts, version)
      SELECT 'event', sequence::text, '{}', 'r', 'd', now() - interval '30 days' + n * interval '1 minute', now(), 1,
        '${productVersion()}'
      FROM (SELECT sequence, row_number() OVER () - 2.5 AS n FROM events LIMIT 5) AS five`);
    await upkeep();
    expect(log.lines()).toMatchObject([{ notices: 0, events: 2 }]);
    expect(await left()).toEqual({ event_keys: 0, events: 4_998, quarantine: 3 });
  });

  it('keeps the entries of undelivered notices, and loses those of other notices', async () => {
    await pool.query(
      `DELETE FROM deliveries WHERE event IN (SELECT (about ->> 'event')::bigint FROM quarantine LIMIT 4)`,
    );
    await upkeep();
    expect(await left()).toMatchObject({ quarantine: 6 });
  });
});
