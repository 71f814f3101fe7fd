// Tests concurrent changes of forms by applicants, administrators and a run of the reconciler. Each change must take
// effect completely or not at all.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDataStore } from '../src/forms/forms/data-store.ts';
import { createFormStore } from '../src/forms/forms/store.ts';
import { unsharedPool } from '../src/service/postgres/shared-pool.ts';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../test/support/expiry.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());

const actor = { id: 'admin', name: 'Admin' };
const forms = (count: number, form: Parameters<ExpiryWorld['add']>[0]) =>
  Promise.all(Array.from({ length: count }, () => world.add(form)));
const kinds = async (id: string) => (await world.outbox(id)).map(({ kind }) => kind);

function save(formId: string) {
  return createDataStore(unsharedPool(world.pool)).save({
    ...{ formId, tenantId: tenant, now: world.now(), data: '{"name":"saved"}', files: '{}' },
    ...{ revisions: undefined, anonymousOnly: true, session: undefined },
  });
}

const by = { role: 'admin', account: '3f9ac0d21e77' };
const hold = (formId: string) =>
  createFormStore(unsharedPool(world.pool)).setHeld({
    ...{ formId, tenantId: tenant, now: world.now(), by, actor: { id: 'admin', name: 'Admin' }, hold: {} },
  });
const unlock = (formId: string) =>
  createFormStore(unsharedPool(world.pool)).move({
    formId,
    tenantId: tenant,
    now: world.now(),
    actor,
    by,
    operation: 'unlock',
  });

/** Runs the reconciler in small batches. During the run, calls `act` for each form, for four forms at a time. */
async function whileRunning<T>(ids: readonly string[], act: (id: string) => Promise<T>): Promise<Map<string, T>> {
  const done = new Map<string, T>();
  const running = world.run({ batchSize: 3 });
  for (let start = 0; start < ids.length; start += 4)
    await Promise.all(ids.slice(start, start + 4).map(async (id) => done.set(id, await act(id))));
  expect(await running).toMatchObject({ outcome: 'succeeded' });
  return done;
}

describe('a draft that is saved during a run', () => {
  it('is skipped, and is a draft with its new form data after the save', async () => {
    const [busy = '', free = ''] = await forms(2, { age: 16 * day });
    const client = await world.pool.connect();
    await client.query('BEGIN');
    await client.query('UPDATE forms SET last_accessed = $2 WHERE id = $1', [busy, world.now()]);
    expect(await world.run()).toMatchObject({ outcome: 'succeeded', counts: { locked: 1 } });
    await client.query('COMMIT');
    client.release();
    expect(await world.form(busy)).toMatchObject({ status: 'Draft', lastAccessed: world.now() });
    expect(await world.form(free)).toMatchObject({ status: 'Locked' });
    expect(await kinds(busy)).toEqual([]);
    await world.run();
    expect(await world.form(busy)).toMatchObject({ status: 'Draft' });
  });

  it('is locked by the next run if the save is rolled back', async () => {
    const [busy = ''] = await forms(1, { age: 16 * day });
    const client = await world.pool.connect();
    await client.query('BEGIN');
    await client.query('UPDATE forms SET last_accessed = $2 WHERE id = $1', [busy, world.now()]);
    await world.run();
    await client.query('ROLLBACK');
    client.release();
    await world.run();
    expect(await world.form(busy)).toMatchObject({ status: 'Locked' });
  });

  it('is either saved or locked, never both', async () => {
    const ids = await forms(200, { age: 16 * day });
    const saved = await whileRunning(ids, save);
    for (const id of ids) {
      const wasSaved = saved.get(id) !== undefined;
      expect(await world.form(id)).toMatchObject({ status: wasSaved ? 'Draft' : 'Locked' });
      expect(await kinds(id)).toEqual(wasSaved ? [] : ['form-locked']);
    }
  });
});

describe('a hold that is set during a run', () => {
  it('protects a draft, and finds every other one locked', async () => {
    const ids = await forms(200, { age: 16 * day });
    const held = await whileRunning(ids, hold);
    for (const id of ids) {
      const found = held.get(id)?.status;
      expect(await world.form(id)).toMatchObject({ status: found, held: true });
      expect(await kinds(id)).toEqual(found === 'Draft' ? [] : ['form-locked']);
    }
  });

  it('protects a locked form, and finds every other one deleted', async () => {
    const ids = await forms(100, { lockedFor: 16 * day, noticeAccepted: true });
    const held = await whileRunning(ids, hold);
    for (const id of ids) {
      const isThere = held.get(id) !== undefined;
      expect((await world.form(id))?.status).toBe(isThere ? 'Locked' : undefined);
      expect((await kinds(id)).includes('form-deleted')).toBe(!isThere);
    }
  });
});

describe('an unlock during a run', () => {
  it('either wins and the form is a draft, or loses and the form is deleted', async () => {
    const ids = await forms(200, { lockedFor: 16 * day, noticeAccepted: true });
    const unlocked = await whileRunning(ids, unlock);
    for (const id of ids) {
      const won = unlocked.get(id) !== undefined;
      expect((await world.form(id))?.status).toBe(won ? 'Draft' : undefined);
      // The run may purge the delivered `form-locked` row of a form whose status is no longer Locked.
      const events = (await kinds(id)).filter((kind) => kind !== 'form-locked');
      expect(events).toEqual([won ? 'form-unlocked' : 'form-deleted']);
    }
  });
});

describe('a release', () => {
  it.each([
    ['draft', { age: 99 * day, held: true }, 'Draft'],
    ['locked form', { lockedFor: 99 * day, held: true, noticeAccepted: true }, 'Locked'],
  ] as const)('restarts the clock of a held %s: it is safe for another whole period', async (_, form, status) => {
    const [id = ''] = await forms(1, form);
    await createFormStore(unsharedPool(world.pool)).setHeld({
      formId: id,
      tenantId: tenant,
      now: world.now(),
      by,
      actor: { id: 'admin', name: 'Admin' },
      hold: undefined,
    });
    world.advance(15 * day);
    await world.run();
    expect(await world.form(id)).toMatchObject({ status });
    world.advance(1);
    await world.run();
    expect((await world.form(id))?.status).toBe(status === 'Draft' ? 'Locked' : undefined);
  });
});
