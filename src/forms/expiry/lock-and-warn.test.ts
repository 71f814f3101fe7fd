// Tests at which age, to the millisecond, the applicant of a draft is warned and the draft is locked. Also tests which
// outbox rows the warning and the lock cause.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../../../test/support/expiry.ts';
import { createBatches, nothing } from '../../../test/support/expiry-batch.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { setTraceSql } from './statements.ts';
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

const ago = (milliseconds: number) => new Date(world.now().getTime() - milliseconds);
const historyOf = async (id: string) =>
  (await world.pool.query('SELECT history FROM forms WHERE id = $1', [id])).rows[0]?.history;

describe('a draft that was not opened for the period', () => {
  it('is locked a millisecond later, with an event, an entry in its history and a new revision', async () => {
    const [kept, locked] = [await batches.add({ age: 15 * day }), await batches.add({ age: 15 * day + 1 })];
    expect(await batches.run('lock')).toEqual({ ...nothing, walked: 1, locked: 1 });
    expect(await world.form(kept)).toMatchObject({ status: 'Draft', revision: '1' });
    expect(await world.form(locked)).toMatchObject({ status: 'Locked', locked: world.now(), revision: '2' });
    const facts = { definitionId: batches.definitionId, deleteOn: ago(-20 * day).toISOString() };
    const moment = world.now();
    expect(await world.outbox(locked)).toEqual([
      { kind: 'form-locked', facts, created: moment, notBefore: moment, accepted: null },
    ]);
    expect(await historyOf(locked)).toEqual([['locked', expect.stringMatching(/^2026-/), 'system', null]]);
  });

  it('is not locked while it is on hold, and not twice', async () => {
    await batches.add({ age: 16 * day, held: true });
    await batches.add({ lockedFor: day, age: 16 * day });
    expect(await batches.run('lock')).toEqual(nothing);
  });

  it('is locked with the largest revision as well, which it keeps', async () => {
    const id = await batches.add({ age: 16 * day });
    await world.pool.query('UPDATE forms SET revision = 9223372036854775807 WHERE id = $1', [id]);
    expect(await batches.run('lock')).toMatchObject({ locked: 1 });
    expect(await world.form(id)).toMatchObject({ status: 'Locked', revision: '9223372036854775807' });
  });

  it.each(['lock', 'warn'] as const)('is left to the next run if another request is changing it: %s', async (stage) => {
    const id = await batches.add({ age: stage === 'lock' ? 16 * day : 13 * day });
    await withTransaction(world.pool, async (client) => {
      await client.query('SELECT FROM forms WHERE id = $1 FOR UPDATE', [id]);
      expect(await batches.run(stage)).toEqual({ ...nothing, walked: 1 });
    });
    expect(await batches.run(stage)).toMatchObject({ [`${stage}ed`]: 1 });
  });

  it.each(['lock', 'warn'] as const)('is only counted in a dry run: %s', async (stage) => {
    const id = await batches.add({ age: stage === 'lock' ? 16 * day : 13 * day });
    const quarantined = await batches.add({ age: stage === 'lock' ? 16 * day : 13 * day });
    await batches.quarantine(quarantined, stage);
    const counted = { ...nothing, walked: 2, [`${stage}ed`]: 1 };
    expect(await batches.run(stage, { dryRun: true })).toEqual(counted);
    expect(await world.form(id)).toMatchObject({ status: 'Draft', warned: null });
    expect(await world.outbox(id)).toEqual([]);
  });

  it.each(['lock', 'warn'] as const)('and is quarantined is skipped, until it is released: %s', async (stage) => {
    const age = stage === 'lock' ? 16 * day : 13 * day;
    await batches.quarantine(await batches.add({ age }), stage);
    await batches.quarantine(await batches.add({ age }), stage, true);
    await batches.quarantine(await batches.add({ age }), 'another stage');
    expect(await batches.run(stage)).toMatchObject({ walked: 3, [`${stage}ed`]: 2 });
  });
});

describe('a warning', () => {
  it('is sent between its own period and the lock, to the millisecond', async () => {
    const early = await batches.add({ age: 12 * day });
    const first = await batches.add({ age: 12 * day + 1 });
    const last = await batches.add({ age: 15 * day });
    const late = await batches.add({ age: 15 * day + 1 });
    expect(await batches.run('warn')).toEqual({ ...nothing, walked: 2, warned: 2 });
    for (const id of [early, late])
      expect([await world.outbox(id), (await world.form(id))?.warned]).toEqual([[], null]);
    const facts = (age: number) => ({
      definitionId: batches.definitionId,
      lockOn: ago(age - 15 * day).toISOString(),
      deleteOn: ago(age - 35 * day).toISOString(),
    });
    const moment = world.now();
    const row = { kind: 'form-expiring', created: moment, notBefore: moment, accepted: null };
    expect(await world.outbox(first)).toEqual([{ ...row, facts: facts(12 * day + 1) }]);
    expect(await world.outbox(last)).toEqual([{ ...row, facts: facts(15 * day) }]);
    expect(await world.form(first)).toMatchObject({ status: 'Draft', warned: moment, revision: '1' });
    expect(await historyOf(first)).toEqual([['warned', expect.stringMatching(/^2026-/), 'system', null]]);
  });

  it('is sent once for each access, and one from before the warning period does not count', async () => {
    const [warned, opened, early] = [
      await batches.add({ age: 13 * day }),
      await batches.add({ age: 13 * day }),
      await batches.add({ age: 13 * day }),
    ];
    const warn = (id: string, age: number) =>
      world.pool.query('UPDATE forms SET warned = $2 WHERE id = $1', [id, ago(age)]);
    await warn(warned, day);
    await warn(opened, 13 * day + 1);
    await warn(early, day + 1);
    expect(await batches.run('warn', { dryRun: true })).toMatchObject({ walked: 3, warned: 2 });
    expect(await batches.run('warn')).toMatchObject({ walked: 3, warned: 2 });
    expect(await world.outbox(warned)).toEqual([]);
    expect(await batches.run('warn')).toMatchObject({ walked: 3, warned: 0 });
  });

  it('is sent again, with the new dates, if the retention was extended after it', async () => {
    const id = await batches.add({ age: 13 * day });
    expect(await batches.run('warn')).toMatchObject({ warned: 1 });
    const retention = { ...batches.policy.retention, lockAfter: 90 * day };
    const position = { policies: [{ ...batches.policy, retention }] };
    expect(await batches.run('warn', { position })).toMatchObject({ walked: 0, warned: 0 });
    await world.pool.query(
      `UPDATE forms SET last_accessed = last_accessed - interval '1800 hours', warned = warned - interval '1800 hours'
      WHERE id = $1`,
      [id],
    );
    expect(await batches.run('warn', { position, dryRun: true })).toMatchObject({ walked: 1, warned: 1 });
    expect(await batches.run('warn', { position })).toMatchObject({ walked: 1, warned: 1 });
    expect(await batches.run('warn', { position })).toMatchObject({ walked: 1, warned: 0 });
    const [, second] = await world.outbox(id);
    expect(second).toMatchObject({ kind: 'form-expiring', facts: { lockOn: ago(-2 * day).toISOString() } });
  });

  it('is never sent if its period is zero', async () => {
    const silent = createBatches(world, { warnBefore: 0 });
    for (const age of [15 * day - 1, 15 * day, 15 * day + 1]) await silent.add({ age });
    expect(await silent.run('warn')).toEqual(nothing);
  });
});

describe('batches', () => {
  it('scan each definition from its oldest form, and each form once', async () => {
    const other = createBatches(world, { lockAfter: 5 * day });
    for (let nth = 0; nth < 3; nth += 1) await batches.add({ age: 20 * day });
    for (let nth = 0; nth < 2; nth += 1) await other.add({ age: (30 + nth) * day });
    const policies = [...batches.policies, ...other.policies];
    const first = await batches.run('lock', { position: { policies }, limit: 2 });
    expect(first).toMatchObject({ walked: 2, locked: 2, next: { policies } });
    const second = await batches.run('lock', { position: first.next ?? { policies: [] }, limit: 2 });
    expect(second).toMatchObject({ walked: 2, locked: 2, next: { policies: other.policies } });
    const third = await batches.run('lock', { position: second.next ?? { policies: [] }, limit: 2 });
    expect(third).toEqual({ ...nothing, walked: 1, locked: 1 });
    expect((await other.runAll('lock', 2)).locked).toBe(0);
  });

  it('begin each definition anew, also with a form at the bound whose id is lower than that of the last form', async () => {
    const other = createBatches(world);
    await batches.add({ age: 13 * day });
    const lowest = '00000000-0000-0000-0000-000000000001';
    await world.pool.query('UPDATE forms SET id = $1 WHERE id = $2', [lowest, await other.add({ age: 15 * day })]);
    expect((await batches.runAll('warn', 1, [...batches.policies, ...other.policies])).warned).toBe(2);
  });

  it('continue after the last scanned form even if it was not changed', async () => {
    for (let nth = 0; nth < 5; nth += 1) {
      const id = await batches.add({ age: 20 * day });
      if (nth < 4) await batches.quarantine(id, 'lock');
    }
    expect(await batches.runAll('lock', 2)).toEqual({ batches: 3, walked: 5, warned: 0, locked: 1, deleted: 0 });
  });

  it('do not wait for the disk, because the next run repeats a batch that a crash undid', async () => {
    await withTransaction(world.pool, async (client) => {
      await client.query('SET LOCAL synchronous_commit = on');
      const position = { policies: batches.policies };
      await expiryStore.batch(client, 'lock', { position, now: world.now(), limit: 1, dryRun: false });
      const { rows } = await client.query('SHOW synchronous_commit');
      expect(rows).toEqual([{ synchronous_commit: 'off' }]);
    });
  });

  it('write the trace of the run to the outbox', async () => {
    // The quote at the end of this value checks that the SQL escapes the text.
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'";
    const stages = { lock: await batches.add({ age: 16 * day }), warn: await batches.add({ age: 13 * day }) };
    for (const [stage, id] of Object.entries(stages) as ['lock' | 'warn', string][]) {
      const options = { position: { policies: batches.policies }, now: world.now(), limit: 9, dryRun: false };
      await withTransaction(world.pool, async (client) => {
        await client.query(setTraceSql(traceparent));
        await expiryStore.batch(client, stage, options);
      });
      const { rows } = await world.pool.query('SELECT traceparent FROM outbox WHERE form_id = $1', [id]);
      expect(rows).toEqual([{ traceparent }]);
    }
    expect(setTraceSql(undefined)).toBe('');
  });
});

describe('the counts', () => {
  it('of the forms to scan have the bounds of the stage', async () => {
    for (const age of [12 * day, 12 * day + 1, 15 * day, 15 * day + 1, 90 * day]) await batches.add({ age });
    await batches.add({ age: 90 * day, held: true });
    for (const lockedFor of [20 * day, 20 * day + 1]) await batches.add({ lockedFor });
    expect([await batches.count('warn'), await batches.count('lock'), await batches.count('delete')]).toEqual([
      2, 2, 1,
    ]);
    const nobody = createBatches(world);
    expect(await expiryStore.count(world.pool, 'lock', nobody.policies, world.now())).toBe(0);
  });

  it('include the time at which the most overdue draft should have been locked', async () => {
    await batches.add({ age: 15 * day });
    expect(await batches.oldestOverdue()).toBeUndefined();
    await batches.add({ age: 17 * day });
    await batches.add({ age: 18 * day });
    await batches.add({ age: 19 * day, held: true });
    await batches.add({ lockedFor: day, age: 50 * day });
    expect(await batches.oldestOverdue()).toEqual(ago(3 * day));
  });

  it('list each definition with forms that may expire, once and in order', async () => {
    await world.pool.query('DELETE FROM forms');
    await world.add({ definitionId: 'b' });
    await world.add({ definitionId: 'a', lockedFor: day });
    await world.add({ definitionId: 'a' });
    await world.add({ definitionId: 'a' });
    await world.add({ definitionId: 'held', held: true });
    await world.add({ definitionId: 'c', tenantId: `${tenant}0` });
    const submitted = await world.add({ definitionId: 'submitted' });
    await world.pool.query(`UPDATE forms SET status = 'Submitted' WHERE id = $1`, [submitted]);
    expect(await expiryStore.definitions(world.pool)).toEqual([
      { tenantId: tenant, definitionId: 'a' },
      { tenantId: tenant, definitionId: 'b' },
      { tenantId: `${tenant}0`, definitionId: 'c' },
    ]);
  });
});
