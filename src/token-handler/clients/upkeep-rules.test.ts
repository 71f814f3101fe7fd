// Tests how upkeep processes each row, and what it does if the work fails. The rows are in Postgres. The test records
// the calls to the identity provider and the event service in memory, and decides which of them fail.
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createMetrics, type Metrics } from '../../service/operations/metrics.ts';
import { productVersion } from '../../service/operations/product-version.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { createLeftoverClients } from './leftover-clients.ts';
import type { ProviderRegistration } from './provider-registration.ts';
import {
  openRegistration,
  type Registration,
  registrationColumns,
  sealRegistration,
  sealToken,
} from './registration.ts';
import { startUpkeep } from './upkeep.ts';
import type { UpkeepPace } from './upkeep-pace.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const tenantId = 'urn:example:tenant';
const keyOf = (name: string, byte: number) => `${name}:${Buffer.alloc(32, byte).toString('base64')}`;
const rings = {
  current: createKeyRing(`${keyOf('k2', 2)},${keyOf('k1', 1)}`),
  old: createKeyRing(keyOf('k1', 1)),
  other: createKeyRing(keyOf('k3', 3)),
};

let database: TestDatabase;
let pool: pg.Pool;
let now: number;
let log: CapturedLog;
let metrics: Metrics;
let upkeep: ReturnType<typeof startUpkeep> | undefined;
/** `removed` and `sent` record the requested deletions and the events. `remove` and `accept` decide their outcomes. */
let removed: unknown[];
let sent: unknown[];
let remove: () => Promise<'removed' | 'refused'>;
let accept: () => Promise<void>;

beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  now = new Date('2026-08-20T17:00:00Z').getTime();
  [log, metrics] = [captureLog(), createMetrics()];
  [removed, sent] = [[], []];
  remove = async () => 'removed';
  accept = async () => undefined;
  await pool.query(
    `TRUNCATE client_deletions, client_events, client_leftovers, client_registrations, registration_attempts,
       quarantine, key_ring_keys`,
  );
});
afterEach(() => upkeep?.stop());

function start(pace: Partial<UpkeepPace> = {}, timeout = 10_000) {
  upkeep = startUpkeep({
    ...{ pool, metrics, keys: rings.current, log: log.log, clock: () => new Date(now) },
    leftovers: createLeftoverClients(unsharedPool(pool)),
    provider: {
      remove(client) {
        removed.push(client);
        return remove();
      },
    } as ProviderRegistration,
    events: {
      send(event) {
        sent.push(event);
        return accept();
      },
    },
    ...{ timeout, pace: { poll: 5, ...pace } },
  });
  return upkeep;
}

const at = (milliseconds = 0) => new Date(now + milliseconds);
const eventId = (nth: number) => `00000000-0000-4000-8000-0000000000${String(nth).padStart(2, '0')}`;
const addEvent = (nth = 1) =>
  pool.query(
    `INSERT INTO client_events (id, tenant_id, name, payload, created, not_before) VALUES ($1, $2, $3, $4, $5, $5)`,
    [eventId(nth), tenantId, `event-${nth}`, { nth }, at()],
  );
async function addDeletion({ keys = rings.current, uri = 'https://a/1', name = 'web (registration 1)' } = {}) {
  const token = sealToken(keys, { tenantId, oidcClientId: 'oidc-1' }, 'the token');
  await pool.query(
    `INSERT INTO client_deletions (tenant_id, client_id, realm, client_name, oidc_client_id,
       registration_access_token, registration_client_uri, created, not_before)
     VALUES ($1, 'web', 'demo', $2, 'oidc-1', $3, $4, $5, $5)`,
    [tenantId, name === '' ? null : name, token, uri, at()],
  );
}
const rows = async (table: string, columns = '1') => (await pool.query(`SELECT ${columns} FROM ${table}`)).rows;
const isDone = async (table: string) => expect.poll(() => rows(table)).toEqual([]);
const linesWith = (msg: string) => log.lines().filter((line) => line.msg === msg);
const hasLogged = (msg: string, count = 1) => expect.poll(() => linesWith(msg).length).toBe(count);
const unavailable = () => Promise.reject(new PlatformError('events', 'failed', { upstreamStatus: 503 }));
const refused = () => Promise.reject(new PlatformError('events', 'rejected', { upstreamStatus: 422 }));

describe('a replaced client', () => {
  it('is deleted with its own token, which the log says without it', async () => {
    await addDeletion();
    start();
    await isDone('client_deletions');
    expect(removed).toMatchObject([{ registrationAccessToken: 'the token', registrationClientUri: 'https://a/1' }]);
    expect(linesWith('replaced client deleted at the identity provider')).toMatchObject([
      { level: 'info', tenant: tenantId, client: 'web', oidcClientId: 'oidc-1' },
    ]);
    expect(log.text()).not.toContain('the token');
    expect(await rows('client_leftovers')).toEqual([]);
  });

  it.each([
    ['web (registration 1)', 'web (registration 1)'],
    ['', 'web'],
  ])('whose deletion is refused is recorded for administrators under its name: %j', async (name, shown) => {
    remove = async () => 'refused';
    await addDeletion({ name });
    start();
    await isDone('client_deletions');
    expect(await rows('client_leftovers', 'client_name AS name, reason, created')).toEqual([
      { name: shown, reason: 'token-refused', created: at() },
    ]);
    expect(log.lines()).toMatchObject([{ level: 'warn', client: 'web', oidcClientId: 'oidc-1', clientName: shown }]);
  });

  it('that an administrator provided is not deleted', async () => {
    await addDeletion({ uri: '' });
    start();
    await isDone('client_deletions');
    expect([removed, log.lines(), await rows('client_leftovers')]).toEqual([[], [], []]);
  });

  it('whose token no key opens is quarantined at once', async () => {
    await addDeletion({ keys: rings.other });
    start();
    await hasLogged('item quarantined');
    expect(linesWith('item quarantined')).toMatchObject([
      { level: 'warn', kind: 'client-deletion', tenant: tenantId, oidcClientId: 'oidc-1', reason: 'key-missing' },
    ]);
    expect(await rows('quarantine', 'kind, reason, detail, first_seen AS seen')).toEqual([
      { kind: 'client-deletion', reason: 'key-missing', detail: '', seen: at() },
    ]);
    expect(removed).toEqual([]);
  });
});

describe('an event', () => {
  it('is sent with its time, and its id as idempotency key', async () => {
    await addEvent();
    start();
    await isDone('client_events');
    expect(sent).toEqual([
      {
        ...{ namespace: 'token-handler', name: 'event-1', tenantId, payload: { nth: 1 } },
        ...{ timestamp: at().toISOString(), context: { idempotencyKey: eventId(1) } },
      },
    ]);
    expect(log.lines()).toEqual([]);
  });

  it('is retried later after an outage, which the log says, and an outage does not count as a refusal', async () => {
    accept = unavailable;
    await addEvent();
    start({ firstRetry: 1_000, longestRetry: 1_500, refusals: 1 });
    await hasLogged('event failed, retrying');
    const about = { level: 'warn', tenant: tenantId, event: 'event-1', kind: 'failed', status: 503 };
    const first = linesWith('event failed, retrying')[0];
    expect(first).toMatchObject({ ...about, attempts: 1 });
    expect(first?.retryInMs).toBeGreaterThanOrEqual(500);
    expect(first?.retryInMs).toBeLessThanOrEqual(1_000);
    // The line is logged before the row is written.
    const stored = () => rows('client_events', 'not_before AS due, refusals');
    await expect.poll(stored).toEqual([{ due: at(Number(first?.retryInMs)), refusals: 0 }]);
    now += Number(first?.retryInMs);
    await hasLogged('event failed, retrying', 2);
    const second = linesWith('event failed, retrying')[1];
    expect(second).toMatchObject({ ...about, attempts: 2 });
    // Twice `firstRetry` exceeds `longestRetry`. The second wait is therefore between half of `longestRetry` and
    // `longestRetry`.
    expect(second?.retryInMs).toBeGreaterThanOrEqual(750);
    expect(second?.retryInMs).toBeLessThanOrEqual(1_500);
    accept = async () => undefined;
    now += 1_500;
    await isDone('client_events');
    expect(sent).toHaveLength(3);
  });

  it('that fails for another reason is retried, and the log has the error', async () => {
    accept = () => Promise.reject(new Error('a defect'));
    await addEvent();
    start({ refusals: 1 });
    await hasLogged('event failed, retrying');
    expect(linesWith('event failed, retrying')).toMatchObject([{ err: { message: 'a defect' } }]);
    expect(await rows('quarantine')).toEqual([]);
  });

  it('that is always refused is quarantined at the last of its refusals', async () => {
    accept = refused;
    await addEvent();
    start({ firstRetry: 10, longestRetry: 10, refusals: 2 });
    await hasLogged('event failed, retrying');
    await expect.poll(() => rows('client_events', 'refusals')).toEqual([{ refusals: 1 }]);
    expect(await rows('quarantine')).toEqual([]);
    now += 10;
    await hasLogged('item quarantined');
    expect(linesWith('item quarantined')).toMatchObject([
      { level: 'warn', kind: 'client-event', event: 'event-1', reason: 'service-refused', detail: 'events 422' },
    ]);
    expect(await rows('quarantine', 'attempts')).toEqual([{ attempts: 2 }]);
    expect(sent).toHaveLength(2);
  });

  it('that fails delays no other', async () => {
    let calls = 0;
    accept = () => {
      calls += 1;
      return calls === 1 ? unavailable() : Promise.resolve();
    };
    for (const nth of [1, 2, 3]) await addEvent(nth);
    start();
    await expect.poll(() => rows('client_events')).toHaveLength(1);
  });
});

describe('upkeep', () => {
  it('looks again at once after a full batch, and otherwise after its pause or a nudge', async () => {
    for (let nth = 1; nth <= 25; nth += 1) await addEvent(nth);
    const { nudge } = start({ poll: hour });
    await isDone('client_events');
    await addEvent(1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sent).toHaveLength(25);
    nudge();
    await isDone('client_events');
    expect(sent).toHaveLength(26);
  });

  it('looks again at once after a full batch of replaced clients', async () => {
    for (let nth = 1; nth <= 15; nth += 1) await addDeletion({ uri: `https://a/${nth}` });
    start({ poll: hour });
    await isDone('client_deletions');
    expect(removed).toHaveLength(15);
  });

  it('that stops completes the work that it has begun, and begins no more', async () => {
    const [began, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    accept = () => {
      began.resolve();
      return answer.promise;
    };
    await addEvent();
    const { stop } = start();
    await began.promise;
    let hasStopped = false;
    const stopped = stop().then(() => {
      hasStopped = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(hasStopped).toBe(false);
    answer.resolve();
    await stopped;
    expect(await rows('client_events')).toEqual([]);
    await addEvent(2);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(sent).toHaveLength(1);
  });

  it('that stops also completes its other work if the database fails to store that one item is done', async () => {
    const [others, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await addEvent(1);
    await addEvent(2);
    await pool.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`);
    await pool.query(`CREATE TRIGGER refuse BEFORE DELETE ON client_events
      FOR EACH ROW WHEN (OLD.name = 'event-1') EXECUTE FUNCTION refuse()`);
    onTestFinished(async () => void (await pool.query('DROP FUNCTION refuse CASCADE')));
    let hasAnswered = false;
    accept = async () => {
      if ((sent.at(-1) as { name: string }).name === 'event-1') return;
      others.resolve();
      await answer.promise;
      hasAnswered = true;
    };
    const { stop } = start({ poll: hour });
    await others.promise;
    // In this time, the database refuses to delete the row of the first event. The second event is still being sent.
    await new Promise((resolve) => setTimeout(resolve, 100));
    const stopped = stop().then(() => hasAnswered);
    setTimeout(answer.resolve, 50);
    expect(await stopped).toBe(true);
    expect(await rows('client_events', 'name')).toEqual([{ name: 'event-1' }]);
    expect(linesWith('upkeep of registrations failed')).toMatchObject([{ level: 'warn', err: { code: 'P0001' } }]);
  });

  it('that stops while it deletes clients begins to send no events', async () => {
    const [began, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    remove = async () => {
      began.resolve();
      await answer.promise;
      return 'removed';
    };
    await addDeletion();
    await addEvent();
    const { stop } = start();
    await began.promise;
    const stopped = stop();
    answer.resolve();
    await stopped;
    expect([await rows('client_deletions'), sent]).toEqual([[], []]);
  });

  it('goes on after a failure of the database, which the log says', async () => {
    await pool.query('ALTER TABLE client_deletions RENAME TO away');
    await addEvent();
    const { nudge } = start({ poll: hour });
    const failed = 'upkeep of registrations failed';
    await hasLogged(failed);
    expect(linesWith(failed)[0]).toMatchObject({ level: 'warn', err: { code: '42P01' } });
    // A failure is followed by a pause.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(linesWith(failed)).toHaveLength(1);
    await pool.query('ALTER TABLE away RENAME TO client_deletions');
    nudge();
    await isDone('client_events');
  });

  it('names the attempts to register that were interrupted, to administrators', async () => {
    const begin = (nth: number, age: number) =>
      pool.query(
        `INSERT INTO registration_attempts (id, tenant_id, client_id, realm, client_name, started)
         VALUES ($1, $2, 'web', 'demo', $3, $4)`,
        [eventId(nth), tenantId, `web (registration ${nth})`, at(-age)],
      );
    await begin(1, 300_001);
    await begin(2, 299_999);
    start();
    await expect
      .poll(() => rows('client_leftovers', 'client_name AS name'))
      .toEqual([{ name: 'web (registration 1)' }]);
    expect(log.lines()).toMatchObject([{ level: 'warn', tenant: tenantId, clientName: 'web (registration 1)' }]);
  });

  it.each([
    ['a minute by default', 10_000, minute],
    ['twice the longest duration of a call, if that is longer', 2 * minute, 4 * minute],
  ])('keeps a row from other pods for %s', async (_what, timeout, lease) => {
    const [began, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    accept = () => {
      began.resolve();
      return answer.promise;
    };
    await addEvent();
    start({}, timeout);
    await began.promise;
    const claimed = await rows('client_events', 'not_before AS due');
    answer.resolve();
    expect(claimed).toEqual([{ due: at(lease) }]);
  });

  it.each([
    ['after five minutes by default', 10_000, 5 * minute],
    ['after six times the longest duration of a call, if that is longer', 2 * minute, 12 * minute],
  ])('counts an attempt to register as interrupted %s', async (_what, timeout, age) => {
    const begin = (nth: number, since: number) =>
      pool.query(
        `INSERT INTO registration_attempts (id, tenant_id, client_id, realm, client_name, started)
         VALUES ($1, $2, 'web', 'demo', $3, $4)`,
        [eventId(nth), tenantId, `web (registration ${nth})`, at(-since)],
      );
    await begin(1, age + 1);
    await begin(2, age - 1);
    start({}, timeout);
    const names = () => rows('client_leftovers', 'client_name AS name');
    await expect.poll(names).toEqual([{ name: 'web (registration 1)' }]);
    expect(await rows('registration_attempts', 'client_name AS name')).toEqual([{ name: 'web (registration 2)' }]);
  });

  it('exports how much waits', async () => {
    accept = unavailable;
    await addEvent();
    await addEvent(2);
    start();
    await hasLogged('event failed, retrying', 2);
    await pool.query(
      `INSERT INTO client_leftovers (tenant_id, client_id, realm, client_name, reason, created)
       VALUES ($1, 'web', 'demo', 'web', 'no-token', $2)`,
      [tenantId, at()],
    );
    const exported = async () =>
      (await metrics.registry.getSingleMetric('formgate_registration_leftovers')?.get())?.values.map(
        ({ labels, value }) => [labels.kind, value],
      );
    expect(await exported()).toEqual([
      ['deletion', 0],
      ['event', 2],
      ['client', 1],
    ]);
    await pool.query('ALTER TABLE client_leftovers RENAME TO away');
    onTestFinished(async () => void (await pool.query('ALTER TABLE away RENAME TO client_leftovers')));
    expect(await exported()).toEqual([
      ['deletion', 0],
      ['event', 2],
    ]);
  });
});

describe('the housekeeping', () => {
  it('seals secrets with the current key, and counts those that no key opens', async () => {
    await addDeletion({ keys: rings.old });
    await addDeletion({ keys: rings.other });
    await pool.query(`UPDATE client_deletions SET not_before = 'infinity'`);
    start();
    await hasLogged('secrets encrypted with the current key');
    expect(linesWith('secrets encrypted with the current key')).toMatchObject([{ level: 'info', resealed: 1 }]);
    await expect.poll(() => log.lines().at(-1)).toMatchObject({ level: 'error', unreadable: 1 });
    const sealed = await rows('client_deletions', `split_part(registration_access_token, '.', 1) AS key`);
    expect(sealed.map(({ key }) => key).sort()).toEqual(['k2', 'k3']);
    const age = await metrics.registry.getSingleMetric('formgate_key_ring_current_key_age_seconds')?.get();
    expect(age?.values).toMatchObject([{ value: 0 }]);
  });

  it('seals the secrets of a registration with the current key, which stays readable', async () => {
    const registration = {
      tenantId,
      oidcClientId: 'oidc-1',
      clientSecret: 'a secret',
      registrationAccessToken: 'a token',
    };
    const { clientSecret, registrationAccessToken } = sealRegistration(rings.old, registration as Registration);
    await pool.query(
      `INSERT INTO client_registrations (tenant_id, client_id, realm, oidc_client_id, client_secret,
         registration_access_token, registration_client_uri, redirect_uris, registered_at)
       VALUES ($1, 'web', 'demo', 'oidc-1', $2, $3, '', '[]', $4)`,
      [tenantId, clientSecret, registrationAccessToken, at()],
    );
    start();
    await hasLogged('secrets encrypted with the current key');
    const [stored] = await rows('client_registrations', registrationColumns);
    expect(stored).toMatchObject({ revision: 1, clientSecret: expect.stringMatching(/^k2\./) });
    expect(openRegistration(createKeyRing(keyOf('k2', 2)), stored)).toMatchObject(registration);
  });

  it('removes the oldest quarantined rows of a tenant with more than 1,000, which the log says', async () => {
    await pool.query(
      `INSERT INTO client_events (id, tenant_id, name, payload, created, not_before)
       SELECT gen_random_uuid(), $1, 'x', '{}', $2, 'infinity' FROM generate_series(1, 1002)`,
      [tenantId, at()],
    );
    await pool.query(
      `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
       SELECT 'client-event', id::text, tenant_id, '{}', 'service-refused', '', created, created, 10, $1
       FROM client_events`,
      [productVersion()],
    );
    start();
    const removal = 'oldest failed deletions and events of clients removed';
    await hasLogged(removal);
    expect(linesWith(removal)).toMatchObject([{ level: 'warn', removed: 2 }]);
    expect(await rows('client_events')).toHaveLength(1_000);
  });

  it('runs at the start and each hour: it records the key, and forgets leftovers after 90 days', async () => {
    const add = (name: string, age: number) =>
      pool.query(
        `INSERT INTO client_leftovers (tenant_id, client_id, realm, client_name, reason, created)
         VALUES ($1, 'web', 'demo', $2, 'no-token', $3)`,
        [tenantId, name, at(-age)],
      );
    const names = async () => (await rows('client_leftovers', 'client_name AS name')).map(({ name }) => name);
    await add('old', 90 * day + 1);
    await add('young', 90 * day);
    start();
    await expect.poll(names).toEqual(['young']);
    expect(await rows('key_ring_keys', 'name, first_seen AS seen')).toEqual([{ name: 'k2', seen: at() }]);
    expect(log.lines()).toEqual([]);
    now += hour - 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await names()).toEqual(['young']);
    now += 1;
    await expect.poll(names).toEqual([]);
  });

  it('is repeated at the next poll if it failed', async () => {
    await pool.query('ALTER TABLE client_leftovers RENAME TO elsewhere');
    start();
    await expect.poll(() => linesWith('upkeep of registrations failed').length).toBeGreaterThan(0);
    await pool.query('ALTER TABLE elsewhere RENAME TO client_leftovers');
    await pool.query(
      `INSERT INTO client_leftovers (tenant_id, client_id, realm, client_name, reason, created)
       VALUES ($1, 'web', 'demo', 'old', 'no-token', $2)`,
      [tenantId, at(-90 * day - 1)],
    );
    await isDone('client_leftovers');
  });

  it('releases what another version has quarantined', async () => {
    await addEvent();
    await pool.query(`UPDATE client_events SET not_before = 'infinity'`);
    await pool.query(
      `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
       VALUES ('client-event', $1, $2, '{}', 'service-refused', '', $3, $3, 10, 'another')`,
      [eventId(1), tenantId, at()],
    );
    start();
    await isDone('client_events');
    await isDone('quarantine');
    expect(metrics.registry.getSingleMetric('formgate_quarantined_items')).toBeDefined();
  });
});
