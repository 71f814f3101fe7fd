// Tests that the storage limit of a tenant includes what changes and deletions of forms leave behind, and that a pod
// applies the limit from its first request on.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { draft, type FormReplica, type FormWorld, startFormWorld } from '../../../test/support/form-world.ts';
import { anonymous, permit } from '../../../test/support/forms.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { Problem } from '../../service/http/problem.ts';
import { formMigrations } from '../expiry/migrations.ts';
import { createStorageLimit } from './storage-limit.ts';
import { createStorageStore, createWalk } from './store.ts';

const mib = 1_048_576;
const full = { status: 409, body: { type: 'urn:formgate:problem:storage-full' } };

describe('a tenant that creates and deletes forms, or submits and returns one, again and again', () => {
  let world: FormWorld;
  let replica: FormReplica;
  let ahead = 0;
  const clock = () => new Date(Date.now() + ahead);
  const start = () => world.start({ env: { TENANT_STORAGE_LIMIT: String(mib) }, clock });
  beforeAll(async () => {
    world = await startFormWorld();
    replica = await start();
  });
  afterAll(() => world.close());

  const create = (at = replica) =>
    at.ask('POST', '', { as: 'intake', body: { definitionId: permit.id, applicant: anonymous() } });
  const operate = (id: string, operation: string) =>
    replica.ask('POST', `/${id}`, { as: operation === 'submit' ? 'intake' : 'admin', body: { operation } });
  /** Adds what a loop of `count` creations and deletions leaves behind. */
  const leave = (count: number) =>
    world.pool.query(
      `WITH gone AS (SELECT gen_random_uuid() AS id FROM generate_series(1, $1)), kept AS (
         INSERT INTO tombstones (form_id, tenant_id, definition_id, anonymous_applicant, deleted, notified)
         SELECT id, $2, 'permit', true, now(), true FROM gone)
       INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
       SELECT id, $2, kind, '{"definitionId":"permit"}', now(), now(), now()
       FROM gone, unnest('{subscribe,form-created,form-deleted,remove-subscriber}'::text[]) AS kind`,
      [count, world.platform.tenant.id],
    );

  it('cannot create more forms, and can return none when it has used its reserve, but can submit and delete', {
    timeout: 60_000,
  }, async () => {
    const [first, second] = [await draft(replica, 'a@example.org'), await draft(replica, 'b@example.org')];
    for (const id of [first, second]) {
      const saved = await replica.ask('PUT', `/${id}/data`, {
        as: 'intake',
        body: { data: { name: 'Ana' }, files: {} },
      });
      expect(saved.status).toBe(200);
    }
    expect(await operate(first, 'submit')).toMatchObject({ status: 200 });
    await leave(1_000);
    ahead += 3_601_000;
    await expect.poll(async () => (await create()).status, { timeout: 20_000 }).toBe(409);
    expect(await create()).toMatchObject(full);
    expect(await operate(first, 'to-draft')).toMatchObject(full);
    expect(await operate(second, 'submit')).toMatchObject({ status: 200 });
    expect(await replica.ask('DELETE', `/${second}`, { as: 'admin' })).toMatchObject({ status: 204 });
  });

  it('gets the same refusal from the first request to a new pod', async () => {
    expect(await create(await start())).toMatchObject(full);
  });

  it('can create forms again when the reconciler has purged what was left', { timeout: 60_000 }, async () => {
    await world.pool.query('DELETE FROM outbox WHERE facts = \'{"definitionId":"permit"}\'');
    await world.pool.query('DELETE FROM tombstones');
    ahead += 61_000;
    await expect.poll(async () => (await create()).status, { timeout: 20_000 }).toBe(201);
  });
});

describe('the first read of a tenant’s measurement', () => {
  const limitWith = (
    read: () => Promise<{ bytes: number; measured: Date | null; walkBegan: Date | null } | undefined>,
  ) => createStorageLimit({ limit: mib, read, onRefused: () => undefined }).storage;

  it('delays no request for more than a moment while the database does not respond', async () => {
    const storage = limitWith(() => new Promise(() => undefined));
    const began = performance.now();
    await storage.requireRoom('tenant');
    expect(performance.now() - began).toBeLessThan(3_000);
  });

  it('is repeated by the next request if it failed', async () => {
    let reads = 0;
    const storage = limitWith(() => {
      reads += 1;
      if (reads === 1) return Promise.reject(new Error('no database'));
      return Promise.resolve({ bytes: mib, measured: new Date(), walkBegan: null });
    });
    await storage.requireRoom('tenant');
    await expect(storage.requireRoom('tenant')).rejects.toBeInstanceOf(Problem);
    await expect(storage.requireRoom('tenant')).rejects.toBeInstanceOf(Problem);
    expect(reads).toBe(2);
  });
});

describe('the estimate of what a tenant has left behind', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase(formMigrations.directory);
  });
  afterAll(() => database.drop());

  it('is close to the real size of the tables, and takes little time, with 60,000 rows', async () => {
    const { pool } = database;
    const rows = 60_000;
    await pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
       SELECT gen_random_uuid(), CASE WHEN n % 3 = 0 THEN 'other' ELSE 'loop' END, 'form-created',
         '{"definitionId":"permit","actor":{"id":"${randomUUID()}","name":"Intake application"}}', now(), now(), now()
       FROM generate_series(1, $1) n`,
      [rows],
    );
    const store = createStorageStore(pool);
    await store.add(['loop']);
    const began = performance.now();
    await createWalk(pool)({ tenantId: 'loop', now: new Date(), limit: 1_000, dueBefore: new Date() });
    const took = performance.now() - began;
    const [measured] = await store.read(['loop']);
    const { rows: sizes } = await pool.query<{ size: number }>(
      "SELECT pg_total_relation_size('outbox')::float8 AS size",
    );
    const real = ((sizes[0]?.size ?? 0) * 2) / 3;
    process.stdout.write(`estimate ${measured?.bytes}, real ${real}, took ${Math.round(took)} ms\n`);
    expect((measured?.bytes ?? 0) / real).toBeGreaterThan(0.7);
    expect((measured?.bytes ?? 0) / real).toBeLessThan(1.4);
  });
});
