import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { startTestMailbox, type TestMailbox } from '../../../test/support/mailbox.ts';
import {
  type Caller,
  callerOf,
  putTypes,
  send,
  settled,
  startMailServer,
  subscribe,
  template,
  typeId,
  withTenant,
} from '../../../test/support/notices.ts';
import { call, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createEventStore } from '../events/store.ts';
import { tenantKey } from '../tenant-key.ts';
import { createDeliveryJobs, type DeliveryOptions } from './delivery.ts';
import type { NotificationType } from './notification-type.ts';

describe('routing', () => {
  let platform: TestPlatform;
  let caller: Caller;
  let database: pg.Pool;

  beforeAll(async () => {
    platform = await startTestPlatform();
    caller = await callerOf(platform);
    database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
    await putTypes(caller);
    await subscribe(caller, 'everything@example.org');
    await subscribe(caller, 'form1@example.org', { correlationId: 'form:1' });
    await subscribe(caller, 'form2@example.org', { correlationId: 'form:2' });
    await subscribe(caller, 'permit@example.org', { context: { definitionId: 'permit' } });
    await subscribe(caller, 'both@example.org', { correlationId: 'form:1', context: { definitionId: 'permit', n: 1 } });
    await subscribe(caller, 'nested@example.org', { context: { tags: ['a'] } });
  });

  afterAll(async () => {
    await database.end();
    await platform.close();
  });

  async function recipients(changes: Record<string, unknown>): Promise<string[]> {
    await platform.mailbox.clear();
    await send(caller, changes);
    await settled(database);
    return platform.mailbox
      .messages()
      .map(({ to }) => to.split('@')[0] ?? '')
      .toSorted();
  }

  it('a subscription matches if one of its criteria has no correlation id or the same one, and the same value for each of its context keys', async () => {
    expect(await recipients({})).toEqual(['everything']);
    expect(await recipients({ correlationId: 'form:1' })).toEqual(['everything', 'form1']);
    expect(await recipients({ correlationId: 'form:2', context: { definitionId: 'permit' } })).toEqual([
      'everything',
      'form2',
      'permit',
    ]);
    expect(await recipients({ correlationId: 'form:1', context: { definitionId: 'permit', n: 1 } })).toEqual([
      'both',
      'everything',
      'form1',
      'permit',
    ]);
    expect(await recipients({ context: { definitionId: 'permit', n: 2 } })).toEqual(['everything', 'permit']);
    expect(await recipients({ context: { tags: ['a', 'b'] } })).toEqual(['everything']);
    expect(await recipients({ context: { tags: ['a'] } })).toEqual(['everything', 'nested']);
  });

  it('events without a type, of another tenant, or of the notification service cause no notices', async () => {
    expect(await recipients({ name: 'form-created' })).toEqual([]);
    expect(await recipients({ namespace: 'elsewhere' })).toEqual([]);
    expect(await recipients({ tenantId: platform.otherTenant.id })).toEqual([]);
    await putTypes(caller, {
      own: {
        id: 'own',
        name: 'Own',
        channels: ['email'],
        events: [{ namespace: 'notification-service', name: 'sent', templates: { email: template } }],
      },
    });
    await subscribe(caller, 'own@example.org', undefined, { type: 'own' });
    expect(await recipients({ namespace: 'notification-service', name: 'sent' })).toEqual([]);
  });

  it('an event needs one connection at a time, so that events cannot wait for the connections of each other', async () => {
    const pool = new pg.Pool({ connectionString: platform.databaseUrl, max: 1, connectionTimeoutMillis: 1_000 });
    onTestFinished(() => pool.end());
    await database.query(`INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted)
      VALUES (gen_random_uuid(), 'none', 'form-service', 'unheard', now(), '{}', '{}', now())`);
    const { rows } = await database.query<{ sequence: string }>(`SELECT sequence FROM events WHERE name = 'unheard'`);
    const jobs = createDeliveryJobs({
      ...{ pool, clock: systemClock, metrics: createMetrics('test') },
      typesOf: async () => new Map((await pool.query<[string, NotificationType]>('SELECT WHERE false')).rows),
    } as unknown as DeliveryOptions);
    await jobs.routeEvent(rows[0]?.sequence ?? '');
    expect((await database.query(`SELECT FROM events WHERE name = 'unheard'`)).rowCount).toBe(0);
  });

  it('the notice is rendered from the template, as text and as HTML, with the data escaped in the HTML', async () => {
    await recipients({ correlationId: 'form:1', payload: { reference: '<b>&', deleteOn: '2026-09-04T17:00:00Z' } });
    const message = platform.mailbox.messages().find(({ to }) => to === 'form1@example.org');
    expect(message?.subject).toBe('Locked <b>&');
    expect(message?.text.trim()).toBe(
      'Permit\n\nHi Ana <form1@example.org>, until September 4, 2026 at 5:00 p.m. UTC.',
    );
    expect(message?.html).toContain('<p>Hi Ana &lt;form1@example.org&gt;, until');
  });

  it("a tenant's document overrides templates and sender, and nothing else of the type", async () => {
    const override = {
      id: typeId,
      name: 'X',
      channels: ['pigeon'],
      events: [
        { namespace: 'form-service', name: 'form-locked', templates: { email: { subject: 'Verrouillé', body: 'x' } } },
      ],
    };
    const query = withTenant(caller);
    await database.query("UPDATE tenants SET mail_domains = '{town.example}' WHERE id = $1", [
      tenantKey(platform.tenant.id),
    ]);
    await putTypes(caller, { [typeId]: override, email: { fromEmail: 'permits@town.example' } }, query);
    await recipients({ correlationId: 'form:1' });
    expect(platform.mailbox.messages()[0]).toMatchObject({
      subject: 'Verrouillé',
      from: expect.stringContaining('permits@town.example'),
    });
    await call(`${platform.url}/configuration/v2/configuration/platform/notification-service${query}`, {
      method: 'PATCH',
      token: caller.token,
      body: { operation: 'DELETE', property: typeId },
    });
  });

  it('the first channel that the type, the template and a provider have is used; a subscriber without one is skipped', async () => {
    const channels = [
      { channel: 'sms', address: '+15550100' },
      { channel: 'email', address: 'second@example.org' },
    ];
    await subscribe(caller, '', { correlationId: 'form:sms' }, { channels });
    await subscribe(caller, '', { correlationId: 'form:sms' }, { channels: channels.slice(0, 1) });
    expect(await recipients({ correlationId: 'form:sms' })).toEqual(['everything', 'second']);
  });

  it('an event sent twice with one idempotency key causes one notice', async () => {
    const repeated = { correlationId: 'form:2', context: { idempotencyKey: 'k1' } };
    await send(caller, repeated);
    await settled(database);
    const first = platform.mailbox.messages().length;
    expect(await recipients(repeated)).toEqual([]);
    expect(first).toBeGreaterThan(0);
  });
});

describe('a failure of the mail server', () => {
  it('delays notices, each of which is then sent exactly once; in the meantime, neither the jobs nor the log contain an address', async () => {
    const logged: CapturedLog = captureLog();
    const mailbox: TestMailbox = await startTestMailbox();
    const platform = await startTestPlatform({ mailbox, log: logged.log });
    onTestFinished(() => platform.close());
    const database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
    onTestFinished(() => database.end());
    const caller = await callerOf(platform);
    await putTypes(caller);
    await Promise.all(Array.from({ length: 10 }, (_, n) => subscribe(caller, `waiting${n}@example.org`)));
    const removed = await subscribe(caller, 'removed@example.org');
    await mailbox.close();

    await send(caller);
    await expect
      .poll(
        async () => (await database.query('SELECT 1 FROM graphile_worker.jobs WHERE last_error IS NOT NULL')).rowCount,
      )
      .toBe(11);
    const { rows: stored } = await database.query('SELECT * FROM graphile_worker.jobs');
    const { rows: payloads } = await database.query('SELECT * FROM graphile_worker._private_jobs');
    const { rows: deliveries } = await database.query('SELECT * FROM deliveries');
    expect(JSON.stringify([stored, payloads, deliveries])).not.toMatch(/example\.org|Ana|Locked/);
    expect(logged.text()).not.toContain('example.org>');
    expect(logged.text()).not.toContain('waiting1');
    const metrics = await (await fetch(`${platform.metricsUrl}/metrics`)).text();
    expect(metrics).toContain('formgate_jobs_waiting{queue="deliveries"} 11');
    expect(metrics).toMatch(/formgate_jobs_oldest_waiting_seconds\{queue="deliveries"\} [0-9.]+/);
    expect(metrics).toMatch(/formgate_mails_total\{outcome="failed"\} [1-9]/);

    const code = { operation: 'send-code', channel: 'email', address: 'removed@example.org' };
    const path = `${platform.url}/subscription/v1/subscribers/${removed}${withTenant(caller)}`;
    const refused = await call(path, { method: 'POST', token: caller.token, body: code });
    expect(refused.status).toBe(500);
    expect(refused.text).not.toContain('removed@');
    expect((await call(path, { method: 'DELETE', token: caller.token })).status).toBe(200);
    expect(
      (await database.query("SELECT 1 FROM graphile_worker.jobs WHERE key LIKE '%' || $1", [removed])).rowCount,
    ).toBe(0);

    const back = await startTestMailbox({ port: mailbox.port });
    onTestFinished(() => back.close());
    // Makes the jobs due immediately. Otherwise, the test would wait for their retries, and the pause before a retry
    // grows with each failure.
    await database.query('UPDATE graphile_worker._private_jobs SET run_at = now()');
    await settled(database);
    const recipients = back
      .messages()
      .map(({ to }) => to)
      .toSorted();
    expect(recipients).toEqual(Array.from({ length: 10 }, (_, n) => `waiting${n}@example.org`).toSorted());
    expect(logged.text()).not.toMatch(/waiting\d|removed@/);
  });

  it('to accept a message leads to retries until it accepts the message', async () => {
    const server = await startMailServer();
    onTestFinished(() => server.close());
    const platform = await startTestPlatform({ env: { SMTP_URL: `smtp://127.0.0.1:${server.port}` } });
    onTestFinished(() => platform.close());
    const database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
    onTestFinished(() => database.end());
    const caller = await callerOf(platform);
    await putTypes(caller);
    await subscribe(caller, 'refused@example.org');
    server.behave(() => {
      throw Object.assign(new Error('mailbox <refused@example.org> unknown'), { responseCode: 550 });
    });
    await send(caller);
    // The job fails shortly after its delivery is marked as refused.
    const lastErrors = async () =>
      (
        await database.query<{ last_error: string }>(
          'SELECT last_error FROM deliveries, graphile_worker.jobs WHERE refused AND last_error IS NOT NULL',
        )
      ).rows.map(({ last_error }) => last_error);
    await expect.poll(lastErrors).toEqual([expect.stringContaining('550')]);
    expect((await lastErrors()).join()).not.toContain('refused@example.org');
    server.behave(() => undefined);
    await settled(database);
    expect(new Set(server.received.map(({ messageId }) => messageId)).size).toBe(1);
  });
});

it('notices are delivered while requests use all of their connections', async () => {
  const platform = await startTestPlatform({ env: { DATABASE_POOL_SIZE: '1' } });
  const database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  onTestFinished(async () => {
    await database.end();
    await platform.close();
  });
  const caller = await callerOf(platform);
  await putTypes(caller);
  await subscribe(caller, 'ana@example.org', { correlationId: 'form:1' });
  const other = await subscribe(caller, 'other@example.org', { correlationId: 'form:2' });
  await database.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(14); RETURN OLD; END $$`);
  await database.query('CREATE TRIGGER wait BEFORE DELETE ON subscribers FOR EACH ROW EXECUTE FUNCTION wait()');
  let isDeleted = false;
  const path = `${platform.url}/subscription/v1/subscribers/${other}${withTenant(caller)}`;
  const deletion = call(path, { method: 'DELETE', token: caller.token }).finally(() => {
    isDeleted = true;
  });
  const sleeping = `FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`;
  await expect.poll(async () => (await database.query(`SELECT ${sleeping}`)).rowCount).toBe(1);
  const event = { namespace: 'form-service', name: 'form-locked', correlationId: 'form:1', context: {}, payload: {} };
  await createEventStore(database).accept(
    { ...event, tenant: tenantKey(platform.tenant.id), occurred: new Date() },
    new Date(),
  );
  await expect.poll(() => platform.mailbox.messages().map(({ to }) => to)).toEqual(['ana@example.org']);
  expect(isDeleted).toBe(false);
  await database.query(`SELECT pg_terminate_backend(pid) ${sleeping}`);
  await deletion;
});
