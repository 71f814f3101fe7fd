// Tests the limit on the clients that a tenant registers (TENANT_REGISTRATION_LIMIT), with a real identity provider,
// configuration service and Postgres.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { openRegistration, type Registration, registrationColumns, type StoredRegistration } from './registration.ts';
import { createRegistrationStore } from './registration-store.ts';

const refused = { status: 409, body: { type: 'urn:formgate:problem:conflict' } };
const refusal = { slug: 'conflict' };

describe('an administrator whose tenant has registered as many clients as it may', () => {
  let handler: TestTokenHandler;
  beforeAll(async () => {
    handler = await startTestTokenHandler({ env: { TENANT_REGISTRATION_LIMIT: '2' } });
    const client = { redirectUris: ['https://permits.example.org/cb'] };
    const clients = { first: client, second: client, third: client };
    await handler.configure({ 'core-app': {} }, { core: true });
    await handler.configure(clients);
    await handler.configure(clients, { tenant: handler.platform.otherTenant });
    for (const id of ['first', 'second']) expect((await handler.register(id)).status).toBe(200);
  });
  afterAll(() => handler.close());

  it('gets 409 for a further client, which is not created at the identity provider', async () => {
    const detail = expect.stringMatching(/has 2 registered clients.*TENANT_REGISTRATION_LIMIT/);
    // With an invalid token, the response would be 400 if the identity provider was called.
    for (const registrationToken of [await handler.platform.access.registrationToken('demo'), 'invalid']) {
      const token = await handler.adminToken();
      const answer = await handler.api('/clients/third', { method: 'POST', token, body: { registrationToken } });
      expect(answer).toMatchObject({ status: 409, body: { ...refused.body, detail } });
    }
    expect(await handler.rows('SELECT id FROM registration_attempts')).toEqual([]);
    const registered = await handler.rows('SELECT client_id AS id FROM client_registrations ORDER BY client_id');
    expect(registered).toEqual([{ id: 'first' }, { id: 'second' }]);
  });

  it('also gets 409 for a further client that exists at the identity provider', async () => {
    const sql = `SELECT ${registrationColumns} FROM client_registrations WHERE client_id = 'second'`;
    const [row] = await handler.rows<StoredRegistration>(sql);
    if (!row) throw new Error('second is not registered');
    const { oidcClientId, clientSecret } = openRegistration(createKeyRing(handler.config.KEY_RING), row);
    const token = await handler.adminToken();
    const body = { clientId: oidcClientId, clientSecret };
    const register = (id: string) => handler.api(`/clients/${id}`, { method: 'POST', token, body });
    expect(await register('third')).toMatchObject(refused);
    expect((await register('second')).status).toBe(200);
  });

  it('can still register those clients again, and update them', async () => {
    expect((await handler.register('first')).status).toBe(200);
    const token = await handler.adminToken();
    const body = { redirectUris: ['https://permits.example.org/other'] };
    expect((await handler.api('/clients/first', { method: 'PUT', token, body })).status).toBe(200);
  });

  it('can still register a core client', async () => {
    expect((await handler.register('core-app')).status).toBe(200);
    expect((await handler.register('core-app')).status).toBe(200);
  });

  it('does not use the places of another tenant', async () => {
    expect((await handler.register('third', { realm: handler.platform.otherTenant.realm })).status).toBe(200);
  });
});

describe('the last place of a tenant', () => {
  const now = new Date('2026-08-20T17:00:00Z');
  const tenantId = 'urn:example:tenants/1';
  const event = { name: 'client-registered', payload: {} };
  const isLimited = true;
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createTestDatabase(migrationsDirectory);
    pool = new pg.Pool({ connectionString: database.url, max: 10 });
    // Opens all connections, so that the statements of a test run at the same time.
    await Promise.all(Array.from({ length: 10 }, () => pool.query('SELECT pg_sleep(0.1)')));
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });
  beforeEach(() => pool.query('TRUNCATE client_registrations, client_events, registration_attempts'));

  const storeOf = (mostOfTenant: number) =>
    createRegistrationStore({
      ...{ pool: unsharedPool(pool), changePool: unsharedPool(pool), mostOfTenant },
      keys: createKeyRing(`first:${randomBytes(32).toString('base64')}`),
      ...{ log: captureLog().log, metrics: createMetrics(), mappedIssuer: () => undefined },
    });
  const registration = (clientId: string): Registration => ({
    ...{ tenantId, clientId, realm: 'demo', issuer: null, oidcClientId: `oidc-${clientId}`, clientName: null },
    ...{ authentication: 'client_secret_basic', management: 'provided', clientSecret: 'secret' },
    ...{ registrationAccessToken: '', registrationClientUri: '', redirectUris: [], registeredAt: now },
  });
  const owner = (clientId: string) => ({ tenantId, clientId, realm: 'demo', issuer: null });

  it('goes to only one of many concurrent registrations', async () => {
    const store = storeOf(1);
    const attempts = Array.from({ length: 6 }, (_, index) =>
      store.begin({ ...owner(`new-${index}`), started: now, isLimited }),
    );
    const provided = Array.from({ length: 4 }, (_, index) =>
      store.provide(registration(`provided-${index}`), event, { isLimited }),
    );
    const settled = await Promise.allSettled([...attempts, ...provided]);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const one of settled)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ slug: 'conflict', status: 409 });
  });

  it('is free again after the attempt that took it has failed', async () => {
    const store = storeOf(1);
    const { id } = await store.begin({ ...owner('first'), started: now, isLimited });
    await expect(store.begin({ ...owner('second'), started: now, isLimited })).rejects.toMatchObject(refusal);
    await store.forget(id, owner('first'));
    await store.begin({ ...owner('second'), started: now, isLimited });
  });

  it('stays with the client whose attempt took it, which may also be attempted twice', async () => {
    const store = storeOf(1);
    const { id } = await store.begin({ ...owner('first'), started: now, isLimited });
    await store.begin({ ...owner('first'), started: now, isLimited });
    await store.replace(registration('first'), id, event);
    await expect(store.begin({ ...owner('second'), started: now, isLimited })).rejects.toMatchObject(refusal);
  });
});
