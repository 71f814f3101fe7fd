// Tests that a form with very many rows costs the statements of the outbox no more than other forms. A form that is
// submitted and returned in a loop gets hundreds of thousands of rows within two days.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase } from '../../../test/support/outbox.ts';
import { claimSql } from './claim-statements.ts';
import { acceptSql } from './settle-statements.ts';
import { createOutboxStore, type OutboxStore } from './store.ts';

let database: OutboxDatabase;
let store: OutboxStore;
const now = new Date('2026-08-20T17:00:00.000Z');
const options = { service: 'events', limit: 10, now, lease: 60_000 } as const;
const settlement = { now, removal: now, deleteFiles: false };

beforeEach(async () => {
  database = await createOutboxDatabase();
  store = createOutboxStore({ pool: database.pool, removalDelay: 900_000, noticeTime: 0, deleteFiles: false });
});

afterEach(() => database.close());

/** The output of EXPLAIN: the blocks that a statement read from the cache and from the disk. */
interface Explained {
  'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }];
}

const addRows = (form: string, count: number, accepted?: Date) =>
  database.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before, accepted)
     SELECT $1, 't', 'form-submitted', $2, $2, $4 FROM generate_series(1, $3)`,
    [form, now, count, accepted],
  );

const removals = async () =>
  (await database.pool.query("SELECT facts FROM outbox WHERE kind = 'remove-subscriber'")).rows;

/** Returns the number of blocks that the statement reads, and undoes its changes. */
async function blocksOf(sql: string): Promise<number> {
  const explained = sql.replace('WITH ', 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) WITH ');
  const client = await database.pool.connect();
  const results: unknown = await client.query(`BEGIN; ${explained}; ROLLBACK`).finally(() => client.release());
  const plan = (results as { rows: Explained[] }[]).at(-2)?.rows[0]?.['QUERY PLAN'][0].Plan;
  return (plan?.['Shared Hit Blocks'] ?? Number.NaN) + (plan?.['Shared Read Blocks'] ?? Number.NaN);
}

it('a claim reads little for a form that was submitted and returned in a loop, and returns the rows of other forms', async () => {
  const [looped, other] = [await database.addForm({ at: now }), await database.addForm({ at: now })];
  await addRows(looped, 5_000);
  await database.pool.query("UPDATE outbox SET not_before = 'infinity' WHERE sequence <= 1000");
  await database.pool.query('UPDATE outbox SET accepted = $1 WHERE sequence > 1000', [now]);
  await addRows(looped, 2_000);
  const last = await database.addRow(other, 'form-created', { at: now });
  // Before, each of the 2,000 rows read all accepted and quarantined rows of the form: 1,800,000 blocks.
  expect(await blocksOf(claimSql(options))).toBeLessThan(50_000);
  expect((await store.claim(options)).rows.map(({ formId, sequence }) => [formId, sequence])).toEqual([
    [looped, '5001'],
    [other, last],
  ]);
});

it('the acceptance of form-deleted does not read all rows of the form', async () => {
  const form = await database.addForm({ at: now });
  const subscribe = await database.addRow(form, 'subscribe', { at: now });
  await store.accept([{ row: { sequence: subscribe }, subscriberId: 's' }], now);
  await addRows(form, 100_000, now);
  const accepted = [{ row: { sequence: await database.addRow(form, 'form-deleted', { at: now }) } }];
  // Before, the statement read all rows of the form, in order to find its subscriber: 7,700 blocks.
  expect(await blocksOf(acceptSql(accepted, settlement))).toBeLessThan(500);
  await store.accept(accepted, now);
  expect(await removals()).toEqual([{ facts: { definitionId: 'permit', subscriberId: 's' } }]);
});

it('the acceptance of the subscribe of a deleted form does not read all rows of the form', async () => {
  const form = await database.addForm({ at: now });
  const sequence = await database.addRow(form, 'subscribe', { at: now });
  await addRows(form, 100_000, now);
  const deleted = await database.addRow(form, 'form-deleted', { at: now });
  await store.accept([{ row: { sequence: deleted } }], now);
  await database.removeForm(form);
  const accepted = [{ row: { sequence }, subscriberId: 's' }];
  // Before, the statement read all rows of the form, in order to find its `form-deleted`: 3,900 blocks.
  expect(await blocksOf(acceptSql(accepted, settlement))).toBeLessThan(500);
  await store.accept(accepted, now);
  expect(await removals()).toEqual([{ facts: { definitionId: 'permit', subscriberId: 's' } }]);
});
