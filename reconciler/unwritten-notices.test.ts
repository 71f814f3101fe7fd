// Tests forms whose outbox row Postgres refuses. Such forms must be locked and deleted when due, and the missing notice
// must stay in quarantine until a release writes it.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createFormsQuarantine } from '../src/forms/quarantine/store.ts';
import { unsharedPool } from '../src/service/postgres/shared-pool.ts';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../test/support/expiry.ts';
import { refuseOutboxRows } from '../test/support/poison.ts';
import { exitCodeOf } from './summary.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.pool.query('TRUNCATE forms, outbox, tombstones, quarantine CASCADE');
  await refuseOutboxRows(world.pool, []);
});

const entries = async () =>
  (await world.pool.query('SELECT kind, item, about, reason, detail, attempts, released FROM quarantine ORDER BY kind'))
    .rows;
const release = () => createFormsQuarantine({ pool: unsharedPool(world.pool), clock: world.now }).release('all');
const mend = (id: string) => world.pool.query('DELETE FROM refused_forms WHERE form_id = $1', [id]);
const deleteOn = (from: Date) => new Date(from.getTime() + 15 * day).toISOString();
const url = 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a551';

it('forms are locked and deleted although their outbox rows cannot be written, and the next run does not retry', async () => {
  const ids = await Promise.all(Array.from({ length: 30 }, (_, at) => world.add({ age: 16 * day + at })));
  const gone = await world.add({ lockedFor: 16 * day, noticeAccepted: true, subscriberId: 's-1', files: { a: url } });
  const bad = [0, 1, 17].map((at) => ids[at] ?? '');
  await refuseOutboxRows(world.pool, [...bad, gone]);
  const result = await world.run({ batchSize: 10 });
  expect(result).toMatchObject({ outcome: 'succeeded', counts: { locked: 30, deleted: 1, quarantined: 4 } });
  expect(exitCodeOf(result)).toBe(3);
  for (const id of ids) {
    expect(await world.form(id)).toMatchObject({ status: 'Locked', locked: world.now(), revision: '2' });
    expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(bad.includes(id) ? [] : ['form-locked']);
  }
  expect(await world.form(gone)).toBeUndefined();
  expect((await world.pool.query('SELECT form_id, notified FROM tombstones')).rows).toEqual([
    { form_id: gone, notified: true },
  ]);
  const found = await entries();
  const cause = { reason: 'database-refused', detail: 'SQLSTATE 22P05', attempts: 1, released: false };
  expect(found[0]).toEqual({
    ...{ kind: 'delete-notice', item: gone, ...cause },
    about: { formId: gone, definitionId: 'permit', subscriberId: 's-1', wasDraft: true, files: [url] },
  });
  const about = { definitionId: 'permit', deleteOn: deleteOn(world.now()) };
  expect(found).toHaveLength(4);
  for (const formId of bad)
    expect(found).toContainEqual({ kind: 'lock-notice', item: formId, ...cause, about: { formId, ...about } });

  const again = await world.run({ batchSize: 10 });
  expect(again).toMatchObject({ outcome: 'succeeded', counts: { locked: 0, deleted: 0, retried: 0, quarantined: 0 } });
  expect(exitCodeOf(again)).toBe(0);
  expect(await entries()).toEqual(found);
});

it('a release writes the missing rows, and rows that are refused again delay no others', async () => {
  const [locked, refused] = [await world.add({ age: 16 * day }), await world.add({ age: 17 * day })];
  const gone = await world.add({ lockedFor: 16 * day, noticeAccepted: true, subscriberId: 's-1', files: { a: url } });
  await refuseOutboxRows(world.pool, [locked, refused, gone]);
  const changed = world.now();
  await world.run();
  world.advance(day);
  await mend(locked);
  await mend(gone);
  const outcomes = (await release()).map(({ item, released }) => [item, released]);
  expect(new Map(outcomes as [string, boolean][])).toEqual(
    new Map([
      [locked, true],
      [refused, false],
      [gone, true],
    ]),
  );
  expect((await world.outbox(locked)).at(-1)).toEqual({
    ...{ kind: 'form-locked', created: changed, notBefore: world.now(), accepted: null },
    facts: { definitionId: 'permit', deleteOn: deleteOn(changed) },
  });
  expect((await world.outbox(gone)).at(-1)).toMatchObject({
    ...{ kind: 'form-deleted', created: changed },
    facts: { definitionId: 'permit', subscriberId: 's-1', files: [url] },
  });
  expect(await entries()).toMatchObject([{ item: refused, attempts: 2, released: false }]);
});

it('a new version tries a missing row once', async () => {
  const id = await world.add({ age: 16 * day });
  await refuseOutboxRows(world.pool, [id]);
  await world.run();
  await world.pool.query("UPDATE quarantine SET version = '0.0.1'");
  expect(await world.run()).toMatchObject({ counts: { retried: 1, quarantined: 1 } });
  expect(await world.run()).toMatchObject({ counts: { retried: 0, quarantined: 0 } });
  await mend(id);
  await world.pool.query("UPDATE quarantine SET version = '0.0.2', retried_by = '{0.0.1,0.0.2}'");
  expect(await world.run()).toMatchObject({ counts: { retried: 1, quarantined: 0 } });
  expect(await entries()).toEqual([]);
  expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(['form-locked']);
});

it('a form that was locked without notice is deleted 15 days later, even if an earlier lock had a notice', async () => {
  const id = await world.add({ age: 16 * day });
  await world.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
     VALUES ($1, $2, 'form-locked', '{"definitionId":"permit"}', $3, $3, $3)`,
    [id, tenant, new Date(world.now().getTime() - day)],
  );
  await refuseOutboxRows(world.pool, [id]);
  await world.run();
  world.advance(16 * day);
  expect(await world.run()).toMatchObject({ counts: { deleted: 0, waiting: 1 } });
  world.advance(15 * day);
  expect(await world.run()).toMatchObject({ counts: { deleted: 1, deletedNotNotified: 1, quarantined: 1 } });
  expect(await entries()).toMatchObject([{ kind: 'delete-notice', item: id }]);
});

it('an unlock removes the entry of the lock, and no notice is written', async () => {
  const id = await world.add({ age: 16 * day });
  await refuseOutboxRows(world.pool, [id]);
  await world.run();
  await world.pool.query("UPDATE forms SET status = 'Draft', locked = NULL, last_accessed = $1", [world.now()]);
  await mend(id);
  expect(await release()).toMatchObject([{ kind: 'lock-notice', released: false }]);
  expect(await world.outbox(id)).toEqual([]);
  await world.run();
  expect(await entries()).toEqual([]);
});

it('a release does not wait for a form that is being changed', async () => {
  const id = await world.add({ age: 16 * day });
  await refuseOutboxRows(world.pool, [id]);
  await world.run();
  await mend(id);
  const client = await world.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT FROM forms WHERE id = $1 FOR UPDATE', [id]);
    expect(await release()).toMatchObject([{ released: false }]);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
  expect(await release()).toMatchObject([{ released: true }]);
  expect(await entries()).toEqual([]);
});

it('a warning whose outbox row cannot be written is quarantined as a whole', async () => {
  const id = await world.add({ age: 13 * day });
  await refuseOutboxRows(world.pool, [id]);
  expect(await world.run()).toMatchObject({ counts: { warned: 0, quarantined: 1 } });
  expect(await entries()).toMatchObject([{ kind: 'warn', item: id }]);
  expect(await world.form(id)).toMatchObject({ warned: null });
});
