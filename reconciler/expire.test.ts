// Checks, to the millisecond, what a run of the reconciler does to drafts and locked forms. The database is real, and
// the tests advance the clock.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../test/support/expiry.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());

const later = (moment: Date, milliseconds: number) => new Date(moment.getTime() + milliseconds);

describe('a draft', () => {
  it('is locked when its last access is longer ago than the period, to the millisecond', async () => {
    const [young, old] = [await world.add({ age: 15 * day }), await world.add({ age: 15 * day + 1 })];
    expect(await world.run()).toMatchObject({ outcome: 'succeeded', counts: { locked: 1 } });
    expect(await world.form(young)).toMatchObject({ status: 'Draft', locked: null });
    expect(await world.form(old)).toMatchObject({ status: 'Locked', locked: world.now(), revision: '2' });
  });

  it('that is locked gets one form-locked in the outbox, with the time of its deletion', async () => {
    const id = await world.add({ age: 16 * day });
    await world.run();
    const deleteOn = later(world.now(), 15 * day).toISOString();
    expect(await world.outbox(id)).toEqual([
      {
        kind: 'form-locked',
        facts: { definitionId: 'permit', deleteOn },
        created: world.now(),
        notBefore: world.now(),
        accepted: null,
      },
    ]);
  });

  it('gets a warning when the lock is nearer than the warning period, to the millisecond', async () => {
    const [early, due] = [await world.add({ age: 12 * day }), await world.add({ age: 12 * day + 1 })];
    expect(await world.run()).toMatchObject({ counts: { warned: 1, locked: 0 } });
    expect(await world.form(early)).toMatchObject({ warned: null });
    expect(await world.outbox(early)).toEqual([]);
    expect(await world.form(due)).toMatchObject({ status: 'Draft', warned: world.now(), revision: '1' });
    const lockOn = later(world.now(), 3 * day - 1);
    expect(await world.outbox(due)).toMatchObject([
      {
        kind: 'form-expiring',
        facts: {
          definitionId: 'permit',
          lockOn: lockOn.toISOString(),
          deleteOn: later(lockOn, 15 * day).toISOString(),
        },
      },
    ]);
  });

  it('gets one warning, and another only after it was opened and then unused again', async () => {
    const id = await world.add({ age: 13 * day });
    await world.run();
    world.advance(day);
    await world.run();
    expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(['form-expiring']);
    await world.pool.query('UPDATE forms SET last_accessed = $2 WHERE id = $1', [id, world.now()]);
    world.advance(12 * day);
    await world.run();
    expect(await world.outbox(id)).toHaveLength(1);
    world.advance(1);
    await world.run();
    expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(['form-expiring', 'form-expiring']);
  });

  it('gets no warning if the period of warnings is not shorter than that of the lock, and the log says so', async () => {
    const id = await world.add({ definitionId: 'hasty', age: day });
    const retention = { warnBefore: 0, lockAfter: 3 * day, deleteAfter: day };
    const policy = { tenantId: tenant, definitionId: 'hasty', retention, ignoresWarning: true } as const;
    await world.run({ readRetentions: async () => ({ policies: [policy], skipped: [] }) });
    expect(await world.outbox(id)).toEqual([]);
    expect(world.log.lines()).toContainEqual(
      expect.objectContaining({
        definition: 'hasty',
        msg: 'no warnings sent: warnBefore is not shorter than lockAfter',
      }),
    );
  });

  it('that is already overdue is locked without a warning', async () => {
    const id = await world.add({ age: 20 * day });
    await world.run();
    expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(['form-locked']);
    expect(await world.form(id)).toMatchObject({ warned: null });
  });

  it('that is held gets no warning and is not locked', async () => {
    const ids = [await world.add({ age: 13 * day, held: true }), await world.add({ age: 99 * day, held: true })];
    await world.run();
    for (const id of ids) {
      expect(await world.form(id)).toMatchObject({ status: 'Draft', warned: null });
      expect(await world.outbox(id)).toEqual([]);
    }
  });
});

describe('a locked form', () => {
  it('is deleted when its lock is longer ago than the period, to the millisecond', async () => {
    const young = await world.add({ lockedFor: 15 * day, noticeAccepted: true });
    const old = await world.add({ lockedFor: 15 * day + 1, noticeAccepted: true });
    expect(await world.run()).toMatchObject({ counts: { deleted: 1, deletedNotNotified: 0 } });
    expect(await world.form(young)).toMatchObject({ status: 'Locked' });
    expect(await world.form(old)).toBeUndefined();
  });

  it('that is deleted leaves a tombstone, and form-deleted with its files and its subscriber', async () => {
    const urn = (end: number) =>
      `urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a55${end}`;
    const files = { permit: `${urn(1)};${urn(2)}`, plan: urn(2) };
    const id = await world.add({ lockedFor: 16 * day, noticeAccepted: true, files, subscriberId: 'subscriber-1' });
    await world.run();
    expect((await world.outbox(id)).at(-1)).toEqual({
      kind: 'form-deleted',
      facts: { definitionId: 'permit', wasDraft: true, subscriberId: 'subscriber-1', files: [urn(1), urn(2)] },
      created: world.now(),
      notBefore: world.now(),
      accepted: null,
    });
    const { rows } = await world.pool.query('SELECT * FROM tombstones WHERE form_id = $1', [id]);
    expect(rows).toEqual([
      {
        form_id: id,
        tenant_id: tenant,
        definition_id: 'permit',
        anonymous_applicant: true,
        deleted: world.now(),
        notified: true,
      },
    ]);
  });

  it('is deleted with its codes and idempotency records', async () => {
    const id = await world.add({ lockedFor: 16 * day, noticeAccepted: true });
    const hash = Buffer.from('hash');
    const now = world.now();
    await world.pool.query(`INSERT INTO used_codes VALUES ($1, $2, 'core', 'intake', $3)`, [id, hash, now]);
    await world.pool.query(
      `INSERT INTO idempotency_keys VALUES ('t', 'core', 'intake', 'route', $2, $2, $1, '{}', $3)`,
      [id, hash, now],
    );
    await world.pool.query('INSERT INTO code_sends (form_id, address_hash, sent) VALUES ($1, $2, $3)', [id, hash, now]);
    await world.run();
    expect(await world.form(id)).toBeUndefined();
    for (const table of ['used_codes', 'idempotency_keys', 'code_sends'])
      expect((await world.pool.query(`SELECT FROM ${table} WHERE form_id = $1`, [id])).rowCount).toBe(0);
    // The deletion of the form does not reset the number of codes that may be sent to the applicant's address.
    expect((await world.pool.query('SELECT FROM code_sends WHERE address_hash = $1', [hash])).rowCount).toBe(1);
  });

  it('that is held is not deleted', async () => {
    const id = await world.add({ lockedFor: 99 * day, noticeAccepted: true, held: true });
    await world.run();
    expect(await world.form(id)).toMatchObject({ status: 'Locked', held: true });
  });

  it('is deleted only after the event service has accepted its form-locked', async () => {
    const id = await world.add({ lockedFor: 16 * day, noticeAccepted: false });
    expect(await world.run()).toMatchObject({ outcome: 'succeeded', counts: { deleted: 0, waiting: 1 } });
    expect(await world.form(id)).toMatchObject({ status: 'Locked' });
    await world.pool.query('UPDATE outbox SET accepted = $2 WHERE form_id = $1', [id, world.now()]);
    expect(await world.run()).toMatchObject({ counts: { deleted: 1, deletedNotNotified: 0, waiting: 0 } });
    expect(await world.form(id)).toBeUndefined();
  });

  it('waits for the notice of its present lock, even if that of an earlier lock was accepted', async () => {
    const id = await world.add({ lockedFor: 16 * day, noticeAccepted: true });
    await world.pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
      VALUES ($1, $2, 'form-locked', '{"definitionId":"permit"}', $3, $3)`,
      [id, tenant, world.now()],
    );
    expect(await world.run()).toMatchObject({ counts: { deleted: 0, waiting: 1 } });
    await world.pool.query('DELETE FROM forms WHERE id = $1', [id]);
  });

  it('is deleted fifteen days after its period in any case, and recorded as not notified', async () => {
    const early = await world.add({ lockedFor: 30 * day, noticeAccepted: false });
    const late = await world.add({ lockedFor: 30 * day + 1, noticeAccepted: false });
    const without = await world.add({ lockedFor: 31 * day });
    const result = await world.run();
    expect(result).toMatchObject({ outcome: 'succeeded', counts: { deleted: 2, deletedNotNotified: 2, waiting: 1 } });
    expect(await world.form(early)).toMatchObject({ status: 'Locked' });
    const { rows } = await world.pool.query('SELECT form_id FROM tombstones WHERE NOT notified');
    expect(rows.map((row) => row.form_id).sort()).toEqual([late, without].sort());
    const audit = world.log.lines().filter((line) => 'audit' in line);
    expect(audit.map(({ form, tenant: of, definition }) => ({ form, of, definition }))).toEqual(
      expect.arrayContaining([late, without].map((form) => ({ form, of: tenant, definition: 'permit' }))),
    );
    expect(audit).toHaveLength(2);
    await world.pool.query('DELETE FROM forms WHERE id = $1', [early]);
  });
});

describe('forms in other statuses', () => {
  it.each(['Submitted', 'Archived'])('are not changed if they are %s, however old', async (status) => {
    const id = await world.add({ age: 999 * day });
    await world.pool.query('UPDATE forms SET status = $2 WHERE id = $1', [id, status]);
    await world.run();
    expect(await world.form(id)).toMatchObject({ status, locked: null, warned: null });
    expect(await world.outbox(id)).toEqual([]);
  });
});

describe('periods of a definition', () => {
  it('replace the defaults, each independently', async () => {
    world.retain('quick', { lockAfter: 2 * day, warnBefore: day, deleteAfter: 3 * day });
    world.retain('slow', { lockAfter: 100 * day });
    const quick = { definitionId: 'quick' };
    const [warned, locked] = [
      await world.add({ ...quick, age: day + 1 }),
      await world.add({ ...quick, age: 2 * day + 1 }),
    ];
    const deleted = await world.add({ ...quick, lockedFor: 3 * day + 1, noticeAccepted: true });
    const kept = await world.add({ definitionId: 'slow', age: 90 * day });
    expect(await world.run()).toMatchObject({ counts: { warned: 1, locked: 1, deleted: 1 } });
    expect(await world.form(warned)).toMatchObject({ status: 'Draft', warned: world.now() });
    expect(await world.form(locked)).toMatchObject({ status: 'Locked' });
    expect((await world.outbox(locked))[0]?.facts.deleteOn).toBe(later(world.now(), 3 * day).toISOString());
    expect(await world.form(deleted)).toBeUndefined();
    expect(await world.form(kept)).toMatchObject({ status: 'Draft', warned: null });
  });

  it('with a warning period of P0D send no warning', async () => {
    world.retain('silent', { warnBefore: 0 });
    const id = await world.add({ definitionId: 'silent', age: 15 * day });
    await world.run();
    expect(await world.form(id)).toMatchObject({ status: 'Draft', warned: null });
    expect(await world.outbox(id)).toEqual([]);
  });

  it('apply to one tenant, not to another tenant’s definition of the same name', async () => {
    const id = await world.add({ age: 16 * day, tenantId: 'urn:example:other' });
    await world.run();
    expect(await world.form(id)).toMatchObject({ status: 'Locked' });
    const { rows } = await world.pool.query('SELECT tenant_id FROM outbox WHERE form_id = $1', [id]);
    expect(rows).toEqual([{ tenant_id: 'urn:example:other' }]);
  });
});

describe('a definition that cannot be read', () => {
  it.each([
    ['invalid', 'succeeded'],
    ['failing', 'succeeded'],
    ['unreadable', 'failed'],
  ] as const)('because it is %s keeps its forms and holds up no other; the run has %s', async (reason, outcome) => {
    world.breakDefinition(`broken ${reason}`, reason);
    const broken = await world.add({ definitionId: `broken ${reason}`, age: 99 * day });
    const locked = await world.add({ definitionId: `broken ${reason}`, lockedFor: 99 * day, noticeAccepted: true });
    const other = await world.add({ age: 99 * day });
    const result = await world.run();
    expect(result.outcome).toBe(outcome);
    expect(result.counts.skippedDefinitions).toBeGreaterThanOrEqual(1);
    expect(await world.form(broken)).toMatchObject({ status: 'Draft' });
    expect(await world.form(locked)).toMatchObject({ status: 'Locked' });
    expect(await world.form(other)).toMatchObject({ status: 'Locked' });
    expect(world.log.lines()).toContainEqual(
      expect.objectContaining({ definition: `broken ${reason}`, tenant, reason, level: 'warn' }),
    );
    await world.pool.query('DELETE FROM forms WHERE id = ANY($1)', [[broken, locked]]);
  });
});

describe('batches', () => {
  it('of any size process every form of every definition once', async () => {
    const definitions = ['one', 'two', 'three', 'four'];
    const ids: string[] = [];
    for (let index = 0; index < 23; index += 1)
      ids.push(await world.add({ definitionId: definitions[index % 4] ?? '', age: 16 * day + (index % 5) }));
    const result = await world.run({ batchSize: 3 });
    expect(result.counts.locked).toBe(23);
    for (const id of ids) expect(await world.outbox(id)).toHaveLength(1);
    world.advance(15 * day + 1);
    await world.pool.query('UPDATE outbox SET accepted = $1 WHERE form_id = ANY($2)', [world.now(), ids]);
    expect((await world.run({ batchSize: 4 })).counts.deleted).toBeGreaterThanOrEqual(23);
    for (const id of ids) expect(await world.form(id)).toBeUndefined();
  });

  it('change at most 1,000 forms per second at first, so that requests find a free database', async () => {
    await Promise.all(Array.from({ length: 401 }, () => world.add({ definitionId: 'paced', age: 16 * day })));
    const started = performance.now();
    const result = await world.run({ batchSize: 200 });
    expect(result.counts.locked).toBeGreaterThanOrEqual(401);
    expect(performance.now() - started).toBeGreaterThan(390);
  });
});

it('a draft that is warned and locked has both in its history, without an account', async () => {
  const id = await world.add({ age: 13 * day });
  await world.run();
  const warned = world.now().toISOString();
  world.advance(3 * day);
  await world.run();
  const { rows } = await world.pool.query<{ history: string[][] }>('SELECT history FROM forms WHERE id = $1', [id]);
  const entries = rows[0]?.history.map(([event, time = '', ...author]) => [
    event,
    new Date(time).toISOString(),
    ...author,
  ]);
  expect(entries).toEqual([
    ['warned', warned, 'system', null],
    ['locked', world.now().toISOString(), 'system', null],
  ]);
});
