// Tests each statement that claims or settles rows.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createOutboxDatabase, type OutboxDatabase } from '../../../test/support/outbox.ts';
import { claimSql } from './claim-statements.ts';
import { type ClaimedBatch, createOutboxStore, type OutboxStore } from './store.ts';

let database: OutboxDatabase;
let store: OutboxStore;
const now = new Date('2026-08-20T17:00:00.000Z');
const later = (ms: number) => new Date(now.getTime() + ms);
const options = { service: 'events', limit: 10, now, lease: 60_000 } as const;
const claim = async (at = now, limit = 10) => (await store.claim({ ...options, limit, now: at })).rows;

beforeEach(async () => {
  database = await createOutboxDatabase();
  store = createOutboxStore({ pool: database.pool, removalDelay: 900_000, noticeTime: 0, deleteFiles: false });
});

afterEach(() => database.close());

describe('a claim', () => {
  it('returns the oldest undelivered row of each form, with the form', async () => {
    const form = await database.addForm({ at: now });
    const first = await database.addRow(form, 'form-created', { at: now });
    await database.addRow(form, 'form-submitted', { at: now });
    expect(await claim()).toMatchObject([
      {
        sequence: first,
        formId: form,
        attempts: 1,
        claimedUntil: later(60_000),
        form: { status: 'Draft', created: now },
      },
    ]);
    expect(await claim()).toEqual([]);
  });

  it('returns the rows of a deleted form without the form', async () => {
    const form = await database.addForm({ at: now });
    await database.addRow(form, 'form-deleted', { at: now });
    await database.removeForm(form);
    expect(await claim()).toMatchObject([{ formId: form, form: undefined }]);
  });

  it('expires, and the row can be claimed again as another attempt', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    await claim();
    expect(await claim(later(59_000))).toEqual([]);
    expect(await claim(later(61_000))).toMatchObject([{ attempts: 2 }]);
  });

  it('of a process whose clock was days ahead has no effect', async () => {
    const [form, other] = [await database.addForm(), await database.addForm()];
    await database.addRow(form, 'form-created', { at: now });
    await database.addRow(other, 'subscribe', { at: now });
    await claim(later(2 * 86_400_000));
    await store.claimSubscribe(other, later(2 * 86_400_000), 30_000);
    const { service, limit } = options;
    expect(await store.fewest({ service, limit, now })).toHaveLength(1);
    expect(await claim()).toMatchObject([{ formId: form, attempts: 2, claimedUntil: later(60_000) }]);
    expect(await store.claimSubscribe(other, now, 30_000)).toMatchObject({ attempts: 2 });
  });

  it('of the subscriber of a deleted form does not wait for files that cannot be removed', async () => {
    const form = await database.addForm();
    const files = await database.addRow(form, 'remove-files', { at: now });
    const subscriber = await database.addRow(form, 'remove-subscriber', { at: now });
    const claimed = async (service: 'files' | 'notifications') =>
      (await store.claim({ ...options, service })).rows.map(({ sequence }) => sequence);
    expect(await claimed('notifications')).toEqual([subscriber]);
    expect(await claimed('files')).toEqual([files]);
  });

  it('of the files of a deleted form does not wait for the removal of its subscriber, but for all other rows', async () => {
    const form = await database.addForm();
    const deleted = await database.addRow(form, 'form-deleted', { at: now });
    const subscriber = await database.addRow(form, 'remove-subscriber', { at: later(30 * 86_400_000) });
    const files = await database.addRow(form, 'remove-files', { at: now });
    const claimFiles = async () => (await store.claim({ ...options, service: 'files' })).rows;
    expect(await claimFiles()).toEqual([]);
    await store.accept([{ row: { sequence: deleted } }], now);
    expect(await claimFiles()).toMatchObject([{ sequence: files, kind: 'remove-files' }]);
    const notifications = { ...options, service: 'notifications', now: later(30 * 86_400_000) } as const;
    expect((await store.claim(notifications)).rows).toMatchObject([{ sequence: subscriber }]);
  });

  it('skips rows that are not due', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: later(1_000) });
    expect(await claim()).toEqual([]);
    expect(await claim(later(1_000))).toHaveLength(1);
  });

  it('returns no row that a concurrent claim returns', async () => {
    for (let form = 0; form < 50; form += 1)
      await database.addRow(await database.addForm(), 'form-created', { at: now });
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim(now, 8)));
    const sequences = claims.flat().map(({ sequence }) => sequence);
    expect(new Set(sequences).size).toBe(sequences.length);
  });

  it('continues from a position; without one it finds rows that have become due before that position', async () => {
    const [form, other] = [await database.addForm({ at: now }), await database.addForm({ at: now })];
    const first = await database.addRow(form, 'form-created', { at: now });
    const second = await database.addRow(form, 'form-submitted', { at: now });
    const third = await database.addRow(other, 'form-created', { at: now });
    const claimAfter = (after?: ClaimedBatch['end']) => store.claim({ ...options, after });
    const { rows, end } = await claimAfter();
    expect(rows.map(({ sequence }) => sequence)).toEqual([first, third]);
    expect(end?.sequence).toBe(third);
    await store.accept([{ row: { sequence: first } }], now);
    expect(await claimAfter(end)).toEqual({ rows: [], end: undefined });
    expect((await claimAfter()).rows.map(({ sequence }) => sequence)).toEqual([second]);
  });

  it.each(['events', 'files'] as const)(
    'of %s scans the index, even if the statistics do not know the backlog',
    async (service) => {
      await database.pool.query(
        `INSERT INTO outbox (form_id, tenant_id, kind, created, not_before)
         SELECT gen_random_uuid(), 't', $2, $1, $1 FROM generate_series(1, 20000)`,
        [now, service === 'files' ? 'remove-files' : 'form-locked'],
      );
      const sql = claimSql({ ...options, service, limit: 64 }).replace('WITH due', 'EXPLAIN WITH due');
      const results: unknown = await database.pool.query(sql);
      const plan = JSON.stringify((results as { rows: unknown[] }[]).at(-1)?.rows);
      expect(plan).toContain('Index Scan using outbox_due');
      expect(plan).toMatch(/Index (?:Only )?Scan using outbox_open_by_form/);
    },
  );

  it('is not compiled, which would take a thousand times as long as the claim up to Postgres 17', async () => {
    const sql = claimSql(options);
    const client = await database.pool.connect();
    try {
      const before = (await client.query('SHOW jit')).rows;
      await client.query(`BEGIN; ${sql.slice(0, sql.indexOf('WITH due'))}`);
      expect((await client.query('SHOW jit')).rows).toEqual([{ jit: 'off' }]);
      await client.query('ROLLBACK');
      await client.query(sql);
      expect((await client.query('SHOW jit')).rows).toEqual(before);
    } finally {
      client.release();
    }
  });
});

describe('a failed row', () => {
  it('is due again at its time', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    const [row] = await claim();
    if (row) await store.fail([{ kind: 'failed', row, notBefore: later(5_000) }]);
    expect(await claim(later(4_000))).toEqual([]);
    expect(await claim(later(5_000))).toMatchObject([{ attempts: 2 }]);
  });

  it('that was not tried is due as before, and the claim does not count as an attempt', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    const [row] = await claim();
    if (row) await store.fail([{ kind: 'untried', row }]);
    expect(await claim()).toMatchObject([{ attempts: 1 }]);
  });

  it('stays with the process that has claimed it since', async () => {
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    const [row] = await claim();
    await claim(later(61_000));
    if (row) await store.fail([{ kind: 'failed', row, notBefore: now }]);
    expect(await claim(later(62_000))).toEqual([]);
  });
});

it('an acceptance stores any subscriber id as it is', async () => {
  const sequence = await database.addRow(await database.addForm(), 'subscribe', { at: now });
  const subscriberId = `o'b\\r"ien {,} \u{1f600}`;
  await store.accept([{ row: { sequence }, subscriberId }], now);
  const { rows } = await database.pool.query("SELECT facts ->> 'subscriberId' AS id FROM outbox");
  expect(rows).toEqual([{ id: subscriberId }]);
});

it('an accepted row keeps the time of its first acceptance, which the expiry reads', async () => {
  const sequence = await database.addRow(await database.addForm(), 'form-locked', { at: now });
  await store.accept([{ row: { sequence } }], now);
  await store.accept([{ row: { sequence } }], later(60_000));
  const { rows } = await database.pool.query('SELECT accepted FROM outbox');
  expect(rows).toEqual([{ accepted: now }]);
});

it('an accepted row contains no name of a person', async () => {
  const facts = { actor: { id: 'a', name: 'Ana' } };
  await database.addRow(await database.addForm(), 'form-created', { at: now, facts });
  await store.accept(
    (await claim()).map((row) => ({ row })),
    now,
  );
  const { rows } = await database.pool.query('SELECT facts FROM outbox');
  expect(rows).toEqual([{ facts: { definitionId: 'permit' } }]);
});

it('the acceptance of form-deleted changes a limited number of rows that an older version has accepted', async () => {
  const form = await database.addForm();
  await database.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
     SELECT $1, 't', 'form-submitted', '{"actor":{"id":"a","name":"Ana"}}', $2, $2, $2 FROM generate_series(1, 1500)`,
    [form, now],
  );
  const sequence = await database.addRow(form, 'form-deleted', { at: now });
  await store.accept([{ row: { sequence } }], now);
  const { rows } = await database.pool.query("SELECT count(*)::int AS named FROM outbox WHERE facts ? 'actor'");
  expect(rows).toEqual([{ named: 500 }]);
});

describe('an acceptance that is repeated after a failure', () => {
  it('adds its events to the estimated queue of the notification service once', async () => {
    const slow = createOutboxStore({
      ...{ pool: database.pool, removalDelay: 0, noticeTime: 60_000, deleteFiles: false },
    });
    await database.addRow(await database.addForm(), 'form-created', { at: now });
    const accepted = (await claim()).map((row) => ({ row }));
    const busyUntil = async () => (await database.pool.query('SELECT busy_until FROM notice_queue')).rows[0].busy_until;
    await database.pool.query('ALTER TABLE outbox RENAME TO elsewhere');
    for (let attempt = 0; attempt < 3; attempt += 1) await expect(slow.accept(accepted, now)).rejects.toThrow();
    await database.pool.query('ALTER TABLE elsewhere RENAME TO outbox');
    await slow.accept(accepted, now);
    expect(await busyUntil()).toEqual(later(60_000));
  });
});
