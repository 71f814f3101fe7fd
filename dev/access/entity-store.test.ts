// Runs the same tests against both entity stores (in memory and in Postgres). Also tests that the store in Postgres
// keeps its entities across a restart.
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startTestAccess } from '../../test/support/access.ts';
import { createMemoryEntityStore } from '../../test/support/memory-entity-store.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import type { EntityStore } from './entity-store.ts';
import { createPostgresEntityStore } from './postgres-entity-store.ts';

let database: TestDatabase;
let pool: pg.Pool;
let now: Date;
const clock = () => now;

beforeAll(async () => {
  database = await createTestDatabase(join(import.meta.dirname, 'migrations'));
  ({ pool } = database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  now = new Date('2026-08-01T00:00:00Z');
  await pool.query('TRUNCATE entities, signing_keys');
});

const key = (id: string, kind = 'RefreshToken', realm = 'demo') => ({ realm, kind, id });

describe.each<[string, () => EntityStore]>([
  ['in memory', () => createMemoryEntityStore(clock)],
  ['in Postgres', () => createPostgresEntityStore(pool, clock)],
])('the entity store %s', (_name, create) => {
  it('finds what was saved, by realm, kind and id, and saves again over it', async () => {
    const store = create();
    await store.save(key('a'), { clientId: 'one', nonce: 'with \0 inside' }, 60);
    await store.save(key('a', 'Session'), { uid: 'u' }, 60);
    expect(await store.find(key('a'))).toEqual({ clientId: 'one', nonce: 'with \0 inside' });
    expect(await store.find(key('a', 'RefreshToken', 'core'))).toBeUndefined();
    expect(await store.findByUid('demo', 'Session', 'u')).toEqual({ uid: 'u' });
    expect(await store.findByUid('core', 'Session', 'u')).toBeUndefined();
    await store.save(key('a'), { clientId: 'two' }, 60);
    expect(await store.find(key('a'))).toEqual({ clientId: 'two' });
  });

  it('does not find what has expired or was removed, and keeps what has no lifetime', async () => {
    const store = create();
    await store.save(key('short'), { uid: 's' }, 60);
    await store.save(key('kept'), {}, undefined);
    await store.save(key('removed'), {}, 60);
    await store.remove(key('removed'));
    now = new Date(now.getTime() + 60_000);
    expect(await store.find(key('short'))).toBeUndefined();
    expect(await store.findByUid('demo', 'RefreshToken', 's')).toBeUndefined();
    expect(await store.find(key('removed'))).toBeUndefined();
    await store.removeExpired();
    expect(await store.find(key('kept'))).toEqual({});
  });

  it('records when a token was consumed', async () => {
    const store = create();
    await store.save(key('a'), {}, 60);
    await store.consume(key('a'));
    expect(await store.find(key('a'))).toEqual({ consumed: now.getTime() / 1000 });
  });

  it('removes the tokens of one grant only', async () => {
    const store = create();
    await store.save(key('a'), { grantId: 'g' }, 60);
    await store.save(key('b'), { grantId: 'g' }, 60);
    await store.save(key('c'), { grantId: 'h' }, 60);
    await store.removeByGrant('demo', 'RefreshToken', 'g');
    const found = await Promise.all(['a', 'b', 'c'].map((id) => store.find(key(id))));
    expect(found).toEqual([undefined, undefined, { grantId: 'h' }]);
  });

  it('gives a realm one signing key, also for concurrent calls', async () => {
    const store = create();
    let made = 0;
    const make = async () => {
      made += 1;
      return { kty: 'RSA', kid: String(made) };
    };
    const keys = await Promise.all([store.signingKey('demo', make), store.signingKey('demo', make)]);
    expect(keys[0]).toEqual(keys[1]);
    expect(await store.signingKey('demo', make)).toEqual(keys[0]);
  });
});

it('registered clients, refresh tokens and signing keys in Postgres survive a restart', async () => {
  const open = () => startTestAccess({ store: createPostgresEntityStore(pool, () => new Date()) });
  const before = await open();
  const registered = await fetch(`${before.issuer('demo')}/clients-registrations/openid-connect`, {
    method: 'POST',
    headers: { Authorization: 'Bearer demo-registration-token', 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'kept', redirect_uris: ['https://app.example.org/'] }),
  });
  const client: { registration_client_uri: string; registration_access_token: string } = JSON.parse(
    await registered.text(),
  );
  const keysOf = async (issuer: string) => (await fetch(`${issuer}/protocol/openid-connect/certs`)).json();
  const tokenOf = async (issuer: string, form: Record<string, string>) => {
    const body = new URLSearchParams({ client_id: 'demo-cli', ...form });
    const response = await fetch(`${issuer}/protocol/openid-connect/token`, { method: 'POST', body });
    return { status: response.status, ...(JSON.parse(await response.text()) as { refresh_token?: string }) };
  };
  const keys = await keysOf(before.issuer('demo'));
  const signedIn = await tokenOf(before.issuer('demo'), {
    grant_type: 'password',
    username: 'alice@example.com',
    password: 'alice',
  });
  await before.close();

  const after = await open();
  onTestFinished(() => after.close());
  expect(await keysOf(after.issuer('demo'))).toEqual(keys);
  const refreshed = await tokenOf(after.issuer('demo'), {
    grant_type: 'refresh_token',
    refresh_token: signedIn.refresh_token ?? '',
  });
  expect(refreshed.status).toBe(200);
  const address = new URL(client.registration_client_uri);
  address.host = new URL(after.url).host;
  const read = await fetch(address, { headers: { Authorization: `Bearer ${client.registration_access_token}` } });
  expect(await read.json()).toMatchObject({ client_name: 'kept' });
});
