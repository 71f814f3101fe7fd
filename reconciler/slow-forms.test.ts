// Tests statements that exceed the statement timeout, and stages that fail. A form that is too slow must not stop the
// other forms, and a slow database must not send forms to quarantine.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expiryStore, type Stage, stages } from '../src/forms/expiry/store.ts';
import { day, type ExpiryWorld, startExpiryWorld } from '../test/support/expiry.ts';
import { delayFormChanges } from '../test/support/poison.ts';
import { exitCodeOf } from './summary.ts';

const timeout = 1_500;
let world: ExpiryWorld;
let pool: pg.Pool;
beforeAll(async () => {
  world = await startExpiryWorld();
  pool = new pg.Pool({ connectionString: world.url, max: 4, options: `-c statement_timeout=${timeout}` });
});
afterAll(async () => {
  await pool.end();
  await world.close();
});
beforeEach(async () => {
  await delayFormChanges(world.pool, [], 0);
  await world.pool.query('TRUNCATE forms, outbox, tombstones, quarantine, code_sends CASCADE');
});

const entries = async () => (await world.pool.query('SELECT kind, item, reason, detail FROM quarantine')).rows;
const due = { age: 16 * day };

describe('a form that exceeds the statement timeout alone', () => {
  it('is quarantined, while the other forms of its batch and of other definitions are locked', async () => {
    const ids = await Promise.all(Array.from({ length: 7 }, (_, at) => world.add({ age: 16 * day + at })));
    const other = await world.add({ ...due, definitionId: 'zoning' });
    const [slow = ''] = ids.slice(3);
    await delayFormChanges(world.pool, [slow], 2 * timeout);
    const result = await world.run({ pool, batchSize: 4 });
    expect(result).toMatchObject({ outcome: 'succeeded', counts: { locked: 7, quarantined: 1 } });
    expect(exitCodeOf(result)).toBe(3);
    for (const id of [...ids, other]) expect((await world.form(id))?.status, id).toBe(id === slow ? 'Draft' : 'Locked');
    expect(await entries()).toEqual([
      { kind: 'lock', item: slow, reason: 'database-refused', detail: 'SQLSTATE 57014' },
    ]);
    expect(await world.run({ pool })).toMatchObject({ outcome: 'succeeded', counts: { quarantined: 0 } });
  });

  it('is not quarantined if every form does, and the other stages still run', async () => {
    const drafts = [await world.add(due), await world.add(due)];
    const expired = await world.add({ lockedFor: 16 * day, noticeAccepted: true });
    await world.pool.query("INSERT INTO code_sends (address_hash, sent) VALUES ('a', '2020-01-01')");
    await delayFormChanges(world.pool, 'all', 2 * timeout);
    const result = await world.run({ pool });
    expect(result).toMatchObject({ outcome: 'failed', failures: ['the stage lock failed'], quarantined: 0 });
    for (const id of drafts) expect(await world.form(id)).toMatchObject({ status: 'Draft' });
    expect(await entries()).toEqual([]);
    expect(await world.form(expired)).toBeUndefined();
    expect((await world.pool.query('SELECT FROM code_sends')).rowCount).toBe(0);
  });
});

describe('a failure', () => {
  it.each(stages)('of the stage %s does not keep the other stages from running', async (failing) => {
    const seen = new Set<Stage>();
    await world.add(due);
    const batch: typeof expiryStore.batch = (db, stage, options) => {
      seen.add(stage);
      if (stage === failing) throw new Error('fails');
      return expiryStore.batch(db, stage, options);
    };
    const result = await world.run({ store: { ...expiryStore, batch } });
    expect(result).toMatchObject({ outcome: 'failed', failures: [`the stage ${failing} failed`] });
    expect([...seen]).toEqual(stages);
    const { rows } = await world.pool.query(
      'SELECT forms_by_status FROM reconciler_runs ORDER BY generation DESC LIMIT 1',
    );
    expect(rows[0].forms_by_status).toMatchObject({ Locked: failing === 'lock' ? 0 : 1 });
  });

  it('of a batch ends the work on its definition, not on the definitions after it', async () => {
    const [first, second] = [
      await world.add({ ...due, definitionId: 'a' }),
      await world.add({ ...due, definitionId: 'b' }),
    ];
    const batch: typeof expiryStore.batch = (db, stage, options) => {
      if (options.position.policies[0]?.definitionId === 'a') throw new Error('fails');
      return expiryStore.batch(db, stage, options);
    };
    const result = await world.run({ store: { ...expiryStore, batch } });
    expect(result).toMatchObject({ outcome: 'failed', counts: { locked: 1 } });
    expect(await world.form(first)).toMatchObject({ status: 'Draft' });
    expect(await world.form(second)).toMatchObject({ status: 'Locked' });
  });

  it('of three batches in a row ends the stage', async () => {
    for (const definitionId of ['a', 'b', 'c', 'd']) await world.add({ ...due, definitionId });
    const tried: (string | undefined)[] = [];
    const batch: typeof expiryStore.batch = (db, stage, options) => {
      if (stage !== 'lock') return expiryStore.batch(db, stage, options);
      tried.push(options.position.policies[0]?.definitionId);
      throw new Error('fails');
    };
    expect(await world.run({ store: { ...expiryStore, batch } })).toMatchObject({ outcome: 'failed' });
    expect(tried).toEqual(['a', 'b', 'c']);
  });
});
