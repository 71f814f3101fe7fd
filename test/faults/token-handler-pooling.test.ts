// The token handler behind a pool that gives each transaction another server connection, as PgBouncer does in
// transaction pooling mode: migrations, registrations, concurrent updates, sign-ins, and the deletion of replaced
// clients.
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type SessionWorld, startSessionWorld } from '../support/sessions.ts';
import { createSiteBrowser } from '../support/site-browser.ts';
import { startTransactionPool, type TransactionPool } from '../support/transaction-pool.ts';

let pool: TransactionPool;
let database: TestDatabase;
let world: SessionWorld;
beforeAll(async () => {
  pool = await startTransactionPool(inject('postgresUrl'));
  // The database is empty, so the service migrates it through the pool.
  database = await createTestDatabase();
  const url = new URL(database.url);
  url.host = pool.host;
  world = await startSessionWorld({ env: { DATABASE_URL: url.href } });
});
afterAll(async () => {
  await world.close();
  await pool.close();
  await database.drop();
});

it('behind a transaction pool, clients can be registered, replaced and updated concurrently, and people can sign in', async () => {
  const { handler } = world;
  const token = await handler.adminToken();
  const callback = world.clientUrl('callback');
  const update = () => handler.api('/clients/web', { method: 'PUT', token, body: { redirectUris: [callback] } });
  const updates = await Promise.all([update(), update(), update()]);
  expect(updates.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await Promise.all([handler.register('web'), handler.register('web')])).map(({ status }) => status)).toEqual([
    200, 200,
  ]);
  expect((await update()).status).toBe(200);
  const people = await Promise.all([0, 1, 2].map(() => world.signIn(createSiteBrowser())));
  for (const { browser } of people) expect((await world.sessions(browser)).status).toBe(200);
});

it('behind a transaction pool, the token handler relies on no state of a Postgres session', async () => {
  expect(pool.statements.length).toBeGreaterThan(20);
  expect(pool.switches()).toBeGreaterThan(5);
  expect(pool.prepared).toEqual([]);
  const kept = /^\s*(?:SET (?!LOCAL|TRANSACTION)|PREPARE|SELECT pg_(?:try_)?advisory_(?:un)?lock\b|CREATE TEMP)/i;
  expect(pool.statements.filter((text) => kept.test(text))).toEqual([]);
});
