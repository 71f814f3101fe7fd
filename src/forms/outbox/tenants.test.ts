// Tests that neither rows that always fail nor a backlog of one tenant delay the rows of other tenants. Postgres, the
// platform clients and the HTTP server are real. The waits after failures are those of production.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase, type Sink, startSink } from '../../../test/support/outbox.ts';
import {
  startTestDispatcher,
  type TestDispatcher,
  type TestDispatcherOptions,
} from '../../../test/support/outbox-dispatcher.ts';
import { PlatformError } from '../../platform/platform-error.ts';

const [bad, worse, good] = ['bad', 'worse', 'good'].map(
  (name) => `urn:example:platform:tenant-service:v2:/tenants/${name}`,
);
/**
 * Maximum number of attempts for failing rows between the insertion of a row and its delivery: one for each of 200 rows
 * that were due before it, and 128 for the rows that the queue has claimed already. Unlike a time, this number does not
 * depend on the speed of the machine. A queue that stops makes few attempts, but exceeds the time for all deliveries.
 */
const mostAttempts = 200 + 128;

let database: OutboxDatabase;
let sink: Sink;
let dispatcher: TestDispatcher | undefined;
/** The forms whose rows always fail. */
let failing: Set<string>;
/** Number of attempts for failing rows so far. */
let attempts: number;
/** Number of attempts at the time of the delivery for each form. */
let delivered: Map<string, number>;

beforeEach(async () => {
  database = await createOutboxDatabase();
  sink = await startSink();
  failing = new Set();
  attempts = 0;
  delivered = new Map();
  sink.answer(({ body }) => {
    const { formId } = body.context as { formId: string };
    if (failing.has(formId)) {
      attempts += 1;
      return { status: 500 };
    }
    delivered.set(formId, attempts);
    return undefined;
  });
});

afterEach(async () => {
  await dispatcher?.stop();
  await sink.close();
  await database.close();
});

function start(options: Partial<TestDispatcherOptions> = {}): void {
  const retry = { service: { first: 1_000, cap: 30_000 }, row: { first: 5_000, cap: 300_000 } };
  const pace = { retry, outage: { first: 1_000, cap: 30_000 } };
  dispatcher = startTestDispatcher({ databaseUrl: database.url, sinkUrl: sink.url, pace, ...options });
}

async function addFailing(count: number, tenantId: string | undefined): Promise<void> {
  for (let added = 0; added < count; added += 1) {
    const form = await database.addForm({ tenantId });
    failing.add(form);
    await database.addRow(form, 'form-created');
  }
}

/** Adds a row every 100 ms. Returns for each row the number of attempts for failing rows until its delivery. */
async function attemptsBefore(tenantId: string | undefined, count: number): Promise<number[]> {
  const added = new Map<string, number>();
  for (let row = 0; row < count; row += 1) {
    const form = await database.addForm({ tenantId });
    added.set(form, attempts);
    await database.addRow(form, 'form-created');
    await sleep(100);
  }
  const all = () => [...added.keys()].every((form) => delivered.has(form));
  await expect.poll(all, { timeout: 30_000, interval: 20 }).toBe(true);
  return [...added].map(([form, at]) => (delivered.get(form) ?? 0) - at);
}

it('events of a tenant arrive within a moment while 200 rows of another tenant always fail', async () => {
  await addFailing(200, bad);
  start();
  await sleep(500);
  expect(Math.max(...(await attemptsBefore(good, 30)))).toBeLessThanOrEqual(mostAttempts);
});

it('events of a tenant arrive within a moment while 200 rows of two other tenants always fail', async () => {
  await addFailing(100, bad);
  await addFailing(100, worse);
  start();
  await sleep(500);
  expect(Math.max(...(await attemptsBefore(good, 30)))).toBeLessThanOrEqual(mostAttempts);
});

it('events of a tenant arrive within a moment while 50 other rows of this tenant always fail', async () => {
  await addFailing(50, bad);
  start();
  await sleep(500);
  expect(Math.max(...(await attemptsBefore(bad, 30)))).toBeLessThanOrEqual(mostAttempts);
});

it('events of a tenant arrive within a moment while the definitions of another tenant cannot be read', async () => {
  await addFailing(50, bad);
  start({
    definitions: {
      async find(tenantId, id) {
        if (tenantId === bad) throw new PlatformError('configuration', 'failed', { reason: 'oversized' });
        return { id, name: 'Permit' };
      },
    },
  });
  await sleep(500);
  expect(Math.max(...(await attemptsBefore(good, 10)))).toBeLessThanOrEqual(mostAttempts);
});

/** Adds a due row for each of `count` new forms of the tenant. */
const addBacklog = (tenantId: string | undefined, count: number) =>
  database.pool.query(
    `WITH added AS (
       INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
         anonymous_applicant, one_per_applicant, last_accessed, applicant)
       SELECT gen_random_uuid(), $1, 'permit', 'Draft', now(), '{"id":"s","name":"Intake"}', 'core', true, false, now(),
         '{"channels":[]}' FROM generate_series(1, $2) RETURNING id)
     INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
     SELECT id, $1, 'form-created', '{"definitionId":"permit","actor":{"id":"s","name":"Intake"}}', now(), now()
     FROM added`,
    [tenantId, count],
  );

/** Adds three rows, one after the other. Returns for each the number of other rows delivered before it. */
async function deliveredBefore(): Promise<number[]> {
  await expect.poll(() => delivered.size).toBeGreaterThan(200);
  const before: number[] = [];
  for (let row = 0; row < 3; row += 1) {
    const form = await database.addForm({ tenantId: good });
    const at = delivered.size;
    await database.addRow(form, 'form-created');
    await expect.poll(() => delivered.has(form), { timeout: 60_000, interval: 5 }).toBe(true);
    before.push([...delivered.keys()].indexOf(form) - at);
  }
  process.stdout.write(`events of the backlog before each event: ${before.join(', ')}\n`);
  return before;
}

it('events of a tenant arrive long before another tenant’s backlog has been delivered', async () => {
  const backlog = 12_000;
  await addBacklog(bad, backlog);
  start();
  // In the order of their arrival, the first event would wait for almost the whole backlog.
  expect((await deliveredBefore())[0]).toBeLessThan(backlog / 2);
  expect(await database.undelivered()).toBeGreaterThan(0);
});

it('events of a tenant arrive long before the backlogs of ten other tenants have been delivered', async () => {
  for (let tenant = 0; tenant < 10; tenant += 1) await addBacklog(`${bad}-${tenant}`, 1_200);
  start();
  expect((await deliveredBefore())[0]).toBeLessThan(6_000);
  expect(await database.undelivered()).toBeGreaterThan(0);
});

it('events of a tenant arrive long before the backlogs of ten other tenants, written in turn', async () => {
  for (let round = 0; round < 60; round += 1)
    for (let tenant = 0; tenant < 10; tenant += 1) await addBacklog(`${bad}-${tenant}`, 20);
  start();
  expect((await deliveredBefore())[0]).toBeLessThan(6_000);
  expect(await database.undelivered()).toBeGreaterThan(0);
});

it('events of a tenant arrive although each claim of another tenant’s rows takes too long', async () => {
  await addBacklog(bad, 300);
  await database.pool.query(`
    CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$;
    CREATE TRIGGER delay BEFORE UPDATE ON outbox FOR EACH ROW
    WHEN (NEW.tenant_id = '${bad}' AND NEW.claimed_until IS NOT NULL) EXECUTE FUNCTION delay()`);
  const form = await database.addForm({ tenantId: good });
  await database.addRow(form, 'form-created');
  const url = new URL(database.url);
  url.searchParams.set('options', '-c statement_timeout=2s');
  start({ databaseUrl: url.href });
  await expect.poll(() => delivered.has(form), { timeout: 60_000 }).toBe(true);
  await expect.poll(() => database.undelivered()).toBe(300);
});
