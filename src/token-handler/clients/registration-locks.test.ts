// Tests how registrations share the places of a tenant, with a real Postgres.
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import type { Registration } from './registration.ts';
import { createRegistrationStore } from './registration-store.ts';

const refusal = { slug: 'conflict' };

describe('the last place of a tenant', () => {
  const now = new Date('2026-08-20T17:00:00Z');
  const tenantId = 'urn:example:tenants/1';
  const event = { name: 'client-registered', payload: {} };
  const isLimited = true;
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createTestDatabase(migrationsDirectory);
    ({ pool } = database);
    // Opens all connections, so that the statements of a test run at the same time.
    await Promise.all(Array.from({ length: 10 }, () => pool.query('SELECT pg_sleep(0.1)')));
  });
  afterAll(() => database.drop());
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

  it('is not needed by a client that is registered already, nor by one that the operator provides', async () => {
    const store = storeOf(1);
    await store.provide(registration('first'), event, { isLimited });
    await store.begin({ ...owner('first'), started: now, isLimited });
    await store.provide(registration('first'), event, { isLimited });
    await store.begin({ ...owner('core'), started: now, isLimited: false });
    await store.provide(registration('core'), event, { isLimited: false });
    // Now the tenant has more registered clients than it may register.
    await store.provide(registration('first'), event, { isLimited });
    await expect(store.provide(registration('second'), event, { isLimited })).rejects.toMatchObject(refusal);
  });

  it('is not taken by the clients of another tenant', async () => {
    const store = storeOf(1);
    await store.provide({ ...registration('first'), tenantId: 'urn:example:tenants/2' }, event, { isLimited });
    await store.begin({ ...owner('second'), started: now, isLimited });
  });
});
