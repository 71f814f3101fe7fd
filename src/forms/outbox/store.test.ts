// Claims and outcomes, statement by statement.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase } from '../../../test/support/outbox.ts';
import { claimSql } from './statements.ts';
import { createOutboxStore, type Look, type OutboxStore } from './store.ts';

let database: OutboxDatabase;
let store: OutboxStore;
const now = new Date('2026-08-20T17:00:00.000Z');
const later = (ms: number) => new Date(now.getTime() + ms);
const claim = async (at = now, limit = 10) =>
  (await store.claim({ lane: 'events', limit, now: at, lease: 60_000 })).rows;

beforeEach(async () => {
  database = await createOutboxDatabase();
  store = createOutboxStore({ pool: database.pool, removalDelay: 900_000, deleteFiles: false });
});

afterEach(() => database.close());

describe('a claim', () => {
  it('gives each form’s oldest undelivered row, with the form as it is', async () => {
    const form = await database.addForm({ at: now });
    const first = await database.addRow(form, 'form-created', { at: now });
    await database.addRow(form, 'form-submitted', { at: now });
    const rows = await claim();
    expect(rows).toMatchObject([
      { sequence: first, formId: form, attempts: 1, form: { status: 'Draft', created: now } },
    ]);
    expect(await claim()).toEqual([]);
  });

  it('runs out, and the row is claimed again as another try', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    await claim();
    expect(await claim(later(59_000))).toEqual([]);
    expect(await claim(later(61_000))).toMatchObject([{ attempts: 2 }]);
  });

  it('waits for not_before', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: later(1_000) });
    expect(await claim()).toEqual([]);
    expect(await claim(later(1_000))).toHaveLength(1);
  });

  it('of many relays at once gives no row twice', async () => {
    for (let form = 0; form < 50; form += 1)
      await database.addRow(await database.addForm(), 'form-created', { at: now });
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim(now, 8)));
    const sequences = claims.flat().map(({ sequence }) => sequence);
    expect(new Set(sequences).size).toBe(sequences.length);
  });

  it('goes on from a place, and without one finds what has become due before it', async () => {
    const [form, other] = [await database.addForm({ at: now }), await database.addForm({ at: now })];
    const first = await database.addRow(form, 'form-created', { at: now });
    const second = await database.addRow(form, 'form-submitted', { at: now });
    const third = await database.addRow(other, 'form-created', { at: now });
    const look = (after?: Look['end']) => store.claim({ lane: 'events', limit: 10, now, lease: 60_000, after });
    const { rows, end } = await look();
    expect(rows.map(({ sequence }) => sequence)).toEqual([first, third]);
    expect(end?.sequence).toBe(third);
    await store.accept([{ row: { sequence: first } }], now);
    expect(await look(end)).toEqual({ rows: [], end: undefined });
    expect((await look()).rows.map(({ sequence }) => sequence)).toEqual([second]);
  });

  it('walks the index, also when the statistics know nothing of the backlog', async () => {
    await database.pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before)
       SELECT gen_random_uuid(), 't', 'form-locked', $1, $1 FROM generate_series(1, 20000)`,
      [now],
    );
    const sql = claimSql({ lane: 'events', now, until: later(1), limit: 64 }).replace('WITH due', 'EXPLAIN WITH due');
    const answers: unknown = await database.pool.query(sql);
    const plan = JSON.stringify((answers as { rows: unknown[] }[]).at(-1)?.rows);
    expect(plan).toContain('Index Scan using outbox_due');
    expect(plan).toContain('Index Scan using outbox_by_form');
  });
});

describe('a failed row', () => {
  it('comes back at its time', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    const [row] = await claim();
    if (row) await store.fail([{ row, notBefore: later(5_000) }]);
    expect(await claim(later(4_000))).toEqual([]);
    expect(await claim(later(5_000))).toMatchObject([{ attempts: 2 }]);
  });

  it('that was not tried is as due as it was, and the claim counts for nothing', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    const [row] = await claim();
    if (row) await store.fail([{ row, notBefore: undefined }]);
    expect(await claim()).toMatchObject([{ attempts: 1 }]);
  });

  it('stays with the relay that has claimed it meanwhile', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    const [row] = await claim();
    await claim(later(61_000));
    if (row) await store.fail([{ row, notBefore: now }]);
    expect(await claim(later(62_000))).toEqual([]);
  });
});

it('an acceptance takes a subscriber’s id as it is, whatever is in it', async () => {
  const sequence = await database.addRow(await database.addForm(), 'subscribe', { at: now });
  const subscriberId = `o'b\\r"ien {,} \u{1f600}`;
  await store.accept([{ row: { sequence }, subscriberId }], now);
  const { rows } = await database.pool.query("SELECT facts ->> 'subscriberId' AS id FROM outbox");
  expect(rows).toEqual([{ id: subscriberId }]);
});

it('an accepted row keeps the moment of its first acceptance, which the expiry asks for', async () => {
  const sequence = await database.addRow(await database.addForm(), 'form-locked', { at: now });
  await store.accept([{ row: { sequence } }], now);
  await store.accept([{ row: { sequence } }], later(60_000));
  const { rows } = await database.pool.query('SELECT accepted FROM outbox');
  expect(rows).toEqual([{ accepted: now }]);
});
