// The relay while what it delivers to is down for long: what an outage costs, that nothing is given up however often it
// failed, and what the metrics say. Order, leases and crashes are proved beside the relay itself.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase, type Sink, startSink } from '../support/outbox.ts';
import { startTestRelay, type TestRelay, type TestRelayOptions } from '../support/outbox-relay.ts';

const patience = 30_000;
let database: OutboxDatabase;
let sink: Sink;
let relay: TestRelay | undefined;
let moved = 0;
const clock = () => new Date(Date.now() + moved);
beforeEach(async () => {
  moved = 0;
  [database, sink] = await Promise.all([createOutboxDatabase(), startSink()]);
});
afterEach(async () => {
  await relay?.stop();
  relay = undefined;
  await sink.close();
  await database.close();
});

function start(options: Partial<TestRelayOptions> = {}): TestRelay {
  relay = startTestRelay({ databaseUrl: database.url, sinkUrl: sink.url, clock, ...options });
  return relay;
}
const refuse = (status: number, when: (path: string) => boolean) =>
  sink.answer(({ path }) => (when(path) ? { status } : undefined) as undefined);
const always = () => true;
const isNotification = (path: string) => path.startsWith('/subscription');
const undelivered = () => database.undelivered();
const delivered = () =>
  vi.waitFor(async () => expect(await undelivered()).toBe(0), { timeout: patience, interval: 20 });
const removals = () => sink.received.filter(({ method, path }) => method === 'DELETE' && isNotification(path));
const metric = async (name: string, kind: string) => {
  const text = (await relay?.metrics.registry.metrics()) ?? '';
  return Number(new RegExp(`^${name}\\{kind="${kind}"\\} (.*)$`, 'm').exec(text)?.[1]);
};

describe('an outage of the notification service', { timeout: 2 * patience }, () => {
  it('costs a few probes, not a try for each subscriber that is to be removed, and ends without a restart', async () => {
    for (let nth = 0; nth < 200; nth += 1) {
      const facts = { subscriberId: String(nth).padStart(24, '0') };
      await database.addRow(await database.addForm(), 'remove-subscriber', { facts });
    }
    refuse(503, isNotification);
    start({ pace: { capacity: 16, outage: { first: 50, cap: 400 } } });
    await vi.waitFor(() => expect(sink.received.length).toBeGreaterThan(5), patience);
    await sleep(1_500);
    // Each try is three requests of the client.
    expect(removals().length).toBeLessThan(100);
    refuse(503, () => false);
    await delivered();
    expect(new Set(removals().map(({ path }) => path.split('?')[0])).size).toBe(200);
  });
});

describe('a row that failed ever so often', { timeout: 2 * patience }, () => {
  it.each([
    ['form-locked', 500],
    ['form-locked', 400],
    ['form-deleted', 503],
    ['form-deleted', 403],
    ['remove-subscriber', 500],
    ['remove-subscriber', 400],
  ] as const)(
    'is not given up: a %s that was answered with %i for a year is delivered when it is taken',
    async (kind, status) => {
      // A deletion that names a subscriber would leave its removal for later.
      const facts = kind === 'remove-subscriber' ? { subscriberId: '0'.repeat(24) } : {};
      const sequence = await database.addRow(await database.addForm(), kind, { facts, at: clock() });
      refuse(status, always);
      start();
      const attempts = async () =>
        (await database.pool.query('SELECT attempts FROM outbox WHERE sequence = $1', [sequence])).rows[0].attempts;
      await vi.waitFor(async () => expect(await attempts()).toBeGreaterThanOrEqual(3), patience);
      await database.pool.query('UPDATE outbox SET attempts = 100000 WHERE sequence = $1', [sequence]);
      moved += 365 * 86_400_000;
      await vi.waitFor(async () => expect(await attempts()).toBeGreaterThan(100_000), patience);
      expect(await metric('outbox_undelivered', kind)).toBe(1);
      expect(await metric('outbox_repeatedly_failed', kind)).toBe(1);
      expect(await metric('outbox_oldest_undelivered_seconds', kind)).toBeGreaterThanOrEqual(365 * 86_400);
      refuse(status, () => false);
      await delivered();
      expect(await metric('outbox_undelivered', kind)).toBe(0);
      expect(await metric('outbox_oldest_undelivered_seconds', kind)).toBe(0);
    },
  );
});
