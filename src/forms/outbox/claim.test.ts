// What a claim tells Postgres of how to run it.
import pg from 'pg';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { migrationsDirectory } from '../start.ts';
import { claimSql } from './statements.ts';

it('a claim is not compiled, which would take a thousand times as long as the claim on Postgres up to 17', async () => {
  const database = await createTestDatabase(migrationsDirectory);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const now = new Date();
    const claim = claimSql({ lane: 'events', now, until: now, limit: 64 });
    const settings = claim.slice(0, claim.indexOf('WITH due'));
    await client.query(`BEGIN; ${settings}`);
    expect((await client.query('SHOW jit')).rows).toEqual([{ jit: 'off' }]);
    await client.query('ROLLBACK');
    // In the statement's own transaction only: the session is as it was.
    const before = (await client.query('SHOW jit')).rows;
    await client.query(claim);
    expect((await client.query('SHOW jit')).rows).toEqual(before);
  } finally {
    await client.end();
    await database.drop();
  }
});
