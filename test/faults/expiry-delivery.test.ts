// The outbox dispatcher during a long outage of the receiving service. The dispatcher sends few requests, drops no row,
// and reports the outage in its metrics. The tests of the dispatcher cover order, leases and crashes.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase, type Sink, startSink } from '../support/outbox.ts';
import { startTestDispatcher, type TestDispatcher, type TestDispatcherOptions } from '../support/outbox-dispatcher.ts';

const patience = 60_000;
let database: OutboxDatabase;
let sink: Sink;
let dispatcher: TestDispatcher | undefined;
let moved = 0;
const clock = () => new Date(Date.now() + moved);
beforeEach(async () => {
  moved = 0;
  [database, sink] = await Promise.all([createOutboxDatabase(), startSink()]);
});
afterEach(async () => {
  await dispatcher?.stop();
  dispatcher = undefined;
  await sink.close();
  await database.close();
});

function start(options: Partial<TestDispatcherOptions> = {}): TestDispatcher {
  dispatcher = startTestDispatcher({ databaseUrl: database.url, sinkUrl: sink.url, clock, ...options });
  return dispatcher;
}
const refuse = (status: number, when: (path: string) => boolean) =>
  sink.answer(({ path }) => (when(path) ? { status } : undefined) as undefined);
const always = () => true;
const isNotification = (path: string) => path.startsWith('/subscription');
const undelivered = () => database.undelivered();
const delivered = () => expect.poll(undelivered, { timeout: patience, interval: 20 }).toBe(0);
const removals = () => sink.received.filter(({ method, path }) => method === 'DELETE' && isNotification(path));
const metric = async (name: string, kind: string) => {
  const text = (await dispatcher?.metrics.registry.metrics()) ?? '';
  return Number(new RegExp(`^${name}\\{kind="${kind}"\\} (.*)$`, 'm').exec(text)?.[1]);
};

describe('an outage of the notification service', { timeout: 2 * patience }, () => {
  it('causes only a few probes, however many subscribers are to be removed, and ends without a restart', async () => {
    const subscriberIds = Array.from({ length: 200 }, (_, nth) => String(nth).padStart(24, '0'));
    for (const subscriberId of subscriberIds)
      await database.addRow(await database.addForm(), 'remove-subscriber', { facts: { subscriberId } });
    refuse(503, isNotification);
    start({ pace: { capacity: 16, outage: { first: 50, cap: 400 } } });
    await expect.poll(() => sink.received.length, { timeout: patience }).toBeGreaterThan(5);
    await sleep(1_500);
    // The client of the notification service sends three requests per attempt.
    expect(removals().length).toBeLessThan(100);
    refuse(503, () => false);
    await delivered();
    // A removal also removes other subscribers of its form, so requests with other paths are sent too.
    expect(removals().map(({ path }) => path.split('?')[0]?.split('/').at(-1))).toEqual(
      expect.arrayContaining(subscriberIds),
    );
  });
});

describe('a row that has failed for a year', { timeout: 2 * patience }, () => {
  it.each([
    ['form-locked', 500],
    ['form-locked', 400],
    ['form-deleted', 503],
    ['form-deleted', 403],
    ['remove-subscriber', 500],
    ['remove-subscriber', 400],
  ] as const)(
    'is still delivered: a %s that got %i is delivered as soon as the service accepts it',
    async (kind, status) => {
      // Only the row `remove-subscriber` names a subscriber. A row `form-deleted` with a subscriber would create
      // another row, which removes the subscriber later.
      const facts = kind === 'remove-subscriber' ? { subscriberId: '0'.repeat(24) } : {};
      const sequence = await database.addRow(await database.addForm(), kind, { facts, at: clock() });
      refuse(status, always);
      start();
      const attempts = async () =>
        (await database.pool.query('SELECT attempts FROM outbox WHERE sequence = $1', [sequence])).rows[0].attempts;
      await expect.poll(attempts, { timeout: patience }).toBeGreaterThanOrEqual(3);
      await database.pool.query('UPDATE outbox SET attempts = 100000 WHERE sequence = $1', [sequence]);
      moved += 365 * 86_400_000;
      await expect.poll(attempts, { timeout: patience }).toBeGreaterThan(100_000);
      expect(await metric('formgate_outbox_undelivered', kind)).toBe(1);
      expect(await metric('formgate_outbox_repeatedly_failed', kind)).toBe(1);
      expect(await metric('formgate_outbox_oldest_undelivered_seconds', kind)).toBeGreaterThanOrEqual(365 * 86_400);
      refuse(status, () => false);
      await delivered();
      expect(await metric('formgate_outbox_undelivered', kind)).toBe(0);
      expect(await metric('formgate_outbox_oldest_undelivered_seconds', kind)).toBe(0);
    },
  );
});
