// Tests, statement by statement, which outdated rows are purged: to the millisecond, in batches, and in a dry run.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { formMigrations } from './migrations.ts';
import { type Purge, type PurgeOptions, purgeBatch, purges } from './purge-store.ts';

const hour = 60 * 60_000;
const day = 24 * hour;
const now = new Date('2026-03-20T10:00:00.123Z');
const ago = (milliseconds: number) => new Date(now.getTime() - milliseconds);

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  ({ pool } = database);
});
afterAll(() => database.drop());

const purge = (table: Purge, options: Partial<PurgeOptions> = {}) =>
  withTransaction(pool, (client) =>
    purgeBatch(client, table, { now, after: undefined, limit: 100, dryRun: false, ...options }),
  );
const rowsOf = async (table: string) => (await pool.query(`SELECT FROM ${table}`)).rowCount;

async function addForm(status = 'Draft'): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
      anonymous_applicant, one_per_applicant, applicant, last_accessed, locked)
    VALUES ($1, 't', 'permit', $2, $3, '{"id":"k","name":"K"}', 'core', true, false, '{"channels":[]}', $3, $3)`,
    [id, status, now],
  );
  return id;
}

/** For each table, the period of its rows, and the statement that writes a row. A row's age counts from the time $1. */
const writers: [Exclude<Purge, 'outbox'>, period: number, sql: string][] = [
  ['tombstones', 30 * day, `INSERT INTO tombstones VALUES (gen_random_uuid(), 't', 'd', true, $1)`],
  [
    'idempotency_keys',
    day,
    `INSERT INTO idempotency_keys
     SELECT 't', 'i', 's', 'r', decode(md5(gen_random_uuid()::text), 'hex'), 'b', id, '{}', $1 FROM forms LIMIT 1`,
  ],
  [
    'used_codes',
    day,
    `INSERT INTO used_codes SELECT id, decode(md5(gen_random_uuid()::text), 'hex'), 'i', 's', $1 FROM forms LIMIT 1`,
  ],
  [
    'code_attempts',
    hour,
    `INSERT INTO code_attempts (address_hash, code_hash, issuer, subject, attempted) VALUES ('a', 'c', 'i', 's', $1)`,
  ],
  ['code_sends', hour, `INSERT INTO code_sends (address_hash, sent) VALUES ('a', $1)`],
  [
    'created_notices',
    hour,
    `INSERT INTO created_notices
     VALUES (decode(md5(gen_random_uuid()::text), 'hex'), $1::timestamptz, ARRAY[$1::timestamptz])`,
  ],
  ['apply_codes', 12 * hour, `INSERT INTO apply_codes VALUES (gen_random_uuid(), 'c', 'b', $1)`],
  ['apply_saves', hour, `INSERT INTO apply_saves VALUES (gen_random_uuid(), 's', '"1"', $1)`],
  ['apply_counts', day, `INSERT INTO apply_counts VALUES ('l', decode(md5(gen_random_uuid()::text), 'hex'), $1, 1)`],
  [
    'reconciler_runs',
    30 * day,
    `INSERT INTO reconciler_runs (generation, started, finished, outcome, counts)
     SELECT coalesce(max(generation), 0) + 1, $1, $1, 'succeeded', '{}' FROM reconciler_runs`,
  ],
];

describe('outdated rows', () => {
  it('of these tables are purged, in this order', () => {
    const aged = writers.map(([table]) => table);
    expect(purges).toEqual([...aged.slice(0, -1), 'outbox', ...aged.slice(-1)]);
  });

  it.each(writers)('of %s are purged from the end of their period on, the oldest first', async (table, period, sql) => {
    await addForm();
    for (const age of [period - 1, period, period + 1, period + 2]) await pool.query(sql, [ago(age)]);
    expect(await purge(table, { dryRun: true, limit: 1 })).toEqual({ removed: 3, next: undefined });
    expect(await rowsOf(table)).toBe(4);
    expect(await purge(table, { limit: 2 })).toEqual({ removed: 2, next: 'more' });
    expect(await purge(table, { limit: 2, after: 'more' })).toEqual({ removed: 1, next: undefined });
    expect(await purge(table)).toEqual({ removed: 0, next: undefined });
    expect(await rowsOf(table)).toBe(1);
  });

  it('that another transaction has locked are left to the next run', async () => {
    await pool.query('DELETE FROM code_sends');
    for (const age of [hour, hour])
      await pool.query(`INSERT INTO code_sends (address_hash, sent) VALUES ('a', $1)`, [ago(age)]);
    await withTransaction(pool, async (client) => {
      await client.query('SELECT FROM code_sends LIMIT 1 FOR UPDATE');
      expect(await purge('code_sends')).toMatchObject({ removed: 1 });
    });
  });
});

describe('rows of the outbox', () => {
  /** Writes rows of the outbox, and returns their sequence numbers. A row without `accepted` was not delivered. */
  async function fill(rows: { formId?: string; kind?: string; created?: number; accepted?: number }[]) {
    await pool.query('DELETE FROM outbox');
    const sequences: string[] = [];
    for (const { formId = randomUUID(), kind = 'form-created', created = 80 * day, accepted } of rows) {
      const inserted = await pool.query(
        `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before, accepted)
        VALUES ($1, 't', $2, $3, $3, $4) RETURNING sequence`,
        [formId, kind, ago(created), accepted === undefined ? null : ago(accepted)],
      );
      sequences.push(inserted.rows[0].sequence);
    }
    return sequences;
  }
  const left = async () =>
    (await pool.query('SELECT sequence FROM outbox ORDER BY sequence')).rows.map(({ sequence }) => sequence);

  it('are purged a week after their delivery, and never before it', async () => {
    const [, kept, waiting] = await fill([{ accepted: 2 * day }, { accepted: 2 * day - 1 }, {}]);
    expect(await purge('outbox', { dryRun: true })).toEqual({ removed: 1, next: undefined });
    expect((await left()).length).toBe(3);
    expect(await purge('outbox')).toEqual({ removed: 1, next: undefined });
    expect(await left()).toEqual([kept, waiting]);
  });

  it('that the deletion of a locked form reads are kept', async () => {
    const [locked, draft] = [await addForm('Locked'), await addForm()];
    const old = { accepted: 3 * day };
    const [kept] = await fill([
      { ...old, formId: locked, kind: 'form-locked' },
      { ...old, formId: locked, kind: 'subscribe' },
      { ...old, formId: draft, kind: 'form-locked' },
      { ...old, kind: 'form-locked' },
    ]);
    expect(await purge('outbox')).toMatchObject({ removed: 3 });
    expect(await left()).toEqual([kept]);
  });

  it('are scanned in pages, each after the last row of the previous one', async () => {
    const sequences = await fill([{ accepted: 3 * day }, {}, { accepted: 3 * day }, { accepted: 3 * day }]);
    const first = await purge('outbox', { limit: 2 });
    expect(first).toEqual({ removed: 1, next: sequences[1] });
    expect(await left()).toEqual(sequences.slice(1));
    expect(await purge('outbox', { limit: 2, after: first.next })).toEqual({ removed: 2, next: sequences[3] });
    expect(await purge('outbox', { limit: 2, after: sequences[3] })).toEqual({ removed: 0, next: undefined });
    expect(await left()).toEqual([sequences[1]]);
  });

  it('are not scanned beyond a page of rows that are all younger than a week', async () => {
    const young = { created: 2 * day - 1 };
    await fill([young, young, { accepted: 3 * day }]);
    expect(await purge('outbox', { limit: 2 })).toEqual({ removed: 0, next: undefined });
    const [, second] = await fill([young, { created: 2 * day }, { accepted: 3 * day }]);
    expect(await purge('outbox', { limit: 2 })).toEqual({ removed: 0, next: second });
  });
});
