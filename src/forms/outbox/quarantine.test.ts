// Tests, with a real Postgres and real HTTP, that a row is quarantined after a limited number of refusals by its
// service. A quarantined row delays neither the later rows of its form nor other forms.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import {
  createOutboxDatabase,
  type OutboxDatabase,
  type Received,
  type Sink,
  startSink,
} from '../../../test/support/outbox.ts';
import {
  startTestDispatcher,
  type TestDispatcher,
  type TestDispatcherOptions,
} from '../../../test/support/outbox-dispatcher.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { createFormStore } from '../forms/store.ts';
import { createFormsQuarantine } from '../quarantine/store.ts';

let database: OutboxDatabase;
let sink: Sink;
let dispatchers: TestDispatcher[] = [];
beforeEach(async () => {
  database = await createOutboxDatabase();
  sink = await startSink();
});
afterEach(async () => {
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()));
  dispatchers = [];
  await sink.close();
  await database.close();
});

const start = (options: Partial<TestDispatcherOptions> = {}) => {
  const pace = { refusals: 3, ...options.pace };
  dispatchers.push(startTestDispatcher({ databaseUrl: database.url, sinkUrl: sink.url, ...options, pace }));
};
const eventOf = ({ path, body }: Received) =>
  path === '/event/v1/events'
    ? { form: (body.context as { formId: string }).formId, name: String(body.name) }
    : undefined;
const sent = (form: string) =>
  sink.received.flatMap((request) => (eventOf(request)?.form === form ? [eventOf(request)?.name] : []));
const refuse = (isRefused: (request: Received) => boolean) =>
  sink.answer((request) => (isRefused(request) ? { status: 422 } : undefined) as undefined);
const waiting = async () =>
  (
    await database.pool.query<{ count: number }>(
      "SELECT count(*)::int AS count FROM outbox WHERE accepted IS NULL AND not_before < 'infinity'",
    )
  ).rows[0]?.count;
const settled = () => expect.poll(waiting, { interval: 20 }).toBe(0);
const entries = async () =>
  (await database.pool.query('SELECT kind, about, reason, detail, attempts FROM quarantine ORDER BY item::bigint'))
    .rows;
const store = () => createFormsQuarantine({ pool: unsharedPool(database.pool), clock: () => new Date() });

it('an event that the event service keeps refusing is quarantined, and the later events of its form are delivered', async () => {
  const [refused, other] = [await database.addForm(), await database.addForm()];
  for (const form of [refused, other])
    for (const kind of ['form-created', 'form-submitted', 'form-archived'] as const) await database.addRow(form, kind);
  refuse((request) => eventOf(request)?.form === refused && eventOf(request)?.name === 'form-created');
  const logged = captureLog();
  start({ write: (line) => logged.log.info(JSON.parse(line)) });
  await settled();
  expect(sent(refused)).toEqual(['form-created', 'form-created', 'form-created', 'form-submitted', 'form-archived']);
  expect(sent(other)).toEqual(['form-created', 'form-submitted', 'form-archived']);
  const about = { formId: refused, definitionId: 'permit' };
  expect(await entries()).toEqual([
    { kind: 'form-created', about, reason: 'service-refused', detail: 'events 422', attempts: 3 },
  ]);
  expect(logged.text()).toContain('item quarantined');
  expect(await dispatchers[0]?.metrics.registry.metrics()).toContain(
    'formgate_outbox_undelivered{kind="form-created"} 0',
  );
});

it('an outage quarantines nothing, however long it lasts', async () => {
  const form = await database.addForm();
  await database.addRow(form, 'form-created');
  let statuses = [500, 503, 429, 408, 401, 403, 404, 405];
  sink.answer(() => {
    const [status, ...rest] = statuses;
    statuses = rest;
    return (status && { status }) as undefined;
  });
  start({ pace: { refusals: 1 } });
  await settled();
  expect(statuses).toEqual([]);
  expect(await entries()).toEqual([]);
});

it('a thousand refused rows do not delay the others', async () => {
  const bad = await Promise.all(Array.from({ length: 1_000 }, () => database.addForm()));
  await database.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
     SELECT id, 't', 'form-created', '{"definitionId":"permit"}', now() - interval '1 day', now() - interval '1 day'
     FROM unnest($1::uuid[]) id`,
    [bad],
  );
  const good = await database.addForm();
  await database.addRow(good, 'form-created');
  refuse((request) => eventOf(request)?.form !== good);
  start({ pace: { retry: { service: { first: 20, cap: 100 }, row: { first: 60_000, cap: 60_000 } } } });
  await expect.poll(() => sent(good)).toEqual(['form-created']);
});

it('a released row is delivered, and quarantined again by its first refusal', async () => {
  const [mended, hopeless] = [await database.addForm(), await database.addForm()];
  for (const form of [mended, hopeless]) await database.addRow(form, 'form-created');
  let refused = [mended, hopeless];
  refuse((request) => refused.includes(eventOf(request)?.form ?? ''));
  start();
  await settled();
  expect(await entries()).toHaveLength(2);
  refused = [hopeless];
  await store().release('all');
  await settled();
  expect(sent(mended)).toHaveLength(4);
  expect(sent(hopeless)).toHaveLength(4);
  expect(await store().counts()).toEqual([{ kind: 'form-created', reason: 'service-refused', count: 1 }]);
});

it('a subscriber is removed although form-deleted is quarantined', async () => {
  const form = await database.addForm();
  await database.addRow(form, 'form-deleted', {
    facts: { subscriberId: 'subscriber-1', actor: { id: 'ana', name: 'Ana' } },
  });
  await database.removeForm(form);
  refuse((request) => eventOf(request)?.form === form);
  start();
  await expect.poll(entries).toHaveLength(1);
  const { rows } = await database.pool.query("SELECT facts FROM outbox WHERE kind = 'remove-subscriber'");
  expect(rows).toEqual([{ facts: { definitionId: 'permit', subscriberId: 'subscriber-1' } }]);
});

it('the deletion of a form removes its entries and refused events, and retries a refused subscribe', async () => {
  const form = await database.addForm({ channels: [{ channel: 'email', address: 'ana@example.org' }] });
  for (const kind of ['subscribe', 'form-created'] as const) await database.addRow(form, kind);
  refuse(({ path, body }) => path.startsWith('/subscription') || body.name === 'form-created');
  start();
  await settled();
  expect((await entries()).map(({ kind }) => kind)).toEqual(['subscribe', 'form-created']);
  sink.answer(() => undefined);
  const [{ tenant_id: tenantId }] = (await database.pool.query('SELECT tenant_id FROM outbox LIMIT 1')).rows;
  const removal = { tenantId, formId: form, actor: { id: 'ana', name: 'Ana' }, now: new Date() };
  expect(await createFormStore(unsharedPool(database.pool)).remove({ ...removal, statuses: ['Draft'] })).toBe(true);
  expect(await entries()).toEqual([]);
  await expect.poll(() => sent(form).at(-1)).toBe('form-deleted');
  const kinds = async () =>
    (await database.pool.query('SELECT kind FROM outbox ORDER BY sequence')).rows.map(({ kind }) => kind);
  await expect.poll(kinds).toEqual(['subscribe', 'form-deleted', 'remove-subscriber']);
});

it('a subscriber id that Postgres cannot store quarantines only its own row', async () => {
  const channels = [{ channel: 'email', address: 'ana@example.org' }];
  const forms = await Promise.all(Array.from({ length: 9 }, () => database.addForm({ channels })));
  for (const form of forms) await database.addRow(form, 'subscribe');
  sink.answer(({ body }) => {
    const bad = String(body.userId).endsWith(forms[4] ?? '');
    return (
      bad
        ? {
            status: 200,
            body: { subscriberId: 'a\0', typeId: 't', subscriber: { id: 'a\0', channels: [] } },
          }
        : undefined
    ) as undefined;
  });
  start();
  await settled();
  expect(await entries()).toMatchObject([{ kind: 'subscribe', about: { formId: forms[4] } }]);
  const { rowCount } = await database.pool.query('SELECT FROM forms WHERE subscriber_id IS NOT NULL');
  expect(rowCount).toBe(8);
});

it('a row that Postgres refuses to settle in any way does not stop the deliveries of other forms', async () => {
  const bad = await database.addForm();
  await database.addRow(bad, 'form-created');
  await database.pool.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW
    WHEN (NEW.form_id = '${bad}' AND NEW.claimed_until IS NULL) EXECUTE FUNCTION refuse()`);
  const logged = captureLog();
  start({ write: (line) => logged.log.info(JSON.parse(line)) });
  await expect.poll(() => sent(bad)).toEqual(['form-created']);
  // More rows than the queue holds at once.
  await database.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
     SELECT gen_random_uuid(), 't', 'form-deleted', '{"definitionId":"permit"}', now(), now()
     FROM generate_series(1, 300)`,
  );
  const open = async () =>
    (await database.pool.query('SELECT FROM outbox WHERE accepted IS NULL AND form_id <> $1', [bad])).rowCount;
  await expect.poll(open, { timeout: 15_000 }).toBe(0);
  expect(logged.text()).toContain('outbox row not settled');
});
