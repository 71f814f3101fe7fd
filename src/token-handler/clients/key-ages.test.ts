// Tests, in Postgres, the age of the key ring's current key, and the count of secrets that are sealed with other keys.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { migrationsDirectory } from '../start.ts';
import { createKeyRingStore } from './key-ring-store.ts';

const began = new Date('2026-08-20T17:00:00Z').getTime();
let now: number;
let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  now = began;
  await pool.query('TRUNCATE key_ring_keys, client_registrations, client_deletions');
});

const open = (currentKey = 'k1') => createKeyRingStore({ pool, keys: { currentKey }, clock: () => new Date(now) });
const addRegistration = (secret: string, token: string) =>
  pool.query(
    `INSERT INTO client_registrations (tenant_id, client_id, realm, oidc_client_id, client_secret,
       registration_access_token, registration_client_uri, redirect_uris, registered_at)
     VALUES ('urn:example:tenant', gen_random_uuid(), 'demo', gen_random_uuid(), $1, $2, '', '[]', now())`,
    [secret, token],
  );
const addDeletion = (token: string) =>
  pool.query(
    `INSERT INTO client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token,
       registration_client_uri, created, not_before)
     VALUES ('urn:example:tenant', 'web', 'demo', gen_random_uuid(), $1, '', now(), now())`,
    [token],
  );

it('the age of a key counts from the first pod that recorded it', async () => {
  await open().note();
  now += 5_000;
  await open().note();
  await open('k2').note();
  now += 1_500;
  expect(await open().read()).toEqual({ currentKeyAge: 6.5, oldSecrets: 0 });
  expect(await open('k2').read()).toEqual({ currentKeyAge: 1.5, oldSecrets: 0 });
});

it('the age of a key is never negative, although clocks differ', async () => {
  await open().note();
  now -= 1_000;
  expect(await open().read()).toMatchObject({ currentKeyAge: 0 });
});

it('nothing is known of a key that no pod has recorded yet', async () => {
  await open('k2').note();
  await expect(open().read()).rejects.toThrow('not recorded');
});

it('a registration with a secret or token under another key counts as one old secret, and so does a deletion', async () => {
  await open().note();
  await addRegistration('k1.a', 'k1.b');
  await addDeletion('k1.c');
  expect(await open().read()).toMatchObject({ oldSecrets: 0 });
  for (const [secret, token] of [
    ['k0.a', 'k1.b'],
    ['k1.a', 'k0.b'],
    ['k0.a', 'k0.b'],
    ['k10.a', 'k10.b'],
  ] as const)
    await addRegistration(secret, token);
  for (const token of ['k0.c', 'k10.c']) await addDeletion(token);
  expect(await open().read()).toMatchObject({ oldSecrets: 6 });
});

it('a count is kept for a minute, while the age goes on', async () => {
  const keyRing = open();
  await keyRing.note();
  expect(await keyRing.read()).toEqual({ currentKeyAge: 0, oldSecrets: 0 });
  await addDeletion('k0.c');
  now += 59_999;
  expect(await keyRing.read()).toEqual({ currentKeyAge: 59.999, oldSecrets: 0 });
  now += 1;
  expect(await keyRing.read()).toEqual({ currentKeyAge: 60, oldSecrets: 1 });
});
