// Tests forms whose content Postgres cannot process. Such forms must expire if possible, be quarantined otherwise, and
// never affect other forms.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createFormsQuarantine } from '../src/forms/quarantine/store.ts';
import { productVersion } from '../src/service/operations/product-version.ts';
import { unsharedPool } from '../src/service/postgres/shared-pool.ts';
import { day, type ExpiryWorld, startExpiryWorld, tenant } from '../test/support/expiry.ts';
import { poison, poisons, refuseFormChanges, refuseOutboxRows } from '../test/support/poison.ts';
import { exitCodeOf } from './summary.ts';

let world: ExpiryWorld;
beforeAll(async () => {
  world = await startExpiryWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.pool.query('TRUNCATE forms, outbox, tombstones, quarantine CASCADE');
});

const entries = async () =>
  (await world.pool.query('SELECT kind, item, reason, detail, attempts, released FROM quarantine ORDER BY kind, item'))
    .rows;
const store = () => createFormsQuarantine({ pool: unsharedPool(world.pool), clock: world.now });

describe.each(Object.entries(poisons))('a form with %s', (_name, assignment) => {
  it('gets its warning and is locked and deleted when due, like every other form', async () => {
    const warned = await world.add({ age: 13 * day });
    const locked = await world.add({ age: 16 * day });
    const deleted = await world.add({ lockedFor: 16 * day, noticeAccepted: true });
    const others = [await world.add({ age: 16 * day }), await world.add({ age: 16 * day })];
    await poison(world.pool, [warned, locked, deleted], assignment);
    const result = await world.run();
    expect(result).toMatchObject({ outcome: 'succeeded', counts: { warned: 1, locked: 3, deleted: 1 } });
    expect(await world.form(warned)).toMatchObject({ warned: world.now() });
    for (const id of [locked, ...others]) expect(await world.form(id)).toMatchObject({ status: 'Locked' });
    expect(await world.form(deleted)).toBeUndefined();
    expect(await entries()).toEqual([]);
    expect(exitCodeOf(result)).toBe(0);
  });
});

it('the URNs of files are found in every spelling that JSON allows, whatever else `files` contains', async () => {
  const urn = (end: number) => `urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a55${end}`;
  const id = await world.add({ lockedFor: 16 * day, noticeAccepted: true });
  const escaped = [...urn(2)].map((char) => `\\u00${char.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
  const text = `{"\\u0000\\"\\\\":"${urn(1).replaceAll('/', '\\/')};${urn(3)}","\\\\u0041":"${escaped}","x":["\\u0000"]}`;
  await poison(world.pool, [id], `files = '${text}'`);
  await world.run();
  expect((await world.outbox(id)).at(-1)?.facts.files).toEqual([urn(1), urn(2), urn(3)]);
});

describe('forms that a statement fails for', () => {
  it('are quarantined one by one, while the other forms of the batch are locked, and the next run skips them', async () => {
    const ids = await Promise.all(Array.from({ length: 60 }, (_, at) => world.add({ age: 16 * day + at })));
    const bad = [0, 1, 17, 42, 59].map((at) => ids[at] ?? '');
    await refuseFormChanges(world.pool, bad);
    const result = await world.run({ batchSize: 25 });
    expect(result).toMatchObject({ outcome: 'succeeded', counts: { locked: 55, quarantined: 5 }, quarantined: 5 });
    expect(exitCodeOf(result)).toBe(3);
    for (const id of ids) expect((await world.form(id))?.status).toBe(bad.includes(id) ? 'Draft' : 'Locked');
    expect((await entries()).map(({ item }) => item)).toEqual([...bad].sort());
    for (const entry of await entries())
      expect(entry).toMatchObject({ kind: 'lock', reason: 'database-refused', detail: 'SQLSTATE 22P05', attempts: 1 });
    const again = await world.run({ batchSize: 25 });
    expect(again).toMatchObject({ outcome: 'succeeded', counts: { locked: 0, quarantined: 0 } });
    expect(exitCodeOf(again)).toBe(0);
    expect((await entries()).map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1, 1]);
  });

  it('leave only ids and codes in log and quarantine, not the content that Postgres quoted', async () => {
    await refuseOutboxRows(world.pool, [await world.add({ age: 16 * day })]);
    await world.run();
    const { rows } = await world.pool.query('SELECT * FROM quarantine');
    expect(rows).toHaveLength(1);
    const line = world.log.lines().findLast(({ msg }) => msg === 'item quarantined');
    expect(line).toMatchObject({ kind: 'lock-notice', form: rows[0].item, tenant, reason: 'database-refused' });
    expect(JSON.stringify([rows, world.log.lines()])).not.toContain('Main Street');
  });

  it('are tried again after a release, and leave no entry if that succeeds', async () => {
    const [one, other] = [await world.add({ age: 16 * day }), await world.add({ age: 16 * day })];
    await refuseFormChanges(world.pool, [one, other]);
    await world.run();
    await world.pool.query('DELETE FROM unchangeable WHERE form_id = $1', [one]);
    expect(await store().release('all')).toHaveLength(2);
    expect(await world.run({ arguments: { only: undefined, dryRun: true, allowPrune: false } })).toMatchObject({
      counts: { retried: 2, locked: 2 },
    });
    const result = await world.run();
    expect(result).toMatchObject({ counts: { retried: 2, locked: 1, quarantined: 1 } });
    expect(await entries()).toMatchObject([{ kind: 'lock', item: other, attempts: 2, released: false }]);
  });

  it('are tried once by each new version of the product', async () => {
    await refuseFormChanges(world.pool, [await world.add({ age: 16 * day })]);
    await world.run();
    await world.pool.query("UPDATE quarantine SET version = '0.0.1'");
    expect(await world.run()).toMatchObject({ counts: { retried: 1, quarantined: 1 } });
    expect(await world.run()).toMatchObject({ counts: { retried: 0, quarantined: 0 } });
    expect(await entries()).toMatchObject([{ attempts: 2 }]);
  });

  it('are deleted with their entries', async () => {
    const id = await world.add({ lockedFor: 16 * day, noticeAccepted: true });
    await world.pool.query(
      `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
       VALUES ('warn', $1, 't', jsonb_build_object('formId', $1::text), 'database-refused', '', $2, $2, 1, '0.1.0')`,
      [id, world.now()],
    );
    expect(await world.run()).toMatchObject({ counts: { deleted: 1 } });
    expect(await entries()).toEqual([]);
  });

  it('are not quarantined if the database is out of space or does not respond', async () => {
    const id = await world.add({ age: 16 * day });
    await world.pool.query(`
      CREATE FUNCTION fill_disk() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
      CREATE TRIGGER fill_disk BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION fill_disk()`);
    const stop = new AbortController();
    const run = world.run({ signal: stop.signal });
    await expect.poll(() => world.log.text()).toContain('statement failed, will be retried');
    stop.abort();
    expect(await run).toMatchObject({ outcome: 'failed', quarantined: 0 });
    await world.pool.query('DROP TRIGGER fill_disk ON outbox');
    expect(await entries()).toEqual([]);
    expect(await world.form(id)).toMatchObject({ status: 'Draft' });
  });
});

/** Adds a form whose event was quarantined at a time. */
async function quarantineEvent(moment: Date): Promise<void> {
  await world.pool.query(
    `WITH event AS (
       INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
       VALUES ($1, $2, 'form-created', '{"definitionId":"permit"}', $3, 'infinity') RETURNING sequence)
     INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
     SELECT 'form-created', sequence::text, $2, jsonb_build_object('formId', $1::text), 'service-refused', 'events 422',
       $3, $3, 10, $4 FROM event`,
    [await world.add(), tenant, moment, productVersion()],
  );
}

it('an outbox row that was quarantined during a sync of core clients is reported by the next expiry', async () => {
  await world.run();
  const { rows } = await world.pool.query<{ last: number }>('SELECT max(generation)::int AS last FROM reconciler_runs');
  const started = new Date(world.now().getTime() + 60_000);
  const finished = new Date(started.getTime() + 60_000);
  // The first run has counted. The row is quarantined a minute later, before the end of a run without an expiry.
  await quarantineEvent(started);
  await world.pool.query(
    `INSERT INTO reconciler_runs (generation, started, finished, outcome, clients_succeeded, counts)
     VALUES ($1, $2, $3, 'succeeded', true, '{}')`,
    [-(rows[0]?.last ?? 0), started, finished],
  );
  world.advance(10 * 60_000);
  const result = await world.run();
  expect([result.quarantined, exitCodeOf(result)]).toEqual([1, 3]);
  world.advance(10 * 60_000);
  expect(exitCodeOf(await world.run())).toBe(0);
});

it('an outbox row that was quarantined after the last run is reported, even if an earlier run began in the future', async () => {
  await world.run();
  const { rows } = await world.pool.query<{ last: string }>('SELECT max(generation) AS last FROM reconciler_runs');
  await world.pool.query('UPDATE reconciler_runs SET started = $2 WHERE generation = $1', [
    rows[0]?.last,
    new Date(world.now().getTime() + 30 * day),
  ]);
  await world.run();
  await quarantineEvent(new Date(world.now().getTime() + 60_000));
  world.advance(10 * 60_000);
  expect((await world.run()).quarantined).toBe(1);
});

it('a deleted form that was restored beside its tombstone is deleted again', async () => {
  const id = await world.add({ lockedFor: 16 * day, noticeAccepted: true });
  await world.pool.query(`INSERT INTO tombstones VALUES ($1, 't', 'permit', true, $2)`, [id, world.now()]);
  expect(await world.run()).toMatchObject({ outcome: 'succeeded', counts: { deleted: 1 } });
  expect(await world.form(id)).toBeUndefined();
});

it('deletions that are more than a day overdue are counted, whatever delays them', async () => {
  await world.add({ lockedFor: 15 * day + 1, noticeAccepted: false });
  await world.add({ lockedFor: 16 * day + 1, noticeAccepted: false });
  await world.run();
  const { rows } = await world.pool.query(
    'SELECT overdue_deletions FROM reconciler_runs ORDER BY generation DESC LIMIT 1',
  );
  expect(rows).toEqual([{ overdue_deletions: 1 }]);
});
