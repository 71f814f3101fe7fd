// Tests registrations in Postgres: storage, encryption of secrets, and key rotation.
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { recordRequesters } from '../../../test/support/requesters.ts';
import { createKeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createPool } from '../../service/postgres/postgres.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { changeConnections, sharePools } from './clients.ts';
import { createPendingWorkStore } from './pending-work-store.ts';
import { openToken, type Registration, type StoredRegistration } from './registration.ts';
import { createRegistrationStore, type RegistrationStore } from './registration-store.ts';

const key = (name: string) => `${name}:${randomBytes(32).toString('base64')}`;
const [first, second] = [key('first'), key('second')];
const event = { name: 'client-registered', payload: {} };
const now = new Date('2026-08-20T17:00:00Z');

const registration: Registration = {
  tenantId: 'urn:example:platform:tenant-service:v2:/tenants/1',
  clientId: 'permits-web',
  realm: 'demo',
  oidcClientId: 'oidc-1',
  clientName: 'permits-web (registration 1)',
  issuer: null,
  authentication: 'client_secret_basic',
  management: 'kept',
  clientSecret: 'canary-secret',
  registrationAccessToken: 'canary-token',
  registrationClientUri: 'https://access.example.org/auth/realms/demo/clients-registrations/openid-connect/oidc-1',
  redirectUris: ['https://permits.example.org/cb'],
  registeredAt: now,
};

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  store = storeWith(first);
});
afterAll(() => database.drop());
beforeEach(() =>
  pool.query(
    'TRUNCATE client_registrations, client_deletions, client_events, client_leftovers, quarantine, registration_attempts',
  ),
);

const { log, lines } = captureLog();
const metrics = createMetrics();
/** The mapped issuers (TENANT_ISSUERS), keyed by realm. */
let issuers: Record<string, string> = {};
const storeWith = (keys: string, pools = { pool: unsharedPool(pool), changePool: unsharedPool(pool) }) =>
  createRegistrationStore({
    ...pools,
    mostOfTenant: 1_000,
    keys: createKeyRing(keys),
    log,
    metrics,
    mappedIssuer: (realm) => issuers[realm],
  });
const pendingWorkWith = (keys: string) => createPendingWorkStore({ pool, keys: createKeyRing(keys) });
let store: RegistrationStore;
const unreadable = { slug: 'unavailable', cause: expect.any(KeyRingError) };

async function replace(changes: Partial<Registration> = {}) {
  const wanted = { ...registration, ...changes };
  if (wanted.management === 'provided') return store.provide(wanted, event, { isLimited: true });
  await store.replace(wanted, (await store.begin({ ...wanted, started: now, isLimited: true })).id, event);
}
const begin = async () => (await store.begin({ ...registration, started: now, isLimited: true })).id;
const find = (keys = first) => storeWith(keys).find(registration.tenantId, registration.clientId);

describe('a registration', () => {
  it('is found by the id of the client, with everything that was stored', async () => {
    await replace();
    expect(await find()).toMatchObject(registration);
  });

  it('is not found for another tenant or another client', async () => {
    await replace();
    expect(await store.find('urn:example:other', 'permits-web')).toBeUndefined();
    expect(await store.find(registration.tenantId, 'oidc-1')).toBeUndefined();
  });

  it('is not cached, so that every replica uses what was stored last', async () => {
    await replace();
    await find();
    await replace({ oidcClientId: 'oidc-2', clientSecret: 'other' });
    expect(await find()).toMatchObject({ oidcClientId: 'oidc-2', clientSecret: 'other' });
  });

  it('shows neither secret nor token in a dump of the database, and neither does a replaced one', async () => {
    await replace();
    await replace({ oidcClientId: 'oidc-2' });
    const tables = ['client_registrations', 'client_deletions', 'client_events', 'registration_attempts'];
    const dumps = await Promise.all(tables.map(async (table) => (await pool.query(`SELECT * FROM ${table}`)).rows));
    expect(JSON.stringify(dumps)).toContain('oidc-1');
    expect(JSON.stringify(dumps)).not.toContain('canary');
  });

  it('cannot be opened with a secret or token of another row or column', async () => {
    await replace();
    await replace({ clientId: 'other', oidcClientId: 'oidc-2' });
    for (const sql of [
      "UPDATE client_registrations a SET client_secret = b.client_secret FROM client_registrations b WHERE a.client_id = 'permits-web' AND b.client_id = 'other'",
      "UPDATE client_registrations SET client_secret = registration_access_token WHERE client_id = 'permits-web'",
    ]) {
      await pool.query(sql);
      await expect(find()).rejects.toMatchObject(unreadable);
    }
  });
});

/** Starts a change with the result `slow`, which ends after `response` is resolved. */
async function startSlowChange() {
  const [began, response] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = store.change(registration.tenantId, registration.clientId, async () => {
    began.resolve();
    await response.promise;
    return { result: 'slow' };
  });
  await began.promise;
  return { slow, response };
}

/** Returns the number of connections that wait for a lock. */
async function countWaiting() {
  const sql = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  return (await pool.query(sql)).rowCount;
}

describe('the registrations of a tenant', () => {
  it('are listed by the id of the client, without secrets', async () => {
    await replace();
    await replace({ clientId: 'other', oidcClientId: 'oidc-2', management: 'provided', redirectUris: [] });
    await replace({ tenantId: 'urn:example:other', oidcClientId: 'oidc-3' });
    await replace({ clientId: 'removed', oidcClientId: 'oidc-4' });
    const ids = ['permits-web', 'other', 'never registered'];
    expect(
      Object.fromEntries(await store.summaries({ id: registration.tenantId, name: 'Demo', realm: 'demo' }, ids)),
    ).toEqual({
      'permits-web': {
        ...{ clientId: 'oidc-1', registeredAt: now, management: 'kept' },
        redirectUris: registration.redirectUris,
      },
      other: { clientId: 'oidc-2', registeredAt: now, management: 'provided', redirectUris: [] },
    });
  });

  it('are listed only if they are in the present realm of the tenant', async () => {
    await replace();
    const tenant = { id: registration.tenantId, name: 'Demo', realm: 'new-realm' };
    expect((await store.summaries(tenant, ['permits-web'])).size).toBe(0);
  });

  it('count only at the identity provider that the operator has chosen for the tenant', async () => {
    const issuer = 'https://login.example.org';
    await replace();
    await replace({ clientId: 'mapped', oidcClientId: 'oidc-2', issuer });
    const { tenantId } = registration;
    const usable = async () => {
      const found: unknown[] = [
        [...(await store.summaries({ id: tenantId, name: 'Demo', realm: 'demo' }, ['permits-web', 'mapped'])).keys()],
      ];
      for (const clientId of ['permits-web', 'mapped']) {
        found.push((await store.find(tenantId, clientId))?.oidcClientId);
        found.push(await store.change(tenantId, clientId, async (present) => ({ result: present?.oidcClientId })));
      }
      return found;
    };
    expect(await usable()).toEqual([['permits-web'], 'oidc-1', 'oidc-1', undefined, undefined]);
    issuers = { demo: issuer };
    onTestFinished(() => {
      issuers = {};
    });
    expect(await usable()).toEqual([['mapped'], undefined, undefined, 'oidc-2', 'oidc-2']);
  });
});

describe('an attempt to register', () => {
  const attempts = async () =>
    (
      await pool.query(
        `SELECT id, tenant_id AS "tenantId", client_id AS "clientId", realm, issuer, client_name AS "clientName",
           started, failed FROM registration_attempts`,
      )
    ).rows;

  it('is recorded with the name that its client will have, until it is forgotten', async () => {
    const { tenantId, clientId, realm } = registration;
    const owner = { tenantId, clientId, realm, issuer: 'https://login.example.org' };
    const { id, clientName } = await store.begin({ ...owner, started: now, isLimited: true });
    expect(clientName).toBe(`permits-web (registration ${id})`);
    expect(await attempts()).toEqual([{ id, ...owner, clientName, started: now, failed: false }]);
    const other = await begin();
    await store.forget(id, owner);
    expect(await attempts()).toMatchObject([{ id: other }]);
  });

  it('that failed is marked, so that it need not grow old', async () => {
    const [failed, other] = [await begin(), await begin()];
    await store.giveUp(failed, registration);
    const found = Object.fromEntries((await attempts()).map((row) => [row.id, row.failed]));
    expect(found).toEqual({ [failed]: true, [other]: false });
  });

  it('is forgotten with the registration that it leads to, which has an event', async () => {
    const other = await begin();
    await store.replace(registration, await begin(), { name: 'client-registered', payload: { x: 1 } });
    await store.provide({ ...registration, oidcClientId: 'oidc-2' }, event, { isLimited: true });
    expect(await attempts()).toMatchObject([{ id: other }]);
    const sql =
      'SELECT tenant_id AS tenant, name, payload, created, not_before AS due FROM client_events ORDER BY payload DESC';
    const common = { tenant: registration.tenantId, name: 'client-registered', created: now, due: now };
    expect((await pool.query(sql)).rows).toEqual([
      { ...common, payload: { x: 1 } },
      { ...common, payload: {} },
    ]);
  });
});

describe('a client that nothing can delete', () => {
  const leftovers = async () => {
    const columns = 'client_name AS name, oidc_client_id AS id, registration_client_uri AS uri, reason, issuer';
    return (await pool.query(`SELECT ${columns} FROM client_leftovers ORDER BY created, oidc_client_id`)).rows;
  };
  const deletions = async () => (await pool.query('SELECT FROM client_deletions')).rowCount;

  it('is recorded for administrators when it is replaced', async () => {
    await replace({ management: 'lost' });
    await replace({ oidcClientId: 'oidc-2', management: 'unsupported', registrationClientUri: '', clientName: null });
    await replace({ oidcClientId: 'oidc-3', management: 'provided' });
    await replace({ oidcClientId: 'oidc-4' });
    expect(await leftovers()).toEqual([
      {
        ...{ name: registration.clientName, id: 'oidc-1', uri: registration.registrationClientUri },
        ...{ reason: 'token-lost', issuer: null },
      },
      { name: 'permits-web', id: 'oidc-2', uri: null, reason: 'no-token', issuer: null },
    ]);
    expect(await deletions()).toBe(0);
  });

  it('is not recorded if the new registration has the same client', async () => {
    for (const management of ['lost', 'unsupported', 'kept', 'kept'] as const) await replace({ management });
    expect([await leftovers(), await deletions()]).toEqual([[], 0]);
  });

  it('is recorded when it cannot be stored, unless it is stored after all', async () => {
    const lost = { ...registration, management: 'unsupported' as const };
    await store.discard(lost, await begin(), now);
    expect(await leftovers()).toMatchObject([{ name: registration.clientName, id: 'oidc-1', reason: 'no-token' }]);
    await replace({ oidcClientId: 'oidc-2' });
    await store.discard({ ...lost, oidcClientId: 'oidc-2' }, await begin(), now);
    expect([(await leftovers()).length, await deletions()]).toEqual([1, 0]);
  });
});

it('a client that an administrator provides is neither deleted nor recorded any more', async () => {
  const { tenantId } = registration;
  for (const oidcClientId of ['oidc-1', 'oidc-2']) {
    await store.discard({ ...registration, oidcClientId }, await begin(), now);
    await store.discard({ ...registration, oidcClientId, management: 'unsupported' }, await begin(), now);
  }
  const pendingWork = pendingWorkWith(first);
  for (const row of await pendingWork.claim('deletion', { now, until: now, limit: 10 }))
    await pendingWork.quarantine('deletion', row, { reason: 'key-missing', detail: '' }, now);
  const left = async () =>
    Promise.all(
      [
        `SELECT oidc_client_id AS id FROM client_deletions WHERE tenant_id = $1`,
        `SELECT oidc_client_id AS id FROM client_leftovers WHERE tenant_id = $1`,
        `SELECT about ->> 'oidcClientId' AS id FROM quarantine WHERE tenant_id = $1`,
      ].map(async (sql) =>
        (await pool.query<{ id: string }>(`${sql} ORDER BY id`, [tenantId])).rows.map(({ id }) => id),
      ),
    );
  await replace({ clientId: 'kept', oidcClientId: 'oidc-1' });
  const both = ['oidc-1', 'oidc-2'];
  expect(await left()).toEqual([both, both, both]);
  await replace({ clientId: 'provided', oidcClientId: 'oidc-1', management: 'provided' });
  expect(await left()).toEqual([['oidc-2'], ['oidc-2'], ['oidc-2']]);
});

describe('a replaced registration', () => {
  it('is scheduled for deletion in the same transaction', async () => {
    await replace();
    await replace({ oidcClientId: 'oidc-2' });
    const claim = { now, until: new Date(now.getTime() + 60_000), limit: 10 };
    const { clientSecret: _, redirectUris: __, registeredAt: ___, ...sealed } = registration;
    const { authentication: ____, management: _____, ...needed } = sealed;
    expect(await pendingWorkWith(first).claim('deletion', claim)).toMatchObject([
      { ...needed, registrationAccessToken: expect.stringMatching(/^first\./) },
    ]);
    expect(await pendingWorkWith(first).claim('deletion', claim)).toEqual([]);
  });

  it('is scheduled for deletion once, also in a race of replacements', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `race-${index}`);
    await Promise.all(names.map((oidcClientId) => replace({ oidcClientId })));
    const { rows } = await pool.query<{ oidc_client_id: string }>('SELECT oidc_client_id FROM client_deletions');
    const present = (await find())?.oidcClientId ?? '';
    expect([...rows.map((row) => row.oidc_client_id), present].sort()).toEqual(names);
  });

  it('is discarded once, and never if it is stored', async () => {
    await replace();
    await store.discard(registration, await begin(), now);
    expect((await pool.query('SELECT FROM client_deletions')).rowCount).toBe(0);
    const lost = { ...registration, oidcClientId: 'lost' };
    for (let time = 0; time < 2; time += 1) await store.discard(lost, await begin(), now);
    expect((await pool.query('SELECT FROM client_deletions')).rowCount).toBe(1);
    expect((await pool.query('SELECT FROM registration_attempts')).rowCount).toBe(0);
  });

  it('is not claimed for deletion if it is registered', async () => {
    await store.discard(registration, await begin(), now);
    await replace();
    const claim = { now, until: now, limit: 10 };
    expect(await pendingWorkWith(first).claim('deletion', claim)).toEqual([]);
  });

  it('is claimed by only one of many pods', async () => {
    for (let count = 0; count < 20; count += 1) await replace({ oidcClientId: `claimed-${count}` });
    const claim = { now, until: new Date(now.getTime() + 60_000), limit: 3 };
    const claims = await Promise.all(Array.from({ length: 10 }, () => pendingWorkWith(first).claim('deletion', claim)));
    const claimed = claims.flat().map(({ id }) => id);
    expect(new Set(claimed).size).toBe(claimed.length);
  });
});

describe('a change', () => {
  it('that is saved late does not undo a newer one', async () => {
    await replace();
    const change = (token: string) =>
      store.change(registration.tenantId, registration.clientId, async (present) => {
        if (!present) throw new Error('nothing there');
        return { result: present, changed: { ...present, registrationAccessToken: token } };
      });
    const present = await change('second-token');
    await change('third-token');
    await store.save({ ...present, registrationAccessToken: 'second-token' });
    expect((await find())?.registrationAccessToken).toBe('third-token');
  });

  it('that could not be committed is saved later, once', async () => {
    await replace();
    const { tenantId, clientId } = registration;
    const present = await store.change(tenantId, clientId, async (found) => ({ result: found }));
    if (!present) throw new Error('nothing there');
    const changed = {
      ...{ clientSecret: 'new secret', redirectUris: [], registrationAccessToken: 'new token' },
      registrationClientUri: 'https://access.example.org/new',
    };
    await store.save({ ...present, ...changed });
    expect(await find()).toMatchObject({ ...changed, revision: present.revision + 1 });
    await store.save({ ...present, registrationAccessToken: 'another' });
    expect(await find()).toMatchObject(changed);
  });

  it('that is saved late brings back a token that the next change recorded as lost, and no other change', async () => {
    await replace();
    const { tenantId, clientId } = registration;
    const record = (changes: Partial<StoredRegistration>) =>
      store.change(tenantId, clientId, async (present) => {
        if (!present) throw new Error('nothing there');
        return { result: present, changed: { ...present, ...changes } };
      });
    const present = await record({ management: 'lost' });
    await store.save({ ...present, registrationAccessToken: 'new token' });
    const saved = { management: 'kept', registrationAccessToken: 'new token', revision: present.revision + 2 };
    expect(await find()).toMatchObject(saved);
    const next = await record({});
    await record({ management: 'lost' });
    await store.save({ ...next, registrationAccessToken: 'older token' });
    expect(await find()).toMatchObject({ management: 'lost', registrationAccessToken: 'new token' });
  });

  it('that waits while the registration is replaced gets the new registration', async () => {
    await replace();
    const { tenantId, clientId } = registration;
    const { slow, response } = await startSlowChange();
    const replaced = store.replace({ ...registration, oidcClientId: 'oidc-2' }, randomUUID(), event);
    await expect.poll(countWaiting, { interval: 5 }).toBe(1);
    const next = store.change(tenantId, clientId, async (present) => ({ result: present?.oidcClientId }));
    await expect.poll(countWaiting, { interval: 5 }).toBe(2);
    response.resolve();
    await Promise.all([slow, replaced]);
    expect(await next).toBe('oidc-2');
  });

  it('that throws changes nothing', async () => {
    await replace();
    const failing = store.change(registration.tenantId, registration.clientId, () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(await find()).toMatchObject(registration);
  });
});

describe('changes that wait for a slow identity provider', () => {
  it('keep no other tenant from signing in, and from changing its clients', async () => {
    const size = 4;
    const open = (connections: number) => createPool({ url: database.url, size: connections, log, metrics });
    const [requests, changes] = [open(size), open(changeConnections)];
    const config = { DATABASE_POOL_SIZE: size };
    const shared = storeWith(first, sharePools({ config, pool: requests, changePool: changes, metrics }));
    const other = { ...registration, tenantId: `${registration.tenantId}-other` };
    await replace();
    await replace(other);
    const { tenantId, clientId } = registration;
    const [began, response] = [Promise.withResolvers<StoredRegistration>(), Promise.withResolvers<void>()];
    const slow = shared.change(tenantId, clientId, async (present) => {
      if (present) began.resolve(present);
      await response.promise;
      return { result: undefined };
    });
    const present = await began.promise;
    const waiting = Array.from({ length: 8 }, (_, index) => [
      shared.replace({ ...registration, oidcClientId: `next-${index}` }, randomUUID(), event),
      shared.save(present),
    ]);
    const settled = Promise.allSettled([slow, ...waiting.flat()]);
    onTestFinished(async () => {
      response.resolve();
      await settled;
      await Promise.all([requests.end(), changes.end()]);
    });
    expect(await shared.find(other.tenantId, clientId)).toMatchObject(other);
    const result = await shared.change(other.tenantId, clientId, async (found) => ({ result: found?.tenantId }));
    expect(result).toBe(other.tenantId);
  });
});

describe('a statement', () => {
  it('uses the share of its tenant and client', async () => {
    const recorded = recordRequesters(pool);
    const { tenantId, clientId } = registration;
    store = storeWith(first, { pool: recorded.pool, changePool: recorded.pool });
    onTestFinished(() => {
      store = storeWith(first);
    });
    await replace();
    await store.find(tenantId, clientId);
    await store.change(tenantId, clientId, async () => ({ result: 0 }));
    await store.save({ ...registration, revision: 0 } as StoredRegistration);
    const lost = await begin();
    await store.giveUp(lost, registration);
    await store.forget(lost, registration);
    await store.discard(registration, await begin(), now);
    expect(recorded.requesters).toEqual(Array(10).fill({ tenant: tenantId, member: clientId }));
    await store.summaries({ id: tenantId, name: 'Demo', realm: 'demo' }, [clientId]);
    expect(recorded.requesters.at(-1)).toEqual({ tenant: tenantId, member: '' });
  });

  it('of a change waits for an earlier change of the client, even for seconds', async () => {
    const impatient = new pg.Pool({
      connectionString: database.url,
      options: '-c lock_timeout=50 -c statement_timeout=50',
    });
    onTestFinished(() => impatient.end());
    await replace();
    const { tenantId, clientId } = registration;
    const { slow, response } = await startSlowChange();
    const next = storeWith(first, { pool: unsharedPool(impatient), changePool: unsharedPool(impatient) }).change(
      ...([tenantId, clientId, async () => ({ result: 'next' })] as const),
    );
    const ended = Promise.allSettled([slow, next]);
    await expect.poll(countWaiting, { interval: 5 }).toBe(1);
    // Longer than the timeouts of `impatient`.
    await sleep(150);
    response.resolve();
    expect(await ended).toEqual(['slow', 'next'].map((value) => ({ status: 'fulfilled', value })));
  });
});

describe('key rotation', () => {
  it('opens texts sealed with the old key, and seals them again with the new one', async () => {
    await replace();
    await replace({ oidcClientId: 'oidc-2' });
    const both = `${second},${first}`;
    expect((await find(both))?.clientSecret).toBe('canary-secret');
    expect(await pendingWorkWith(both).reseal()).toEqual({ resealed: 2, unreadable: 0 });
    expect(await pendingWorkWith(both).reseal()).toEqual({ resealed: 0, unreadable: 0 });
    expect(await find(second)).toMatchObject({
      clientSecret: 'canary-secret',
      registrationAccessToken: 'canary-token',
    });
    const claim = { now, until: now, limit: 10 };
    const [deletion] = await pendingWorkWith(second).claim('deletion', claim);
    expect(deletion?.oidcClientId).toBe('oidc-1');
    expect(deletion && openToken(createKeyRing(second), deletion)).toBe('canary-token');
  });

  it('reaches a readable registration among more unreadable ones than a pass reads', async () => {
    await replace();
    await pool.query(
      `INSERT INTO client_registrations SELECT (r).* FROM (
         SELECT jsonb_populate_record(t, jsonb_build_object('client_id', 'lost-' || n, 'oidc_client_id', 'lost-' || n,
           'client_secret', 'gone.x', 'registration_access_token', 'gone.x')) AS r
         FROM client_registrations t, generate_series(1, 1500) n) AS lost`,
    );
    const both = pendingWorkWith(`${second},${first}`);
    let resealed = 0;
    // A pass misses the registration with a probability of 1/3.
    for (let passes = 0; resealed === 0 && passes < 40; passes += 1) ({ resealed } = await both.reseal());
    expect(resealed).toBe(1);
    expect(await find(second)).toMatchObject({ clientSecret: 'canary-secret' });
  });

  it('without the key of a registration leads to a 503, a log line that names the client, and a count in the metrics', async () => {
    await replace();
    await expect(find(second)).rejects.toMatchObject({ status: 503 });
    const { tenantId: tenant, clientId: client, oidcClientId } = registration;
    const msg = 'stored registration cannot be decrypted with KEY_RING';
    expect(lines().at(-1)).toMatchObject({ level: 'error', tenant, client, oidcClientId, msg });
    expect(await metrics.registry.metrics()).toMatch(
      /^formgate_dependency_failures_total\{dependency="key-ring",kind="registration"\} [1-9]/m,
    );
  });

  it('reports registrations whose key is gone, and a new registration replaces them', async () => {
    await replace();
    expect(await pendingWorkWith(second).reseal()).toEqual({ resealed: 0, unreadable: 1 });
    await expect(find(second)).rejects.toMatchObject(unreadable);
    const attempt = await begin();
    await storeWith(second).replace({ ...registration, oidcClientId: 'oidc-2' }, attempt, event);
    expect((await find(second))?.oidcClientId).toBe('oidc-2');
    const claim = { now, until: now, limit: 10 };
    expect(await pendingWorkWith(second).claim('deletion', claim)).toMatchObject([{ oidcClientId: 'oidc-1' }]);
  });
});
