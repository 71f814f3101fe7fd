// Tests the list of deletions, and how the deletions are repeated in a database that was restored from a backup.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { poison, poisons } from '../../../test/support/poison.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import {
  type Erasure,
  eraseAgain,
  erasureSchema,
  listErasures,
  skipSequences,
  withoutRepetitions,
} from './erasure-store.ts';
import { formMigrations } from './migrations.ts';

const now = new Date('2026-03-20T10:00:00.123Z');
const deleted = new Date('2026-03-10T08:00:00.456Z');
const tenantId = 'urn:example:tenant';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  ({ pool } = database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await pool.query('DELETE FROM forms; DELETE FROM tombstones; DELETE FROM outbox');
});

const erasure = (changes: Partial<Erasure> = {}): Erasure => ({
  ...{ formId: randomUUID(), tenantId, definitionId: 'permit', anonymousApplicant: true },
  ...{ deleted: deleted.toISOString(), notified: false, sequence: null },
  ...changes,
});

async function addForm(): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
      anonymous_applicant, one_per_applicant, applicant, last_accessed, subscriber_id)
    VALUES ($1, $2, 'permit', 'Submitted', $3, '{"id":"k","name":"K"}', 'core', true, false, '{}', $3, 'subscriber-1')`,
    [id, tenantId, deleted],
  );
  return id;
}

const addTombstone = (formId: string, at = deleted) =>
  pool.query(`INSERT INTO tombstones VALUES ($1, $2, 'permit', true, $3, false)`, [formId, tenantId, at]);

/** Adds a row to the outbox, and returns its sequence number. */
async function addRow(formId: string, kind: string): Promise<string> {
  const sql = `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before) VALUES ($1, $2, $3, $4, $4)
    RETURNING sequence`;
  return (await pool.query(sql, [formId, tenantId, kind, now])).rows[0].sequence;
}

const list = (since: Date) => Array.fromAsync(listErasures(pool, since));
const tombstones = async () => (await pool.query('SELECT * FROM tombstones ORDER BY form_id')).rows;
const outbox = async () =>
  (await pool.query('SELECT sequence, form_id, kind, facts, created, not_before FROM outbox ORDER BY sequence')).rows;

describe('the list of deletions', () => {
  it('begins with those at the given time, and has the number of the event if it is still known', async () => {
    const [early, first, second] = [randomUUID(), randomUUID(), randomUUID()];
    await addTombstone(early, new Date(deleted.getTime() - 1));
    await addTombstone(first);
    await addTombstone(second, new Date(deleted.getTime() + 1));
    await addRow(first, 'form-created');
    await addRow(first, 'form-deleted');
    const sequence = await addRow(first, 'form-deleted');
    await addRow(first, 'remove-subscriber');
    expect(await list(deleted)).toEqual([
      erasure({ formId: first, sequence }),
      erasure({ formId: second, deleted: new Date(deleted.getTime() + 1).toISOString() }),
    ]);
  });

  it('has each deletion once, also those of one moment', async () => {
    await pool.query(
      `INSERT INTO tombstones SELECT gen_random_uuid(), $1, 'permit', true, $2, false FROM generate_series(1, 2001)`,
      [tenantId, deleted],
    );
    const ids = (await list(deleted)).map(({ formId }) => formId);
    expect(ids).toEqual((await tombstones()).map(({ form_id: id }) => id));
    expect(ids).toHaveLength(2001);
  });
});

describe('an entry', () => {
  it('is valid as it was listed, with or without a number', () => {
    for (const sequence of [null, '1', '9'.repeat(18)])
      expect(erasureSchema.parse(erasure({ sequence }))).toEqual(erasure({ sequence, formId: expect.any(String) }));
  });

  it.each<[string, object]>([
    ['another field', { data: {} }],
    ['an id that is no UUID', { formId: 'x' }],
    ['no tenant', { tenantId: '' }],
    ['no definition', { definitionId: undefined }],
    ['no flag', { anonymousApplicant: undefined }],
    ['no flag for its notice', { notified: null }],
    ['a date instead of a time', { deleted: '2026-03-10' }],
    ['an empty number', { sequence: '' }],
    ['a negative number', { sequence: '-1' }],
    ['a number that is too long for the database', { sequence: '1'.repeat(19) }],
    ['a number and text', { sequence: '1x' }],
    ['no number', { sequence: undefined }],
  ])('with %s is invalid', (_what, change) => {
    expect(erasureSchema.safeParse({ ...erasure(), ...change }).success).toBe(false);
  });

  it('of a form counts once, with the number that any of its entries has', () => {
    const formId = randomUUID();
    const [bare, numbered, other] = [erasure({ formId }), erasure({ formId, sequence: '7' }), erasure()];
    for (const entries of [
      [bare, numbered, other],
      [numbered, bare, other],
      [bare, numbered, other, bare],
    ])
      expect(withoutRepetitions(entries)).toEqual([numbered, other]);
    expect(withoutRepetitions([bare, { ...bare, definitionId: 'last' }])).toEqual([{ ...bare, definitionId: 'last' }]);
  });
});

describe('a deletion that is repeated', () => {
  it('deletes the form of the restored database; its tombstone and its event are from now, with the old number', async () => {
    const formId = await addForm();
    expect(await eraseAgain(pool, [erasure({ formId, sequence: '4711' })], now)).toEqual([{ id: formId, tenantId }]);
    expect((await pool.query('SELECT FROM forms')).rowCount).toBe(0);
    expect(await tombstones()).toMatchObject([{ form_id: formId, deleted: now, notified: false }]);
    const facts = { definitionId: 'permit', subscriberId: 'subscriber-1', wasDraft: false, files: [] };
    expect(await outbox()).toEqual([
      { sequence: '4711', form_id: formId, kind: 'form-deleted', facts, created: now, not_before: now },
    ]);
  });

  it('gets a new number if the old one is unknown, or another row has it', async () => {
    const [formId, second] = [await addForm(), await addForm()];
    const used = await addRow(randomUUID(), 'form-created');
    expect(
      await eraseAgain(pool, [erasure({ formId, sequence: used }), erasure({ formId: second })], now),
    ).toHaveLength(2);
    const events = (await outbox()).filter(({ kind }) => kind === 'form-deleted');
    expect(events.map(({ form_id: id }) => id).sort()).toEqual([formId, second].sort());
    for (const { sequence } of events) expect(Number(sequence)).toBeGreaterThan(Number(used));
  });

  it('of a form that the backup lacks leaves its tombstone as it was, and looks once for its subscriber', async () => {
    const missing = erasure();
    expect(await eraseAgain(pool, [missing], now)).toEqual([]);
    expect(await list(deleted)).toEqual([missing]);
    expect(await eraseAgain(pool, [{ ...missing, notified: true, deleted: now.toISOString() }], now)).toEqual([]);
    expect(await list(deleted)).toEqual([missing]);
    const facts = { definitionId: 'permit' };
    expect(await outbox()).toMatchObject([{ form_id: missing.formId, kind: 'subscribe', facts, not_before: now }]);
  });

  it('of a form that was deleted before the backup changes nothing', async () => {
    const formId = randomUUID();
    await addTombstone(formId);
    expect(await eraseAgain(pool, [erasure({ formId })], now)).toEqual([]);
    expect(await outbox()).toEqual([]);
  });

  it('deletes a form with content that Postgres cannot process like the other forms of the list', async () => {
    const ids = [await addForm()];
    for (const assignment of Object.values(poisons)) {
      const id = await addForm();
      await poison(pool, [id], assignment);
      ids.push(id);
    }
    const erasures = ids.map((formId) => erasure({ formId }));
    expect(await eraseAgain(pool, erasures, now)).toHaveLength(ids.length);
  });

  it('does not delete the form of another tenant', async () => {
    const formId = await addForm();
    expect(await eraseAgain(pool, [erasure({ formId, tenantId: 'urn:example:other' })], now)).toEqual([]);
    expect((await pool.query('SELECT FROM forms')).rowCount).toBe(1);
    expect([await tombstones(), await outbox()]).toEqual([[], []]);
  });
});

describe('the numbers of events', () => {
  it('continue a billion later, so that consumers do not take a new event for an old one', async () => {
    const before = Number(await addRow(randomUUID(), 'form-created'));
    await skipSequences(pool);
    expect(Number(await addRow(randomUUID(), 'form-created'))).toBe(before + 1_000_000_001);
  });
});
