// Tests upkeep on several replicas, and during outages of other services.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { isReferenceRun } from '../../../test/support/platform-behaviour.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';
import { startTracedAccess, type TracedAccess } from '../../../test/support/traced-access.ts';
import type { RunningService } from '../../service/operations/serve.ts';
import { createWorkQuarantine } from './pending-work-store.ts';

let access: TracedAccess;
let platform: TestPlatform;
let proxy: FaultProxy;
let handler: TestTokenHandler;
let replicas: RunningService[];
let events: pg.Pool;

beforeAll(async () => {
  access = await startTracedAccess();
  platform = await startTestPlatform({ access });
  proxy = await startFaultProxy(platform.url);
  // Only calls to the event service go through the proxy.
  const env = { DIR_PLATFORM_EVENT_SERVICE_V1: `${proxy.url}/event/v1` };
  handler = await startTestTokenHandler({ platform, directory: env, pace: { lease: 5_000 } });
  replicas = await Promise.all([1, 2, 3].map(() => handler.startReplica()));
  await handler.configure({ 'permits-web': {} });
  events = new pg.Pool({ connectionString: platform.databaseUrl, max: 1 });
  await events.query(`
    CREATE TABLE seen_events (LIKE events);
    CREATE FUNCTION see_event() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO seen_events SELECT NEW.*; RETURN NULL; END $$;
    CREATE TRIGGER seen AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION see_event()`);
});
afterAll(async () => {
  await events.end();
  for (const replica of replicas) await replica.close();
  await handler.close();
  await proxy.close();
  await platform.close();
  await access.close();
});
beforeEach(async () => {
  await proxy.heal();
  // Waits until the events of the previous test are sent, so that this test does not count them.
  await expect.poll(pending('client_events')).toEqual([]);
  await events.query('TRUNCATE seen_events');
});

const pending = (table: string) => () => handler.rows(`SELECT FROM ${table}`);
const eventCalls = () => proxy.calls.filter((line) => line.startsWith('POST /event/v1/events')).length;
const seen = async () => (await events.query('SELECT FROM seen_events')).rowCount;

describe('events', () => {
  it('are sent once each, by any replica', async () => {
    for (let count = 0; count < 5; count += 1) await handler.register('permits-web');
    await expect.poll(pending('client_events')).toEqual([]);
    expect(await seen()).toBe(5);
    expect(eventCalls()).toBe(5);
  });

  it('are retried until the event service accepts them; the registration has succeeded before', async () => {
    await proxy.break(503, { at: 1, times: 3 });
    expect((await handler.register('permits-web')).status).toBe(200);
    await expect.poll(pending('client_events')).toEqual([]);
    expect(await seen()).toBe(1);
  });

  it('are sent again with the same idempotency key if the response is lost, and count once', async () => {
    await proxy.break('lost response', { at: 1, times: 1 });
    await handler.register('permits-web');
    await expect.poll(pending('client_events')).toEqual([]);
    expect(eventCalls()).toBe(2);
    // The event service of the reference implementation ignores the idempotency key.
    expect(await seen()).toBe(isReferenceRun ? 2 : 1);
  });
});

describe('deletions', () => {
  it('happen once each, in any replica', async () => {
    const lines = handler.log.lines().length;
    for (let count = 0; count < 5; count += 1) await handler.register('permits-web');
    await expect.poll(pending('client_deletions')).toEqual([]);
    expect(access.registeredClients()).toHaveLength(1);
    const since = handler.log.lines().slice(lines);
    expect(since.filter(({ msg }) => msg === 'replaced client deleted at the identity provider')).toHaveLength(5);
    expect(since.filter(({ msg }) => String(msg).startsWith('replaced client not deleted'))).toEqual([]);
  });
});

it('the metrics show how many deletions and events wait', async () => {
  await proxy.break(503, { at: 1 });
  await handler.register('permits-web');
  const metrics = async () => (await fetch(`${handler.metricsUrl}/metrics`)).text();
  await expect.poll(metrics).toContain('formgate_registration_leftovers{kind="event"} 1');
  await proxy.heal();
  await expect.poll(metrics).toContain('formgate_registration_leftovers{kind="event"} 0');
});

it('what a process that stops has not done is done by another replica', async () => {
  const leaving = await handler.startReplica();
  await handler.register('permits-web');
  await leaving.close();
  await expect.poll(pending('client_deletions')).toEqual([]);
  await expect.poll(pending('client_events')).toEqual([]);
});

it('an event that is always refused is quarantined with the reason, delays nothing, and is sent once it is released', async () => {
  const refusals = 3;
  const pace = { firstRetry: 10, longestRetry: 20, refusals };
  const patient = await startTestTokenHandler({
    platform,
    directory: { DIR_PLATFORM_EVENT_SERVICE_V1: `${proxy.url}/event/v1` },
    pace: { lease: 5_000, ...pace },
  });
  const entries = () => patient.rows('SELECT kind, reason, detail, attempts, about FROM quarantine WHERE NOT released');
  try {
    await patient.configure({ 'permits-web': {} });
    await proxy.break(422, { at: 1, times: refusals });
    await patient.register('permits-web');
    await expect
      .poll(entries)
      .toMatchObject([{ kind: 'client-event', reason: 'service-refused', detail: 'events 422', attempts: refusals }]);
    await patient.register('permits-web');
    await expect.poll(() => patient.rows("SELECT FROM client_events WHERE not_before < 'infinity'")).toEqual([]);
    const metrics = async () => (await fetch(`${patient.metricsUrl}/metrics`)).text();
    expect(await metrics()).toContain('formgate_quarantined_items{kind="client-event",reason="service-refused"} 1');
    expect(await metrics()).toContain('formgate_registration_leftovers{kind="event"} 0');
    const pool = new pg.Pool({ connectionString: patient.databaseUrl, max: 2 });
    expect(await createWorkQuarantine({ pool, clock: () => new Date() }).release('all')).toHaveLength(1);
    await pool.end();
    await expect.poll(() => patient.rows('SELECT FROM client_events')).toEqual([]);
  } finally {
    await patient.close();
  }
});
