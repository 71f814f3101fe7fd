// Tests subscriptions to notices while another request deletes the subscriber, with a real Postgres.
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { systemClock } from '../../service/clock.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { migrationsDirectory } from '../start.ts';
import { createSubscriberStore } from './subscribers-store.ts';
import { createSubscribing, type Subscribing } from './subscribing.ts';

let database: TestDatabase;
let pool: pg.Pool;
let subscribing: Subscribing;

beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  subscribing = createSubscribing({
    tenantPool: { transaction: (_tenant, work) => withTransaction(pool, work) },
    clock: systemClock,
    findOrCreate: (transaction) => createSubscriberStore(transaction).findOrCreate,
  });
});
afterAll(() => database.drop());

const criterion = { correlationId: 'form:1' };
const requests: [string, () => Promise<unknown>][] = [
  ['a new subscription', () => subscribing.subscribe('t', 'u', { id: 'ana', channels: [], criteria: criterion })],
  ['a new criterion', () => subscribing.addOrReplace('t', 'u', 'ana', criterion)],
];

it.each(requests)('%s of a subscriber that a concurrent request deletes gets 404', async (_name, request) => {
  await pool.query(`INSERT INTO subscribers VALUES ('ana', 't', null, 'Ana', now())`);
  const other = new pg.Client({ connectionString: database.url });
  await other.connect();
  try {
    await other.query(`BEGIN; DELETE FROM subscribers WHERE id = 'ana'`);
    const outcome = request().catch((error: unknown) => error);
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await expect.poll(async () => (await other.query(waiting)).rowCount, { interval: 20 }).toBe(1);
    await other.query('COMMIT');
    expect(await outcome).toMatchObject({ slug: 'not-found' });
  } finally {
    await other.end();
  }
});
