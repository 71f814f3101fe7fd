// Tests, with a real Postgres and real HTTP, that a row that Postgres takes too long to settle delays no other row.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { createOutboxDatabase, type OutboxDatabase, type Sink, startSink } from '../../../test/support/outbox.ts';
import {
  startTestDispatcher,
  type TestDispatcher,
  type TestDispatcherOptions,
} from '../../../test/support/outbox-dispatcher.ts';

let database: OutboxDatabase;
let sink: Sink;
let logged: CapturedLog;
let dispatcher: TestDispatcher | undefined;
beforeEach(async () => {
  database = await createOutboxDatabase();
  sink = await startSink();
  logged = captureLog();
});
afterEach(async () => {
  await dispatcher?.stop();
  dispatcher = undefined;
  await sink.close();
  await database.close();
});

/** Starts a dispatcher whose statements have the given limit, for example `statement_timeout=2s`. */
function start(limit: string, pace: TestDispatcherOptions['pace'] = {}) {
  const url = new URL(database.url);
  url.searchParams.set('options', `-c ${limit}`);
  const write = (line: string) => logged.log.info(JSON.parse(line));
  dispatcher = startTestDispatcher({ databaseUrl: url.href, sinkUrl: sink.url, pace, write });
}

/** Adds forms with one row each. */
async function addForms(count: number, kind: 'form-created' | 'subscribe'): Promise<string[]> {
  const channels = [{ channel: 'email', address: 'ana@example.org' }];
  const forms = await Promise.all(Array.from({ length: count }, () => database.addForm({ channels })));
  for (const form of forms) await database.addRow(form, kind);
  return forms;
}

const sent = (form: string) => sink.received.filter(({ body }) => JSON.stringify(body).includes(form)).length;
const undelivered = (count: number) => expect.poll(() => database.undelivered(), { timeout: 60_000 }).toBe(count);

describe('a row that Postgres takes too long to settle', () => {
  const delay = (seconds: number) =>
    database.pool.query(`CREATE OR REPLACE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(${seconds}); RETURN NEW; END $$`);

  async function addSlowForm(): Promise<string> {
    const [slow = ''] = await addForms(1, 'form-created');
    await delay(600);
    await database.pool.query(`
      CREATE TRIGGER delay BEFORE UPDATE ON outbox FOR EACH ROW
      WHEN (NEW.form_id = '${slow}' AND NEW.accepted IS NOT NULL) EXECUTE FUNCTION delay()`);
    return slow;
  }

  it('delays no other form, and is delivered again until it is settled', async () => {
    const slow = await addSlowForm();
    await addForms(20, 'form-created');
    start('statement_timeout=2s');
    await undelivered(1);
    await expect.poll(() => sent(slow), { timeout: 60_000 }).toBeGreaterThan(1);
    expect(logged.text()).toContain('outbox row not settled');
    await delay(0);
    await undelivered(0);
    expect((await database.pool.query('SELECT FROM quarantine')).rowCount).toBe(0);
  });

  it('is given back before the claims of its batch expire, and no row is delivered twice', async () => {
    const slow = await addSlowForm();
    const others = await addForms(20, 'form-created');
    const row = { first: 600_000, cap: 600_000 };
    const retry = { service: row, row };
    // Before, the batch exceeded the statement timeout three times, and the claims expired meanwhile.
    start('statement_timeout=5s', { lease: 12_000, deadline: 5_000, retry });
    await undelivered(1);
    const later =
      "SELECT FROM outbox WHERE form_id = $1 AND claimed_until IS NULL AND not_before > now() + interval '1 min'";
    await expect.poll(async () => (await database.pool.query(later, [slow])).rowCount, { timeout: 60_000 }).toBe(1);
    expect([slow, ...others].map(sent)).toEqual(Array.from({ length: 21 }, () => 1));
  });
});

/** Locks rows with a statement, until the returned function is called. */
async function lock(sql: string): Promise<() => Promise<void>> {
  const client = await database.pool.connect();
  await client.query(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; ${sql} FOR UPDATE`);
  return async () => {
    await client.query('ROLLBACK').finally(() => client.release());
  };
}

it('the lock of one form delays the subscriptions of no other form', async () => {
  const [locked = ''] = await addForms(1, 'subscribe');
  await addForms(20, 'subscribe');
  const unlock = await lock(`SELECT FROM forms WHERE id = '${locked}'`);
  start('lock_timeout=500ms');
  await undelivered(1).finally(unlock);
  await undelivered(0);
});

it('no event is sent again because the estimated queue of the notification service is locked', async () => {
  const unlock = await lock('SELECT FROM notice_queue');
  const forms = await addForms(3, 'form-created');
  start('lock_timeout=100ms');
  const failures = () => logged.text().includes('outbox delivery failed');
  await expect.poll(failures, { timeout: 60_000 }).toBe(true).finally(unlock);
  await undelivered(0);
  expect(forms.map(sent)).toEqual([1, 1, 1]);
  expect(logged.text()).not.toContain('outbox row not settled');
});
