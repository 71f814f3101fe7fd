// Tests what the records of the reconciler's runs contain, and how forms are counted for them.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { countForms } from './count-forms.ts';
import { formMigrations } from './migrations.ts';
import { type RunRecord, readRecentRuns, readRetention, readRunHistory, writeRun } from './run-store.ts';

const minute = 60_000;
const start = Date.parse('2026-03-20T10:00:00.123Z');
const at = (generation: number) => new Date(start + generation * minute);

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  ({ pool } = database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await pool.query('DELETE FROM reconciler_runs');
});

function record(generation: number, changes: Partial<RunRecord> = {}): RunRecord {
  return {
    ...{ generation: String(generation), started: at(generation - 1), finished: at(generation), outcome: 'succeeded' },
    ...{ expirySucceeded: null, clientsSucceeded: null, counts: {}, conditions: null, oldestOverdue: null },
    ...{ overdueDeletions: null, formsByStatus: null, retention: null },
    ...changes,
  };
}
const full = record(1, {
  ...{ outcome: 'failed', expirySucceeded: true, clientsSucceeded: false, counts: { locked: 2 } },
  ...{ conditions: { 'Ready=True': 3 }, oldestOverdue: at(-60), overdueDeletions: 4, formsByStatus: { Draft: 5 } },
  retention: { warnBefore: 1, lockAfter: 2, deleteAfter: 3 },
});
const write = (...records: RunRecord[]) => Promise.all(records.map((each) => writeRun(pool, each)));
const facts = { conditions: null, oldestOverdue: null, overdueDeletions: null, formsByStatus: null };

describe('the records of runs', () => {
  it('are returned as they were written, the newest first, up to a number', async () => {
    await write(full, record(2), record(3));
    expect(await readRecentRuns(pool, 2)).toEqual([record(3), record(2)]);
    expect((await readRecentRuns(pool, 9)).at(-1)).toEqual(full);
  });

  it('contain the default periods of the last run that recorded them', async () => {
    expect(await readRetention(pool)).toBeUndefined();
    await write(full, record(2, { retention: { warnBefore: 4, lockAfter: 5, deleteAfter: 6 } }), record(3));
    expect(await readRetention(pool)).toEqual({ warnBefore: 4, lockAfter: 5, deleteAfter: 6 });
  });
});

describe('the summary of all runs', () => {
  it('does not exist before the first run', async () => {
    expect(await readRunHistory(pool)).toBeUndefined();
  });

  it('has the last run, and each fact of the last run that has it', async () => {
    await write(full, record(2, { conditions: { 'Ready=False': 1 }, oldestOverdue: at(-9) }), record(3));
    const { generation, started, finished, outcome, counts } = record(3);
    const last = { generation, started, finished, outcome, counts, expirySucceeded: null, clientsSucceeded: null };
    expect(await readRunHistory(pool)).toEqual({
      ...{ last: expect.objectContaining(last), expirySuccess: at(1), clientsSuccess: null },
      ...{ expiryIncluded: true, clientsIncluded: true },
      ...{ conditions: { 'Ready=False': 1 }, oldestOverdue: at(-9), overdueDeletions: 4, formsByStatus: { Draft: 5 } },
    });
  });

  it('has the end of the last success of each part', async () => {
    await write(
      record(1, { expirySucceeded: true, clientsSucceeded: true }),
      record(2, { expirySucceeded: true, clientsSucceeded: false }),
      record(3, { expirySucceeded: false }),
    );
    expect(await readRunHistory(pool)).toMatchObject({ expirySuccess: at(2), clientsSuccess: at(1), ...facts });
  });

  it('has the end of the last success, even if an earlier run ended in the future', async () => {
    await write(record(1, { expirySucceeded: true, finished: at(90_000) }));
    await write(record(2, { expirySucceeded: true }), record(3));
    expect(await readRunHistory(pool)).toMatchObject({ expirySuccess: at(2) });
  });

  it('takes a part that none of the last twenty runs included for turned off', async () => {
    await write(record(1, { clientsSucceeded: true }));
    for (let generation = 2; generation <= 20; generation += 1) await write(record(generation));
    expect(await readRunHistory(pool)).toMatchObject({ clientsSuccess: at(1) });
    await write(record(21));
    expect(await readRunHistory(pool)).toMatchObject({ clientsSuccess: null, clientsIncluded: false });
    await write(record(22, { clientsSucceeded: false }));
    expect(await readRunHistory(pool)).toMatchObject({ clientsSuccess: at(1), clientsIncluded: true });
  });

  it('has no overdue draft after an expiry that succeeded without one', async () => {
    await write(full, record(2, { expirySucceeded: true }), record(3, { expirySucceeded: false }));
    expect(await readRunHistory(pool)).toMatchObject({ oldestOverdue: null, overdueDeletions: 4 });
  });
});

describe('the count of forms', () => {
  const insert = `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
      anonymous_applicant, one_per_applicant, applicant, last_accessed)
    SELECT gen_random_uuid(), 't', 'd', status, now(), '{"id":"k","name":"K"}', 'core', true, false, '{}', now()
    FROM unnest(ARRAY['Draft', 'Draft', 'Locked']) AS status`;

  it('has every status, also those without a form', async () => {
    await pool.query(insert);
    expect(await countForms({ pool, log: captureLog().log })).toEqual({
      Draft: 2,
      Locked: 1,
      Submitted: 0,
      Archived: 0,
    });
    // Checks that the settings of the count's transaction do not remain on the connection.
    const { rows } = await pool.query(`SELECT current_setting('transaction_read_only') AS read_only`);
    expect(rows).toEqual([{ read_only: 'off' }]);
  });

  it('that takes too long is left out, with a warning, and the run goes on', async () => {
    const { log, lines } = captureLog();
    const blocker = await pool.connect();
    await blocker.query('BEGIN; LOCK TABLE forms IN ACCESS EXCLUSIVE MODE');
    expect(await countForms({ pool, log, limit: 50 })).toBeUndefined();
    await blocker.query('ROLLBACK');
    blocker.release();
    // 57014: the statement timeout cancelled the statement. A lock timeout would be 55P03.
    expect(lines()).toMatchObject([{ level: 'warn', msg: 'forms not counted', err: { code: '57014' } }]);
  });
});
