// A test database with the tables of the form service, and a pool of connections to it.
import pg from 'pg';
import { formMigrations } from '../../src/forms/expiry/migrations.ts';
import { createTestDatabase } from './postgres.ts';

export interface FormDatabase {
  pool: pg.Pool;
  /** Ends the pool and drops the database. */
  close(): Promise<void>;
}

/** Creates the database. `connections` is the maximum number of connections of the pool. */
export async function openFormDatabase(connections = 2): Promise<FormDatabase> {
  const database = await createTestDatabase(formMigrations.directory);
  const pool = new pg.Pool({ connectionString: database.url, max: connections });
  return {
    pool,
    async close() {
      await pool.end();
      await database.drop();
    },
  };
}
