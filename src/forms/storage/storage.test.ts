// Tests the limit of what the forms of one tenant may occupy: with the form service, and how its figures are measured.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type FormReplica, type FormWorld, startFormWorld } from '../../../test/support/form-world.ts';
import { anonymous, permit } from '../../../test/support/forms.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { formMigrations } from '../expiry/migrations.ts';
import { startMeasurements } from './measurements.ts';
import { createStorageLimit } from './storage-limit.ts';
import { createStorageStore, createWalk, formOverhead, type StorageStore, type Walk } from './store.ts';

const mib = 1_048_576;
const unread = () => Promise.resolve(undefined);
const at = (seconds: number) => new Date(Date.UTC(2026, 7, 20, 17, 0, seconds));

describe('a tenant that stores too much', () => {
  let world: FormWorld;
  let replica: FormReplica;
  let ahead = 0;
  beforeAll(async () => {
    world = await startFormWorld();
    const clock = () => new Date(Date.now() + ahead);
    replica = await world.start({ env: { TENANT_STORAGE_LIMIT: String(mib) }, clock });
  });
  afterAll(() => world.close());

  /** Form data that Postgres cannot compress. */
  const large = () => ({ data: { text: randomBytes(200_000).toString('base64') }, files: {} });
  const body = { definitionId: permit.id, applicant: anonymous() };
  const create = (key?: string) =>
    replica.ask('POST', '', { as: 'intake', body, ...(key !== undefined && { headers: { 'idempotency-key': key } }) });
  const save = (id: string) => replica.ask('PUT', `/${id}/data`, { as: 'intake', body: large() });
  const full = { status: 409, body: { type: 'urn:formgate:problem:storage-full' } };

  it('can create no forms, then save nothing, and goes on after its administrator has deleted forms', async () => {
    const first = await create('a key');
    const ids = [(first.body as { id: string }).id];
    for (let n = 0; n < 5; n += 1) ids.push(((await create()).body as { id: string }).id);
    for (const id of ids.slice(0, 4)) expect((await save(id)).status).toBe(200);
    expect(await create()).toMatchObject(full);
    expect((await create('a key')).body).toEqual(first.body);
    expect((await save(ids[4] ?? '')).status).toBe(200);
    expect(await save(ids[5] ?? '')).toMatchObject(full);
    const metrics = async () => (await fetch(`${replica.metricsUrl}/metrics`)).text();
    expect(await metrics()).toMatch(/^formgate_storage_refusals_total\{request="create"[^}]*\} 2$/m);
    expect(await metrics()).toMatch(/^formgate_storage_refusals_total\{request="save"[^}]*\} 1$/m);
    await expect.poll(metrics, { timeout: 20_000 }).toMatch(/^formgate_tenants_over_storage_limit(\{.*\})? 1$/m);
    expect(await metrics()).toMatch(/^formgate_tenants_near_storage_limit(\{.*\})? 1$/m);

    for (const id of ids) expect((await replica.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    ahead = 61_000;
    await expect.poll(async () => (await create()).status, { timeout: 20_000 }).toBe(201);
    expect(replica.logText()).toContain('new forms are refused');
  });
});

describe('the measurements', () => {
  let database: TestDatabase;
  let store: StorageStore;
  let walk: Walk;
  beforeAll(async () => {
    database = await createTestDatabase(formMigrations.directory);
    store = createStorageStore(database.pool);
    walk = createWalk(database.pool);
    await fill('large', 2_500, 300);
    await fill('small', 3, 10);
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    await database.pool.query('DELETE FROM tenant_storage');
    await store.add(['large', 'small']);
  });

  /** Creates forms in pairs with the same time, each with `bytes` of form data. */
  const fill = (tenantId: string, count: number, bytes: number) =>
    database.pool.query(
      `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
        anonymous_applicant, one_per_applicant, applicant, last_accessed, data)
      SELECT gen_random_uuid(), $1, 'permit', 'Draft', $3::timestamptz + g / 2 * interval '1 second',
        '{"id":"s","name":"Intake"}', 'core', true, false, '{}', $3, to_json(repeat('x', $4))
      FROM generate_series(1, $2) g`,
      [tenantId, count, at(0), bytes],
    );
  const sizeOf = async (tenantId: string) => {
    const { rows } = await database.pool.query<{ bytes: number }>(
      `SELECT sum($2 + pg_column_size(data) + pg_column_size(files) + pg_column_size(applicant)
        + pg_column_size(history) + pg_column_size(uploads) + pg_column_size(created_by)
        + coalesce(pg_column_size(held_by), 0))::float8 AS bytes FROM forms WHERE tenant_id = $1`,
      [tenantId, formOverhead],
    );
    return rows[0]?.bytes ?? 0;
  };
  const read = async (tenantId: string) => (await store.read([tenantId]))[0];

  it('visit every form of the tenant once, in batches, although several pods walk', async () => {
    expect(await read('large')).toEqual({ tenantId: 'large', bytes: 0, measured: null, walkBegan: null });
    const next = () => walk({ tenantId: 'large', now: at(1), limit: 30, dueBefore: at(0) });
    while (!(await read('large'))?.measured) await Promise.all([next(), next(), next(), next()]);
    expect(await read('large')).toEqual({
      ...{ tenantId: 'large', bytes: await sizeOf('large'), measured: at(1), walkBegan: null },
    });
    expect(await sizeOf('large')).toBeGreaterThan(2_500 * (formOverhead + 300));
  });

  it('begin a new walk only when it is due, and keep the last figure until it ends', async () => {
    const walkAt = (second: number, limit = 100) =>
      walk({ tenantId: 'small', now: at(second), limit, dueBefore: at(second - 10) });
    expect(await walkAt(0)).toBe(true);
    expect(await walkAt(9)).toBe(false);
    expect(await walkAt(10, 2)).toBe(true);
    const bytes = await sizeOf('small');
    expect(await read('small')).toEqual({ tenantId: 'small', bytes, measured: at(0), walkBegan: at(10) });
    expect(await walkAt(11, 2)).toBe(true);
    expect(await read('small')).toEqual({ tenantId: 'small', bytes, measured: at(10), walkBegan: null });
  });

  it('that a pod with a wrong clock dated in the future are repeated', async () => {
    const walkAt = (second: number) =>
      walk({ tenantId: 'small', now: at(second), limit: 100, dueBefore: at(second - 10) });
    expect(await walkAt(30 * 86_400)).toBe(true);
    const { usages, usageOf } = createStorageLimit({ limit: 2 * mib, read: unread, onRefused: () => undefined });
    usageOf('small');
    const measurements = startMeasurements({
      ...{ limit: 2 * mib, store, walk, usages, usageOf, clock: () => at(20), log: captureLog().log },
      pace: { interval: 5 },
    });
    await expect.poll(async () => (await read('small'))?.measured).toEqual(at(20));
    await measurements.stop();
    expect(await walkAt(21)).toBe(false);
  });

  it('of a walk that does not end count as soon as they exceed the last figure', async () => {
    await walk({ tenantId: 'large', now: at(0), limit: 2_000, dueBefore: at(-10) });
    const found = await read('large');
    expect(found).toMatchObject({ measured: null, walkBegan: at(0) });
    expect(found?.bytes).toBeGreaterThan(2_000 * formOverhead);
  });

  it('include the descriptions of the people who created a form and put it on hold', async () => {
    const measure = async () => {
      await database.pool.query('UPDATE tenant_storage SET measured = NULL');
      await walk({ tenantId: 'small', now: at(0), limit: 100, dueBefore: at(0) });
      return (await read('small'))?.bytes ?? 0;
    };
    const before = await measure();
    const change = (sql: string) => database.pool.query(`UPDATE forms SET ${sql} WHERE tenant_id = 'small'`);
    await change(
      `created_by = created_by || '{"more":"${'x'.repeat(500)}"}', held_by = '{"name":"${'y'.repeat(500)}"}'`,
    );
    expect(await measure()).toBeGreaterThan(before + 3 * 1_000);
    await change(`created_by = created_by - 'more', held_by = NULL`);
  });

  it('of a tenant near its limit go on although it writes nothing, until it has deleted forms', async () => {
    const { usages, usageOf } = createStorageLimit({ limit: 2 * mib, read: unread, onRefused: () => undefined });
    let now = at(0);
    const measurements = startMeasurements({
      ...{ limit: 2 * mib, store, walk, usages, usageOf, log: captureLog().log, clock: () => now },
      pace: { interval: 10 },
    });
    await database.pool.query('UPDATE tenant_storage SET bytes = $1, measured = $2', [2 * mib, at(0)]);
    await expect.poll(() => usages.size).toBe(2);
    now = at(61);
    const bytes = await sizeOf('small');
    await expect.poll(() => read('small')).toMatchObject({ bytes, measured: at(61) });
    await measurements.stop();
    expect(await store.heavy(2 * mib * 0.8)).toEqual(['large']);
  });

  it('of a tenant with few forms are not delayed by one with many, and go on after an outage', async () => {
    const log = captureLog('info');
    const { storage, usages, usageOf } = createStorageLimit({
      limit: 2 * mib,
      read: unread,
      onRefused: () => undefined,
    });
    let failures = 1;
    const order: string[] = [];
    const failing = {
      ...store,
      read: (ids: string[]) => (failures-- > 0 ? Promise.reject(new Error('no database')) : store.read(ids)),
    };
    const noted: Walk = (batch) => {
      order.push(batch.tenantId);
      return walk(batch);
    };
    storage.created('large', 0);
    storage.created('small', 0);
    storage.created('unknown', 0);
    const measurements = startMeasurements({
      ...{ limit: 2 * mib, store: failing, walk: noted, usages, usageOf, log: log.log, clock: () => at(0) },
      pace: { batch: 500, interval: 10, retry: { first: 1, cap: 1 } },
    });
    await expect.poll(() => [...usages.values()].every(({ measured }) => measured)).toBe(true);
    await measurements.stop();
    expect(order.indexOf('small')).toBeLessThanOrEqual(1);
    expect(order.filter((tenantId) => tenantId === 'small')).toHaveLength(1);
    expect(usages.peek('large')).toMatchObject({ used: await sizeOf('large'), before: 0, since: 0 });
    await expect(storage.requireRoom('large')).rejects.toThrow('occupy 2097152 bytes or more');
    await storage.requireRoom('small');
    expect(log.text()).toContain('storage of tenants not measured');
    const messages = log.lines().flatMap(({ tenant, msg }) => (tenant === 'large' ? [msg] : []));
    expect(messages).toEqual([
      'the forms of the tenant are near their storage limit',
      'the forms of the tenant have reached their storage limit: new forms are refused',
    ]);
  });
});
