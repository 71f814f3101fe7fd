// Checks, to the millisecond, which outdated rows a run of the reconciler deletes and which it keeps.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../../../test/support/expiry.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());

const hour = 60 * 60_000;
const ago = (milliseconds: number) => new Date(world.now().getTime() - milliseconds);
const rows = async (table: string) => (await world.pool.query(`SELECT FROM ${table}`)).rowCount;

/** Functions that write a row whose age in milliseconds is the argument `age`. */
const writers: [table: string, period: number, write: (age: number, index: number) => Promise<unknown>][] = [
  [
    'tombstones',
    30 * day,
    (age) => world.pool.query(`INSERT INTO tombstones VALUES (gen_random_uuid(), 't', 'd', true, $1)`, [ago(age)]),
  ],
  [
    'idempotency_keys',
    day,
    async (age, index) => {
      const key = Buffer.from(String(index));
      const values = [key, await world.add(), ago(age)];
      return world.pool.query(`INSERT INTO idempotency_keys VALUES ('t', 'i', 's', 'r', $1, $1, $2, '{}', $3)`, values);
    },
  ],
  [
    'used_codes',
    day,
    async (age) => {
      const values = [await world.add(), Buffer.from('hash'), ago(age)];
      return world.pool.query(`INSERT INTO used_codes VALUES ($1, $2, 'i', 's', $3)`, values);
    },
  ],
  [
    'code_attempts',
    hour,
    (age) =>
      world.pool.query(
        `INSERT INTO code_attempts (address_hash, code_hash, issuer, subject, attempted) VALUES ('a', 'c', 'i', 's', $1)`,
        [ago(age)],
      ),
  ],
  [
    'code_sends',
    hour,
    (age) => world.pool.query(`INSERT INTO code_sends (address_hash, sent) VALUES ('a', $1)`, [ago(age)]),
  ],
  [
    'created_notices',
    hour,
    (age, index) =>
      world.pool.query(
        `INSERT INTO created_notices VALUES (decode(md5($2::text), 'hex'), $1::timestamptz, ARRAY[$1::timestamptz])`,
        [ago(age), `${age} ${index}`],
      ),
  ],
  [
    'apply_codes',
    12 * hour,
    (age) => world.pool.query(`INSERT INTO apply_codes VALUES (gen_random_uuid(), 'c', 'b', $1)`, [ago(age)]),
  ],
  [
    'apply_saves',
    hour,
    (age) => world.pool.query(`INSERT INTO apply_saves VALUES (gen_random_uuid(), 's', '"1"', $1)`, [ago(age)]),
  ],
  [
    'apply_counts',
    24 * hour,
    (age) =>
      world.pool.query(
        `INSERT INTO apply_counts VALUES ('limit', decode(md5(gen_random_uuid()::text), 'hex'), $1, 1)`,
        [ago(age)],
      ),
  ],
];

describe('outdated rows', () => {
  it.each(writers)(
    'of %s are deleted after their period, to the millisecond, in batches',
    async (table, period, write) => {
      for (let index = 0; index < 5; index += 1) await write(period + index, index);
      await write(period - 1, 5);
      expect(await rows(table)).toBe(6);
      expect(await world.run({ batchSize: 2 })).toMatchObject({ outcome: 'succeeded', counts: { purged: 5 } });
      expect(await rows(table)).toBe(1);
      await world.pool.query(`DELETE FROM ${table}`);
    },
  );
});

describe('rows of the outbox', () => {
  const add = async (formId: string, kind: string, { age, accepted }: { age: number; accepted: number | null }) =>
    world.pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
      VALUES ($1, $2, $3, '{"definitionId":"permit"}', $4, $4, $5)`,
      [formId, tenant, kind, ago(age), accepted === null ? null : ago(accepted)],
    );

  it('are deleted two days after their delivery, and never before it', async () => {
    const id = await world.add();
    await add(id, 'subscribe', { age: 3 * day, accepted: 2 * day });
    await add(id, 'form-created', { age: 3 * day, accepted: 2 * day - 1 });
    await add(id, 'form-submitted', { age: 80 * day, accepted: null });
    expect(await world.run({ batchSize: 1 })).toMatchObject({ counts: { purged: 1 } });
    expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(['form-created', 'form-submitted']);
    await world.pool.query('DELETE FROM outbox');
  });

  it('are deleted, although a page of older removals waits for the notification service', async () => {
    for (let index = 0; index < 10; index += 1)
      await add(await world.add(), 'remove-subscriber', { age: -20 * day, accepted: null });
    const id = await world.add();
    await add(id, 'form-created', { age: 3 * day, accepted: 2 * day });
    // With this size, a page of the purge has ten rows.
    expect(await world.run({ batchSize: 1 })).toMatchObject({ counts: { purged: 1 } });
    expect(await world.outbox(id)).toEqual([]);
    await world.pool.query('DELETE FROM outbox');
  });

  it('that the deletion of a locked form reads are kept while the form is locked', async () => {
    world.retain('long', { deleteAfter: 100 * day });
    const id = await world.add({ lockedFor: 90 * day, noticeAccepted: true, definitionId: 'long' });
    const draft = await world.add();
    await add(draft, 'form-locked', { age: 20 * day, accepted: 20 * day });
    expect(await world.run()).toMatchObject({ counts: { purged: 1, deleted: 0 } });
    expect((await world.outbox(id)).map(({ kind }) => kind)).toEqual(['form-locked']);
    expect(await world.outbox(draft)).toEqual([]);
    world.advance(11 * day);
    expect(await world.run()).toMatchObject({ counts: { deleted: 1, deletedNotNotified: 0 } });
  });

  it('are not needed for the removal of a subscriber, which form-deleted names', async () => {
    const id = await world.add({ lockedFor: 16 * day, noticeAccepted: true, subscriberId: 'subscriber-2' });
    await world.run();
    expect((await world.outbox(id)).at(-1)).toMatchObject({
      kind: 'form-deleted',
      facts: { subscriberId: 'subscriber-2' },
    });
  });
});

describe('records of runs', () => {
  it('are deleted after thirty days', async () => {
    await world.pool.query('DELETE FROM reconciler_runs');
    await world.run();
    world.advance(30 * day);
    await world.run();
    expect(await rows('reconciler_runs')).toBe(1);
  });
});
