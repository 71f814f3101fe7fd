// Tests registrations in Postgres: storage, encryption of secrets, and key rotation.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createKeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createPool } from '../../service/postgres/postgres.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { changeConnections, sharePools } from './clients.ts';
import { createLeftoverStore } from './leftover-store.ts';
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
  pool = new pg.Pool({ connectionString: database.url, max: 5 });
  store = storeWith(first);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});
beforeEach(() => pool.query('TRUNCATE client_registrations, client_deletions, client_events, registration_attempts'));

const { log, lines } = captureLog();
const metrics = createMetrics();
const storeWith = (keys: string, pools = { pool: unsharedPool(pool), changePool: unsharedPool(pool) }) =>
  createRegistrationStore({
    ...pools,
    keys: createKeyRing(keys),
    log,
    metrics,
    mappedIssuer: () => undefined,
  });
const leftoversWith = (keys: string) => createLeftoverStore({ pool, keys: createKeyRing(keys) });
let store: RegistrationStore;
const unreadable = { slug: 'unavailable', cause: expect.any(KeyRingError) };

async function replace(changes: Partial<Registration> = {}) {
  const wanted = { ...registration, ...changes };
  await store.replace(wanted, (await store.begin({ ...wanted, started: now })).id, event);
}
const begin = async () => (await store.begin({ ...registration, started: now })).id;
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

describe('a replaced registration', () => {
  it('is scheduled for deletion in the same transaction', async () => {
    await replace();
    await replace({ oidcClientId: 'oidc-2' });
    const claim = { now, until: new Date(now.getTime() + 60_000), limit: 10 };
    const { clientSecret: _, redirectUris: __, registeredAt: ___, ...sealed } = registration;
    const { authentication: ____, management: _____, ...needed } = sealed;
    expect(await leftoversWith(first).claim('deletion', claim)).toMatchObject([
      { ...needed, registrationAccessToken: expect.stringMatching(/^first\./) },
    ]);
    expect(await leftoversWith(first).claim('deletion', claim)).toEqual([]);
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
    expect(await leftoversWith(first).claim('deletion', claim)).toEqual([]);
  });

  it('is claimed by only one of many pods', async () => {
    for (let count = 0; count < 20; count += 1) await replace({ oidcClientId: `claimed-${count}` });
    const claim = { now, until: new Date(now.getTime() + 60_000), limit: 3 };
    const claims = await Promise.all(Array.from({ length: 10 }, () => leftoversWith(first).claim('deletion', claim)));
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
      shared.replace({ ...registration, oidcClientId: `next-${index}` }, undefined, event),
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

describe('key rotation', () => {
  it('opens texts sealed with the old key, and seals them again with the new one', async () => {
    await replace();
    await replace({ oidcClientId: 'oidc-2' });
    const both = `${second},${first}`;
    expect((await find(both))?.clientSecret).toBe('canary-secret');
    expect(await leftoversWith(both).reseal()).toEqual({ resealed: 2, unreadable: 0 });
    expect(await leftoversWith(both).reseal()).toEqual({ resealed: 0, unreadable: 0 });
    expect(await find(second)).toMatchObject({
      clientSecret: 'canary-secret',
      registrationAccessToken: 'canary-token',
    });
    const claim = { now, until: now, limit: 10 };
    const [deletion] = await leftoversWith(second).claim('deletion', claim);
    expect(deletion?.oidcClientId).toBe('oidc-1');
    expect(deletion && openToken(createKeyRing(second), deletion)).toBe('canary-token');
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
    expect(await leftoversWith(second).reseal()).toEqual({ resealed: 0, unreadable: 1 });
    await expect(find(second)).rejects.toMatchObject(unreadable);
    const attempt = await begin();
    await storeWith(second).replace({ ...registration, oidcClientId: 'oidc-2' }, attempt, event);
    expect((await find(second))?.oidcClientId).toBe('oidc-2');
    const claim = { now, until: now, limit: 10 };
    expect(await leftoversWith(second).claim('deletion', claim)).toMatchObject([{ oidcClientId: 'oidc-1' }]);
  });
});
