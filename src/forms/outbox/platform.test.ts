// Follows an event from the outbox through the platform server to the mailbox. The steps are registration,
// subscription, validation against the registered schema, template, mail and removal.
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import pino from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase } from '../../../test/support/outbox.ts';
import { quick } from '../../../test/support/outbox-dispatcher.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { createPlatform, type Platform } from '../../platform/platform.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createDefinitionSource } from '../definitions/source.ts';
import { registered } from '../registration.ts';
import { createDelivery } from './delivery.ts';
import { type Dispatcher, startDispatcher } from './dispatcher.ts';
import { eventKinds } from './event-catalogue.ts';
import { createOutboxMetrics } from './metrics.ts';
import { createOutboxStore } from './store.ts';

let services: TestPlatform;
let database: OutboxDatabase;
let platformDatabase: pg.Pool;
let platform: Platform;
let dispatcher: Dispatcher;
let shift = 0;
const clock = () => new Date(Date.now() + shift);
const log = pino({ level: 'silent' });

beforeAll(async () => {
  services = await startTestPlatform();
  database = await createOutboxDatabase();
  platformDatabase = new pg.Pool({ connectionString: services.databaseUrl, max: 2 });
  platformDatabase.on('error', () => undefined);
  const { access } = services;
  const metrics = createMetrics();
  platform = createPlatform({
    config: {
      ACCESS_SERVICE_URL: access.url,
      DIRECTORY_URL: services.directoryUrl,
      CLIENT_SECRET: access.clientSecret('core', 'form-service'),
      PLATFORM_CACHE_TTL: 60_000,
      PLATFORM_TIMEOUT: 10_000,
    },
    service: 'form-service',
    urns: access.urns,
    metrics,
    log,
    env: {},
  });
  await platform.register(registered).done;
  const permit = {
    id: 'permit',
    name: 'Permit',
    anonymousApply: true,
    applicantRoles: [],
    assessorRoles: [],
    formDraftUrlTemplate: 'https://forms.example.org/permit/{{id}}',
  };
  await platform.configuration.update('platform', 'form-service', { permit }, { tenantId: services.tenant.id });
  const store = createOutboxStore({ pool: database.pool, removalDelay: 900_000, noticeTime: 0, deleteFiles: false });
  const deliver = createDelivery({
    events: platform.events,
    notifications: platform.notifications,
    files: undefined,
    definitions: createDefinitionSource(platform.configuration),
    readData: store.readData,
    urns: access.urns,
    clock,
    recheck: 60_000,
    fileTime: 10_000,
  });
  const outboxMetrics = createOutboxMetrics({ registry: metrics.registry, store, clock });
  dispatcher = startDispatcher({
    store,
    deliver,
    metrics: outboxMetrics,
    clock,
    log,
    callTimeout: 10_000,
    pace: quick,
  });
});

afterAll(async () => {
  await dispatcher?.stop();
  await platform?.close();
  await platformDatabase?.end();
  await services?.close();
  await database?.close();
});

const facts = {
  actor: { id: 'subject', name: 'Intake' },
  lockOn: '2026-08-23T17:00:00.000Z',
  deleteOn: '2026-09-04T17:00:00.000Z',
};

async function record(form: string, kinds: readonly Parameters<OutboxDatabase['addRow']>[1][]): Promise<void> {
  for (const kind of kinds) {
    await database.addRow(form, kind, { facts, at: clock() });
    await database.pool.query('UPDATE outbox SET tenant_id = $1', [services.tenant.id]);
  }
  dispatcher.nudge();
}

const mailsTo = (address: string) =>
  services.mailbox.messages().filter(({ to }) => JSON.stringify(to).includes(address));
const waitForMails = (address: string, count: number) =>
  expect.poll(() => mailsTo(address), { interval: 50 }).toHaveLength(count);

it('an applicant is notified of every change of their form, and leaves no data behind after its deletion', async () => {
  const address = 'canary-ana@example.org';
  const form = await database.addForm({ channels: [{ channel: 'email', address }], data: { trade: 'canary-data' } });
  await record(form, ['subscribe', ...eventKinds.filter((kind) => kind !== 'form-deleted')]);
  await waitForMails(address, 6);
  await database.removeForm(form);
  await record(form, ['form-deleted']);
  await waitForMails(address, 7);
  const subjects = mailsTo(address).map(({ subject }) => subject);
  expect([...subjects].sort()).toEqual(
    [
      'Your Permit draft is saved',
      'We received your Permit',
      'Your Permit draft will soon be locked',
      'Your Permit draft is locked',
      'Your Permit draft is unlocked',
      'Your Permit needs changes',
      'Your Permit is deleted',
    ].sort(),
  );
  const locked = mailsTo(address).find(({ subject }) => subject.includes('is locked'));
  expect(locked?.text).toContain('September 4, 2026');
  const saved = mailsTo(address).find(({ subject }) => subject.includes('is saved'));
  expect(saved?.text).toContain(`https://forms.example.org/permit/${form}`);
  expect(saved?.text).toContain('Hello Ana');

  const subscribers = async () => (await platformDatabase.query('SELECT id FROM subscribers')).rows.length;
  expect(await subscribers()).toBe(1);
  shift = 15 * 60_000 + 1_000;
  await expect.poll(() => database.undelivered()).toBe(0);
  expect(await subscribers()).toBe(0);
  for (const table of [
    'subscribers',
    'subscriber_channels',
    'subscriptions',
    'subscription_criteria',
    'deliveries',
    'events',
  ]) {
    const { rows } = await platformDatabase.query(`SELECT to_jsonb(t) AS row FROM ${table} t`);
    expect(JSON.stringify(rows), table).not.toMatch(/canary-/);
  }
});

it('a form that is deleted before `subscribe` is delivered leaves no subscriber', async () => {
  const form = await database.addForm({ channels: [{ channel: 'email', address: 'early@example.org' }] });
  await database.removeForm(form);
  await record(form, ['subscribe', 'form-created', 'form-deleted']);
  // The jumps of the clock end claims early. A delivery that lost its claim can create a subscriber after all rows were
  // delivered, and then writes a row that removes it.
  const remainingLater = async () => {
    shift += 15 * 60_000;
    const { rows } = await platformDatabase.query('SELECT id FROM subscribers');
    return { rows: await database.undelivered(), subscribers: rows };
  };
  await expect.poll(remainingLater, { interval: 200 }).toEqual({ rows: 0, subscribers: [] });
  expect(mailsTo('early@example.org')).toEqual([]);
});

it('notices are in French if the tenant configures French templates', async () => {
  const update = JSON.parse(
    await readFile(new URL('../../../docs/notices/fr.json', import.meta.url), 'utf8'),
  ) as Record<string, unknown>;
  await platform.configuration.update('platform', 'notification-service', update, { tenantId: services.tenant.id });
  const address = 'jean@example.org';
  const form = await database.addForm({ channels: [{ channel: 'email', address }] });
  await record(form, ['subscribe', 'form-created']);
  await waitForMails(address, 1);
  expect(mailsTo(address)[0]?.subject).toBe('Votre brouillon « Permit » est enregistré');
});

it('an event that is delivered twice sends one mail', async () => {
  const address = 'bob@example.org';
  const form = await database.addForm({ channels: [{ channel: 'email', address }] });
  await record(form, ['subscribe', 'form-created']);
  await waitForMails(address, 1);
  await database.pool.query("UPDATE outbox SET accepted = NULL WHERE form_id = $1 AND kind = 'form-created'", [form]);
  dispatcher.nudge();
  await expect.poll(() => database.undelivered()).toBe(0);
  await record(form, ['form-unlocked']);
  await waitForMails(address, 2);
});
