// Tests how long the subscriber of a deleted form stays: until the notification service has had time to send the form's
// last notice, and no longer. The notification service is simulated: it handles events one at a time, as slowly as the
// reference implementation.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createOutboxDatabase, type OutboxDatabase } from '../../../test/support/outbox.ts';
import { quick } from '../../../test/support/outbox-dispatcher.ts';
import type { PlatformEvent } from '../../platform/events.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import { createDelivery, type DeliveryOptions } from './delivery.ts';
import { type Dispatcher, startDispatcher } from './dispatcher.ts';
import { createOutboxMetrics } from './metrics.ts';
import { createOutboxStore } from './store.ts';

const tenant = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';
const minute = 60_000;
const hour = 60 * minute;
const eventTime = 11_000;
const urns = createUrns('urn:example');

let database: OutboxDatabase;
let dispatcher: Dispatcher;
let now: number;
let service: ReturnType<typeof createSlowService>;

/** Simulates the notification service. `canTell` says whether it can report how many notices it still has to send. */
function createSlowService(canTell: boolean) {
  const subscribers = new Set<string>();
  const waiting: { urn: string; handled: number }[] = [];
  const counts = { sent: 0, lost: 0, asked: 0 };
  let free = 0;
  const idOf = (urn: string) => `s-${urn.slice(urn.lastIndexOf('/') + 1)}`;
  const notifications: DeliveryOptions['notifications'] = {
    async subscribe({ typeId, userId = '' }) {
      const id = idOf(userId);
      const channels = subscribers.has(id) ? [{ channel: 'email', address: 'a@example.org', verified: false }] : [];
      subscribers.add(id);
      return { subscriberId: id, typeId, subscriber: { id, urn: undefined, addressAs: undefined, channels } };
    },
    async removeSubscriber(_tenant, id) {
      subscribers.delete(id);
    },
    async pendingNotices(_tenant, id) {
      counts.asked += 1;
      return canTell ? waiting.filter(({ urn }) => idOf(urn) === id).length : undefined;
    },
  };
  return {
    subscribers,
    counts,
    notifications,
    async send({ correlationId = '' }: PlatformEvent) {
      free = Math.max(free, now) + eventTime;
      waiting.push({ urn: correlationId, handled: free });
    },
    /** Handles the events that the service has had enough time for. */
    handle() {
      while (waiting[0] && waiting[0].handled <= now) {
        const urn = waiting.shift()?.urn ?? '';
        counts[subscribers.has(idOf(urn)) ? 'sent' : 'lost'] += 1;
      }
    },
    waiting: () => waiting.length,
  };
}

function start(canTell: boolean): void {
  service = createSlowService(canTell);
  const clock = () => new Date(now);
  const store = createOutboxStore({
    ...{ pool: database.pool, removalDelay: 15 * minute, noticeTime: eventTime, deleteFiles: false },
  });
  const deliver = createDelivery({
    ...{ events: { send: service.send }, notifications: service.notifications, files: undefined, urns, clock },
    ...{ definitions: { find: async (_tenant, id) => ({ id, name: 'Permit' }) }, readData: store.readData },
    recheck: minute,
    fileTime: minute,
  });
  const metrics = createMetrics();
  dispatcher = startDispatcher({
    ...{ store, deliver, clock, log: captureLog().log, callTimeout: 10_000 },
    metrics: createOutboxMetrics({ registry: metrics.registry, store, clock }),
    traffic: { isServing: () => false, close: () => undefined },
    pace: { ...quick, rates: { idle: 100_000, serving: 100_000 } },
  });
}

/** Writes the outbox rows that remain after the deletion of forms. */
async function deleteForms(count: number): Promise<void> {
  const { rows } = await database.pool.query<{ id: string }>(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
     SELECT id, $2, 'form-deleted', jsonb_build_object('definitionId', 'permit', 'subscriberId', 's-' || id), $3, $3
     FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, $1)) AS ids RETURNING form_id AS id`,
    [count, tenant, new Date(now)],
  );
  for (const { id } of rows) service.subscribers.add(`s-${id}`);
  dispatcher.nudge();
}

const count = async (condition: string) => {
  const sql = `SELECT count(*)::int AS n FROM outbox WHERE accepted IS NULL AND ${condition}`;
  return (await database.pool.query<{ n: number }>(sql, [new Date(now)])).rows[0]?.n;
};
const untilNothingIsDue = () => expect.poll(() => count('not_before <= $1'), { interval: 20 }).toBe(0);

/** Advances the clock in steps. After each step, delivers the rows that are due. */
async function pass(milliseconds: number, step: number): Promise<void> {
  for (const end = now + milliseconds; now < end; ) {
    now = Math.min(now + step, end);
    service.handle();
    dispatcher.nudge();
    await untilNothingIsDue();
  }
}

beforeEach(async () => {
  database = await createOutboxDatabase();
  now = Date.parse('2026-11-22T01:00:00Z');
});
afterEach(async () => {
  await dispatcher.stop();
  await database.close();
});

describe('a service that cannot say whether it has sent a notice', () => {
  it('sends the notices of 5,000 forms that were deleted in one night, and every address is removed', async () => {
    start(false);
    await deleteForms(5_000);
    await untilNothingIsDue();
    expect(service.waiting()).toBe(5_000);
    await pass(8 * hour, 2 * hour);
    expect(service.counts).toMatchObject({ sent: Math.floor((8 * hour) / eventTime), lost: 0 });

    // The rows of other forms are delivered without delay.
    const form = await database.addForm({
      channels: [{ channel: 'email', address: 'b@example.org' }],
      at: new Date(now),
    });
    await database.addRow(form, 'subscribe', { at: new Date(now) });
    dispatcher.nudge();
    await expect
      .poll(async () => (await database.pool.query('SELECT FROM forms WHERE subscriber_id IS NOT NULL')).rowCount)
      .toBe(1);
    expect(await count("kind = 'remove-subscriber' AND $1::timestamptz IS NOT NULL")).toBeGreaterThan(1_000);

    await pass(5_000 * eventTime - 8 * hour + 15 * minute, 2 * hour);
    expect(service.counts).toMatchObject({ sent: 5_000, lost: 0 });
    expect([...service.subscribers]).toEqual([`s-${form}`]);
    // Each removal asks the service once when the removal is due, and once more at the estimated time.
    expect(service.counts.asked).toBeLessThanOrEqual(10_000);
    expect((await database.pool.query('SELECT FROM outbox WHERE refusals > 0 OR attempts > 2')).rowCount).toBe(0);
  });

  it('gets 15 minutes for a single notice', async () => {
    start(false);
    await deleteForms(1);
    await untilNothingIsDue();
    await pass(15 * minute, 15 * minute);
    expect(service.counts.sent).toBe(1);
    expect(service.subscribers.size).toBe(1);
    await pass(eventTime, eventTime);
    expect(service.subscribers.size).toBe(0);
  });
});

describe('a service that can say whether it has sent a notice', () => {
  it('is asked until it has, and the address is removed then, whatever the estimate', async () => {
    start(true);
    await deleteForms(200);
    await untilNothingIsDue();
    await pass(15 * minute, 15 * minute);
    // The service can send 81 notices in 15 minutes.
    expect(service.subscribers.size).toBe(200 - Math.floor((15 * minute) / eventTime));
    await pass(25 * minute, minute);
    expect(service.counts).toMatchObject({ sent: 200, lost: 0 });
    expect(service.subscribers.size).toBe(0);
  });

  it('keeps the address for three days at most, if the notice cannot be sent', async () => {
    start(true);
    await deleteForms(1);
    await untilNothingIsDue();
    service.handle = () => undefined;
    await pass(2 * 24 * hour, 12 * hour);
    expect(service.subscribers.size).toBe(1);
    await pass(2 * 24 * hour, 12 * hour);
    expect(service.subscribers.size).toBe(0);
  });
});
