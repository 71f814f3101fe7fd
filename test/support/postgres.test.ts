// Tests the databases that `createTestDatabase` makes.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase } from './postgres.ts';

let migrations: string;

beforeAll(async () => {
  migrations = await mkdtemp(join(tmpdir(), 'formgate-migrations-'));
  await writeFile(join(migrations, '001.do.create.sql'), 'CREATE TABLE things (name text PRIMARY KEY);');
});
afterAll(() => rm(migrations, { recursive: true }));

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client.query(sql).then(
    async ({ rows }) => {
      await client.end();
      return rows;
    },
    async (error: Error) => {
      await client.end();
      throw error;
    },
  );
}

it('each test database is migrated and shares no row with another', async () => {
  const databases = await Promise.all([1, 2, 3, 4].map(() => createTestDatabase(migrations)));
  await query(databases[0]?.url ?? '', "INSERT INTO things VALUES ('a')");
  const counts = await Promise.all(databases.map(({ url }) => query(url, 'SELECT count(*)::int AS n FROM things')));
  expect(counts).toEqual([[{ n: 1 }], [{ n: 0 }], [{ n: 0 }], [{ n: 0 }]]);
  expect(await query(databases[1]?.url ?? '', 'SHOW lock_timeout')).toEqual([{ lock_timeout: '5s' }]);
  await Promise.all(databases.map(({ drop }) => drop()));
  await expect(query(databases[0]?.url ?? '', 'SELECT 1')).rejects.toThrow('does not exist');
});
