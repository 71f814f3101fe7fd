// Tests which locked forms are deleted, and which rows remain for them. Also tests the statements that change one form
// and return its outbox row instead of writing it.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../../../test/support/expiry.ts';
import { createBatches, nothing } from '../../../test/support/expiry-batch.ts';
import { slowFiles } from '../../../test/support/poison.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { expiryStore } from './store.ts';

let world: ExpiryWorld;
let batches: ReturnType<typeof createBatches>;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());
beforeEach(() => {
  batches = createBatches(world);
});

const due = { lockedFor: 20 * day + 1, noticeAccepted: true };
const file = 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a551';
const deletedFacts = async (id: string) =>
  (await world.outbox(id)).findLast(({ kind }) => kind === 'form-deleted')?.facts;
const tombstoneOf = async (id: string) =>
  (await world.pool.query('SELECT * FROM tombstones WHERE form_id = $1', [id])).rows[0];
const addRow = (formId: string, kind: string, { accepted = false, notBefore = 'now' } = {}) =>
  world.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before, accepted, refusals)
    VALUES ($1, 't', $2, $3, $4, $5, 3)`,
    [formId, kind, world.now(), notBefore === 'now' ? world.now() : notBefore, accepted ? world.now() : null],
  );

describe('a locked form', () => {
  it('is deleted a millisecond after its period, with a tombstone and an event', async () => {
    const kept = await batches.add({ ...due, lockedFor: 20 * day });
    const deleted = await batches.add({ ...due, subscriberId: 'subscriber-1', files: { a: file, b: [file, 'x'] } });
    expect(await batches.run('delete')).toEqual({ ...nothing, walked: 1, deleted: 1 });
    expect([await world.form(kept), await world.form(deleted)]).toMatchObject([{ status: 'Locked' }, undefined]);
    const { definitionId } = batches;
    expect(await tombstoneOf(deleted)).toEqual({
      ...{ form_id: deleted, tenant_id: tenant, definition_id: definitionId, anonymous_applicant: true },
      ...{ deleted: world.now(), notified: true },
    });
    expect((await world.outbox(deleted)).at(-1)).toEqual({
      ...{ kind: 'form-deleted', created: world.now(), notBefore: world.now(), accepted: null },
      facts: { definitionId, subscriberId: 'subscriber-1', wasDraft: true, files: [file] },
    });
  });

  it('waits for its notice, for fifteen days more at most; then it is deleted and reported', async () => {
    const late = 35 * day;
    const refused = await batches.add({ lockedFor: late, noticeAccepted: false });
    const unwritten = await batches.add({ lockedFor: late });
    const overdue = await batches.add({ lockedFor: late + 1, noticeAccepted: false });
    const unnotified = [{ formId: overdue, tenantId: tenant, definitionId: batches.definitionId }];
    const outcome = { ...nothing, walked: 3, waiting: 2, deleted: 1 };
    expect(await batches.run('delete', { dryRun: true })).toEqual({ ...outcome, unnotified: [{ formId: overdue }] });
    expect(await batches.run('delete')).toEqual({ ...outcome, unnotified });
    expect((await tombstoneOf(overdue)).notified).toBe(false);
    for (const id of [refused, unwritten]) expect(await world.form(id)).toMatchObject({ status: 'Locked' });
  });

  it('that was unlocked and locked again waits for the notice of its latest lock', async () => {
    const id = await batches.add(due);
    await addRow(id, 'form-locked');
    expect(await batches.run('delete')).toMatchObject({ waiting: 1, deleted: 0 });
    await addRow(id, 'form-locked', { accepted: true });
    await addRow(id, 'form-created');
    expect(await batches.run('delete')).toMatchObject({ waiting: 0, deleted: 1 });
  });

  it('whose notice is quarantined is not notified', async () => {
    const [id, other] = [await batches.add(due), await batches.add(due)];
    await batches.quarantine(id, 'lock-notice');
    await batches.quarantine(other, 'another kind');
    expect(await batches.run('delete')).toMatchObject({ waiting: 1, deleted: 1 });
    expect(await world.form(other)).toBeUndefined();
  });

  it('is kept while it is on hold, quarantined, or changed by another request', async () => {
    await batches.add({ ...due, held: true });
    const quarantined = await batches.add(due);
    await batches.quarantine(quarantined, 'delete');
    const busy = await batches.add(due);
    await withTransaction(world.pool, async (client) => {
      await client.query('SELECT FROM forms WHERE id = $1 FOR UPDATE', [busy]);
      expect(await batches.run('delete')).toEqual({ ...nothing, walked: 2 });
    });
    expect(await batches.run('delete', { dryRun: true })).toMatchObject({ deleted: 1 });
    expect(await world.form(busy)).toMatchObject({ status: 'Locked' });
    await world.pool.query('UPDATE quarantine SET released = true WHERE form_id = $1', [quarantined]);
    expect(await batches.run('delete')).toMatchObject({ deleted: 2 });
  });

  it('is deleted in batches', async () => {
    for (let nth = 0; nth < 5; nth += 1) await batches.add(due);
    expect(await batches.runAll('delete', 2)).toEqual({ batches: 3, walked: 5, warned: 0, locked: 0, deleted: 5 });
  });
});

describe('a deletion', () => {
  it('finds the URNs of files in any spelling that JSON allows, each once', async () => {
    const id = await batches.add(due);
    const escaped = file.replaceAll('/', String.raw`\/`).replace('urn', String.raw`\u0075rn`);
    const files = `{"a": "${file}", "b": "${escaped}", "c": "${String.raw`\\u0075rn\n\ud83d`}", "d": "${file.slice(0, -1)}2"}`;
    await world.pool.query('UPDATE forms SET files = $2 WHERE id = $1', [id, files]);
    await batches.run('delete');
    expect((await deletedFacts(id))?.files).toEqual([file, `${file.slice(0, -1)}2`]);
  });

  it('finds no URN in text that only resembles one, so that outbox rows contain no form data', async () => {
    const almost = [
      file.replace('example', 'Ana Smith'),
      file.replace('example', 'a'.repeat(33)),
      file.replace('urn:example', 'example'),
      file.replace('platform', 'other'),
      file.replace('v1', 'v2'),
      file.slice(0, -1),
      file.replace('3f', '3g'),
      file.slice(file.indexOf(':platform')),
    ];
    const id = await batches.add({ ...due, files: { a: almost, [file.replace('urn', 'é;URN')]: 'é' } });
    await batches.run('delete');
    expect((await deletedFacts(id))?.files).toEqual([file.replace('urn', 'URN')]);
  });

  it.each([
    ['500,000 escapes', `{"${String.raw`\n`.repeat(500_000)}":"${file}"}`],
    ['150,000 escapes that resemble those of a URN', `{"${String.raw`\u0060`.repeat(150_000)}":"${file}"}`],
    ['a name that is slow to search', slowFiles],
    ['10,000 URNs without the last digit', `{"${file.slice(0, -1).repeat(10_000)}":"${file}"}`],
  ])('takes little time for names of files with %s', async (_what, files) => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => batches.add(due)));
    await world.pool.query('UPDATE forms SET files = $2 WHERE id = ANY ($1)', [ids, files]);
    const batch = await withTransaction(world.pool, async (client) => {
      await client.query("SET LOCAL statement_timeout = '15s'");
      const position = { policies: batches.policies };
      return expiryStore.batch(client, 'delete', { position, now: world.now(), limit: 50, dryRun: false });
    });
    expect(batch).toEqual({ ...nothing, walked: 4, deleted: 4 });
    for (const id of ids) expect((await deletedFacts(id))?.files).toEqual([file]);
  });

  it('names the language of the applicant, and no files if there are none', async () => {
    const id = await batches.add(due);
    await world.pool.query(`UPDATE forms SET applicant = '{"channels":[],"language":"fr"}' WHERE id = $1`, [id]);
    await batches.run('delete');
    const { definitionId } = batches;
    expect(await deletedFacts(id)).toEqual({ definitionId, language: 'fr', wasDraft: true, files: [] });
  });

  it('replaces an older tombstone of the form', async () => {
    const id = await batches.add({ lockedFor: 36 * day });
    await world.pool.query(`INSERT INTO tombstones VALUES ($1, 't', 'd', false, '2020-01-01', true)`, [id]);
    await batches.run('delete');
    expect(await tombstoneOf(id)).toMatchObject({ deleted: world.now(), notified: false });
  });

  it('ends the quarantine of the form: its events are dropped, and its subscription is tried again', async () => {
    const [id, other] = [await batches.add(due), await batches.add({ lockedFor: day })];
    for (const form of [id, other]) {
      await batches.quarantine(form, 'outbox');
      await addRow(form, 'subscribe', { notBefore: 'infinity' });
      await addRow(form, 'form-created', { notBefore: 'infinity' });
      await addRow(form, 'form-submitted', { notBefore: 'infinity', accepted: true });
      await addRow(form, 'form-unlocked');
    }
    expect(await batches.run('delete')).toMatchObject({ deleted: 1 });
    const read = async (form: string) =>
      (
        await world.pool.query(
          `SELECT kind, not_before = 'infinity' AS waits, refusals FROM outbox
          WHERE form_id = $1 AND kind NOT IN ('form-locked', 'form-deleted') ORDER BY sequence`,
          [form],
        )
      ).rows;
    expect(await read(id)).toEqual([
      { kind: 'subscribe', waits: false, refusals: 0 },
      { kind: 'form-submitted', waits: true, refusals: 3 },
      { kind: 'form-unlocked', waits: false, refusals: 3 },
    ]);
    expect((await read(other)).length).toBe(4);
    const { rows } = await world.pool.query('SELECT form_id FROM quarantine WHERE kind = $1', ['outbox']);
    expect(rows).toEqual([{ form_id: other }]);
  });
});

describe('a form whose outbox row Postgres rejects', () => {
  it('is locked without the row, which is returned', async () => {
    const id = await batches.add({ age: 16 * day });
    const facts = { definitionId: batches.definitionId, deleteOn: expect.stringMatching(/^2026-04-09T.*\.123Z$/) };
    const unwritten = [{ formId: id, tenantId: tenant, facts }];
    const next = { policies: batches.policies, after: { at: expect.any(String), id } };
    expect(await batches.bare('lock', id)).toEqual({ ...nothing, walked: 1, locked: 1, unwritten, next });
    expect(await world.form(id)).toMatchObject({ status: 'Locked', locked: world.now() });
    expect(await world.outbox(id)).toEqual([]);
  });

  it('is deleted without the row, which is returned', async () => {
    const id = await batches.add({ ...due, subscriberId: 'subscriber-1', files: { a: file } });
    const facts = { definitionId: batches.definitionId, subscriberId: 'subscriber-1', wasDraft: true, files: [file] };
    expect(await batches.bare('delete', id)).toMatchObject({
      ...{ walked: 1, deleted: 1, unnotified: [] },
      unwritten: [{ formId: id, tenantId: tenant, facts }],
    });
    expect(await world.form(id)).toBeUndefined();
    expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(['form-locked']);
  });

  it.each(['lock', 'delete'] as const)('is not changed if another form is next: %s', async (stage) => {
    const form = stage === 'lock' ? { age: 16 * day } : due;
    const [first, second] = [
      await batches.add({ ...form, ...(stage === 'lock' && { age: 17 * day }) }),
      await batches.add(form),
    ];
    const later = stage === 'lock' ? second : [first, second].sort()[1];
    expect(await batches.bare(stage, later ?? '')).toMatchObject({ walked: 1, locked: 0, deleted: 0, unwritten: [] });
    const nobody = createBatches(world);
    expect(await nobody.bare(stage, first)).toEqual({ ...nothing, unwritten: [] });
  });
});
