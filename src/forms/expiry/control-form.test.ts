// Tests the control form: each stage processes it, no trace of it remains, and the attempt fails if the database
// refuses every form.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import { tryControlForm } from './control-form.ts';
import { formMigrations } from './migrations.ts';
import { stages } from './store.ts';

const now = new Date('2026-03-20T10:00:00Z');

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
});
afterAll(() => database.drop());

const rowsOf = async (table: string) => (await database.pool.query(`SELECT FROM ${table}`)).rowCount;

describe.each(stages)('the control form of the stage %s', (stage) => {
  it('is processed, and leaves no trace', async () => {
    expect(await withTransaction(database.pool, (client) => tryControlForm(client, stage, now))).toBe(1);
    for (const table of ['forms', 'outbox', 'tombstones']) expect(await rowsOf(table), table).toBe(0);
  });

  it('does not undo what the caller has written in the same transaction', async () => {
    await withTransaction(database.pool, async (client) => {
      await client.query("INSERT INTO code_sends (address_hash, sent) VALUES ('a', '2020-01-01')");
      await tryControlForm(client, stage, now);
    });
    expect(await rowsOf('code_sends')).toBe(1);
    await database.pool.query('DELETE FROM code_sends');
  });

  // Each stage writes a notice. The lock of `outbox` therefore shows that the form is processed, and not only counted.
  it.each(['forms', 'outbox'])(
    'fails with the error of a database that is too slow for every form: %s',
    async (table) => {
      const blocker = await database.pool.connect();
      try {
        await blocker.query('BEGIN');
        await blocker.query(`LOCK TABLE ${table} IN EXCLUSIVE MODE`);
        const attempt = withTransaction(database.pool, async (client) => {
          await client.query("SET LOCAL statement_timeout = '50ms'");
          return tryControlForm(client, stage, now);
        });
        await expect(attempt).rejects.toMatchObject({ code: '57014' });
      } finally {
        await blocker.query('ROLLBACK');
        blocker.release();
      }
    },
  );
});
