// Tests how the index of applicants' addresses is filled for existing forms, with a real database.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { migrationsDirectory } from '../start.ts';
import { createAddressHashes } from './address.ts';
import { createAddressIndexStore } from './index-store.ts';
import { startAddressWalk } from './index-walk.ts';

const now = new Date('2026-08-20T17:00:00.000Z');
const count = 3_000;
const hashes = createAddressHashes('a key of tests with more than 32 characters');
const others = createAddressHashes('another key of tests with more than 32 characters');
const walk = { now, limit: 500, interval: 600_000, overlap: 300_000 };

// The ids are UUIDs of version 7, as in the form service; their times are ten seconds apart.
const formsSql = `
INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
  one_per_applicant, applicant, last_accessed)
SELECT (substr(lpad(to_hex(ms), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(ms), 12, '0'), 9, 4)
    || '-7000-8000-' || lpad(to_hex(g), 12, '0'))::uuid,
  't', 'permit', 'Draft', $1, '{"id":"s","name":"Intake"}', 'core', true, false,
  jsonb_build_object('channels', jsonb_build_array(
    jsonb_build_object('channel', 'email', 'address', 'a' || g || '@example.org'))), $1
FROM (SELECT g, (extract(epoch FROM $1::timestamptz) * 1000)::bigint - g * 10000 AS ms FROM generate_series(1, $2) g) f`;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  await pool.query(formsSql, [now, count]);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await pool.query(
    'DELETE FROM applicant_addresses; DELETE FROM address_index; INSERT INTO address_index DEFAULT VALUES',
  );
});

const storeOf = (own = hashes, on = pool) => createAddressIndexStore(on, own);
const indexed = async (own = hashes) => {
  const all = Array.from({ length: count }, (_, nth) =>
    own.one('t', { channel: 'email', address: `a${nth + 1}@example.org` }),
  );
  const sql = 'SELECT count(DISTINCT form_id)::int AS n FROM applicant_addresses WHERE address_hash = ANY ($1)';
  return (await pool.query<{ n: number }>(sql, [all])).rows[0]?.n;
};

async function walkToEnd(store = storeOf(), options = walk): Promise<number> {
  for (let walked = 0; ; ) {
    const batch = await store.walk(options);
    walked += batch?.walked ?? 0;
    if (!batch || batch.isLast) return walked;
  }
}

describe('the index of addresses', () => {
  it('is filled in batches, by one pod at a time, and is complete after the last', async () => {
    const [one, other] = [storeOf(), storeOf()];
    expect([await one.claim(), await other.claim()]).toEqual([true, false]);
    const [first, second] = await Promise.all([walkToEnd(one), walkToEnd(other)]);
    expect(first + second).toBe(count);
    expect([await indexed(), await other.isComplete()]).toEqual([count, true]);
  });

  it('finds the forms that a pod of an older version created meanwhile, at the next walk', async () => {
    const store = storeOf();
    await store.claim();
    await walkToEnd(store);
    await pool.query(
      `DELETE FROM applicant_addresses WHERE form_id IN (SELECT id FROM forms ORDER BY id DESC LIMIT 20)`,
    );
    expect(await store.walk({ ...walk, now: new Date(now.getTime() + 599_000) })).toBeUndefined();
    const next = await store.walk({ ...walk, now: new Date(now.getTime() + 601_000) });
    // The next walk covers only the forms of the last minutes.
    expect(next).toEqual({ walked: 30, added: 20, isLast: true });
    expect(await indexed()).toBe(count);
  });

  it('is walked again when due, even if the last walk ended on a pod whose clock was days ahead', async () => {
    const store = storeOf();
    await store.claim();
    await walkToEnd(store, { ...walk, now: new Date(now.getTime() + 2 * 86_400_000) });
    expect(await store.walk(walk)).toMatchObject({ isLast: true });
    expect(await store.walk(walk)).toBeUndefined();
  });

  it('is built again under another key: the pod that started last decides, and no hash of the former key is left', async () => {
    await storeOf().claim();
    await walkToEnd();
    const rotated = storeOf(others);
    expect([await rotated.claim(), await rotated.isComplete(), await storeOf().walk(walk)]).toEqual([
      true,
      false,
      undefined,
    ]);
    await walkToEnd(rotated);
    expect([await indexed(others), await indexed(), await rotated.isComplete()]).toEqual([count, 0, true]);
  });

  it('skips values that are not addresses, and continues', async () => {
    const broken = ['"x"', '[{}, null, {"channel": "email", "address": 1}]', '{}', 'null'];
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM forms ORDER BY id LIMIT 4');
    const set = "UPDATE forms SET applicant = jsonb_build_object('channels', $2::jsonb) WHERE id = $1 RETURNING id";
    const before = await pool.query('SELECT id, applicant FROM forms WHERE id = ANY ($1)', [rows.map(({ id }) => id)]);
    for (const [nth, { id }] of rows.entries()) await pool.query(set, [id, broken[nth]]);
    await storeOf().claim();
    expect([await walkToEnd(), await indexed()]).toEqual([count, count - 4]);
    for (const { id, applicant } of before.rows)
      await pool.query('UPDATE forms SET applicant = $2 WHERE id = $1', [id, applicant]);
  });

  it('does not make saves wait', async () => {
    const store = storeOf();
    await store.claim();
    const walking = await pool.connect();
    // A pool with a single connection. A walk can begin a transaction on it, but the COMMIT of the walk is never sent.
    const held = {
      connect: async () => Object.assign(Object.create(walking), { query: keepOpen(walking), release() {} }),
    };
    const batch = await storeOf(hashes, held as unknown as pg.Pool).walk(walk);
    expect(batch?.walked).toBe(500);
    const saved = await pool.query(
      "SET lock_timeout = '1s'; UPDATE forms SET data = '{}', last_accessed = now(), revision = revision + 1, status = 'Locked'",
    );
    expect((saved as unknown as pg.QueryResult[])[1]?.rowCount).toBe(count);
    await walking.query('ROLLBACK');
    walking.release();
  });

  it('is walked in the background after a failure too, until the process stops', async () => {
    const log = captureLog();
    let failures = 2;
    const store = storeOf();
    const failing: typeof store.walk = (options) => {
      if (failures-- > 0) throw new Error('out of reach');
      return store.walk(options);
    };
    const running = startAddressWalk({
      store: { ...store, walk: failing },
      ...{ clock: () => now, log: log.log, pace: { limit: 1_000, retry: { first: 1, cap: 2 } } },
    });
    await expect.poll(() => log.text()).toContain('address index completed');
    await running.stop();
    expect(log.text().match(/address index not updated/g)?.length).toBe(2);
    expect(await indexed()).toBe(count);
  });
});

/** Returns a query function that sends every statement except COMMIT, so that the transaction stays open. */
function keepOpen(client: pg.PoolClient) {
  return (text: string, values?: unknown[]) =>
    text === 'COMMIT' ? Promise.resolve() : client.query(text, values as unknown[]);
}
