// Tests the routing of an event in pages of subscribers, with a real Postgres. The pages of the tests are small.
import type pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { createEventStore } from '../events/store.ts';
import { migrationsDirectory } from '../start.ts';
import { migrateJobs } from '../worker.ts';
import { createDeliveryStore } from './deliveries-store.ts';
import { createDeliveryJobs, type DeliveryOptions } from './delivery.ts';
import type { NotificationType } from './notification-type.ts';
import { createSubscriberStore } from './subscribers-store.ts';

const tenant = '65f0c2a9e4b0a1d2c3f4a5b6';
let database: TestDatabase;
let pool: pg.Pool;

beforeEach(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  await migrateJobs(pool, captureLog().log);
});
afterEach(() => database.drop());

const typeOf = (id: string) =>
  ({ id, name: id, channels: ['email'], events: [{ namespace: 'f', name: 'e', templates: {} }] }) as NotificationType;

/** Routes the event, with pages of three subscribers. */
function route(event: string): Promise<boolean> {
  const jobs = createDeliveryJobs({
    ...{ pool, clock: systemClock, metrics: createMetrics('test'), routingPage: 3 },
    typesOf: async () => new Map(['u', 'v'].map((id) => [id, typeOf(id)])),
  } as unknown as DeliveryOptions);
  return jobs.routeEvent(event);
}

async function addSubscriber(id: string, typeId: string, correlationId?: string): Promise<void> {
  await pool.query(`INSERT INTO subscribers VALUES ($1, $2, null, 'Ana', now()) ON CONFLICT DO NOTHING`, [id, tenant]);
  await pool.query('INSERT INTO subscriptions VALUES ($1, $2, $3, $4)', [id, typeId, tenant, !correlationId]);
  if (!correlationId) return;
  await pool.query(
    `INSERT INTO subscription_criteria (subscriber_id, type_id, tenant, correlation_id, context)
     VALUES ($1, $2, $3, $4, '{}'), ($1, $2, $3, $4, '{"definitionId": "permit"}')`,
    [id, typeId, tenant, correlationId],
  );
}

async function addEvent(): Promise<string> {
  const { rows } = await pool.query<{ sequence: string }>(
    `INSERT INTO events (id, tenant, namespace, name, occurred, correlation_id, context, payload, accepted)
     VALUES (gen_random_uuid(), $1, 'f', 'e', now(), 'form:1', '{"definitionId": "permit"}', '{}', now())
     RETURNING sequence`,
    [tenant],
  );
  return rows[0]?.sequence ?? '';
}

const deliveries = async () =>
  (
    await pool.query<{ key: string }>(
      `SELECT type_id || ' ' || subscriber_id AS key FROM deliveries ORDER BY type_id, subscriber_id`,
    )
  ).rows.map(({ key }) => key);
const jobs = async () => (await pool.query(`SELECT FROM graphile_worker.jobs WHERE key LIKE 'deliver:%'`)).rowCount;
const unrouted = async () => (await pool.query('SELECT FROM events WHERE routed IS NULL')).rowCount;
const finish = (event: string, subscriberId: string) =>
  withTransaction(pool, (client) => createDeliveryStore(client).finish({ event, typeId: 'u', subscriberId }));

/** Makes each statement fail that creates more than three deliveries, or one for the subscriber `refused`. */
const limitStatements = (refused = '') =>
  pool.query(`
    CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM made) > 3 OR EXISTS (SELECT FROM made WHERE subscriber_id = '${refused}')
      THEN RAISE 'refused by the test'; END IF;
      RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER refuse AFTER INSERT ON deliveries REFERENCING NEW TABLE AS made
      FOR EACH STATEMENT EXECUTE FUNCTION refuse()`);

it('an event reaches each of very many subscribers once, without a statement that creates very many deliveries', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await addSubscriber(id, 'u');
  for (const id of ['h', 'i']) await addSubscriber(id, 'u', 'form:1');
  await addSubscriber('j', 'u', 'form:2');
  for (const id of ['a', 'b', 'k', 'l']) await addSubscriber(id, 'v');
  await limitStatements();
  await route(await addEvent());
  const reached = [...'abcdefghi'].map((id) => `u ${id}`).concat([...'abkl'].map((id) => `v ${id}`));
  expect([await deliveries(), await jobs(), await unrouted()]).toEqual([reached, reached.length, 0]);
});

it('a retry of the routing does not repeat notices that are delivered already', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e']) await addSubscriber(id, 'u');
  const event = await addEvent();
  await limitStatements('e');
  await expect(route(event)).rejects.toThrow('refused by the test');
  expect([await deliveries(), await unrouted()]).toEqual([['u a', 'u b', 'u c'], 1]);
  for (const id of ['a', 'b', 'c']) await finish(event, id);
  await limitStatements();
  await route(event);
  expect([await deliveries(), await unrouted()]).toEqual([['u d', 'u e'], 0]);
});

it('an event whose notices are all delivered before its routing ends is deleted', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await addSubscriber(id, 'u');
  const event = await addEvent();
  await limitStatements('d');
  await expect(route(event)).rejects.toThrow('refused by the test');
  for (const id of ['a', 'b', 'c']) await finish(event, id);
  await pool.query("DELETE FROM subscribers WHERE id = 'd'");
  await route(event);
  expect((await pool.query('SELECT FROM events')).rowCount).toBe(0);
});

it('a delivered notice does not wait for the routing of its event, because a second attempt would send it again', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await addSubscriber(id, 'u');
  const event = await addEvent();
  await limitStatements('d');
  await expect(route(event)).rejects.toThrow('refused by the test');
  await withTransaction(pool, async (routing) => {
    await createEventStore(routing).lockUnrouted(event);
    await finish(event, 'a');
  });
  expect(await deliveries()).toEqual(['u b', 'u c']);
});

it('a subscriber with very many pending notices is removed with a limited number of their jobs', async () => {
  await addSubscriber('ana', 'u');
  await pool.query(
    `WITH e AS (
       INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted, routed)
       SELECT gen_random_uuid(), $1, 'f', 'e', now(), '{}', '{}', now(), now() FROM generate_series(1, 1200)
       RETURNING sequence)
     INSERT INTO deliveries (event, type_id, subscriber_id, created) SELECT sequence, 'u', 'ana', now() FROM e`,
    [tenant],
  );
  await pool.query(`
    SELECT graphile_worker.add_job('deliver', '{}', job_key => concat_ws(':', 'deliver', event, type_id, subscriber_id))
    FROM deliveries`);
  expect(await createSubscriberStore(pool).remove(tenant, 'ana')).toBe(true);
  expect(await deliveries()).toEqual([]);
  expect(await jobs()).toBe(200);
});

const fill = (count: number) =>
  pool.query(
    `WITH e AS (
       INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted, routed)
       SELECT gen_random_uuid(), $1, 'f', 'e', now(), '{}', '{}', now(), now() FROM generate_series(1, $2)
       RETURNING sequence)
     INSERT INTO deliveries (event, type_id, subscriber_id, created, tenant)
     SELECT sequence, 'u', 'a', now(), $1 FROM e`,
    [tenant, count],
  );

it('while a tenant has very many notices, its events are routed one after another, in pages', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await addSubscriber(id, 'u');
  await fill(1);
  const [first, second] = [await addEvent(), await addEvent()];
  await fill(10_000);
  // Notices of earlier events are not delivered yet.
  expect([await route(first), await route(second)]).toEqual([false, false]);
  await pool.query('DELETE FROM deliveries WHERE event < $1', [first]);
  expect([await route(second), await route(first)]).toEqual([false, false]);
  const routed = async () => (await deliveries()).filter((one) => one !== 'u a').length;
  expect(await routed()).toBe(2);
  expect(await route(first)).toBe(false);
  for (const page of ['abc', 'def', 'g']) {
    for (const id of page) await finish(first, id);
    expect(await route(first)).toBe(page === 'g' || page === 'def');
  }
  expect(await route(second)).toBe(false);
});
