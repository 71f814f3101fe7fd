// Finds the user's subscriber, or creates one, in the same way as the reference implementation. The user id is not
// unique, so two overlapping requests create two subscribers.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { createSubscriberStore, type FindOrCreate } from '../notifications/subscribers-store.ts';

/** Creates a separate table for user ids, because user ids in the table of subscribers are unique. */
export async function prepareSubscribers(database: Queryable): Promise<void> {
  await database.query(`
    SELECT pg_advisory_xact_lock(4711028);
    CREATE TABLE IF NOT EXISTS reference_users (
      subscriber_id text PRIMARY KEY REFERENCES subscribers ON DELETE CASCADE,
      tenant text NOT NULL,
      user_id text NOT NULL
    );
    CREATE INDEX IF NOT EXISTS reference_users_by_user ON reference_users (tenant, user_id);`);
}

/** `delay` is the time between the search and the creation, in milliseconds. */
export function createReferenceSubscribers(database: Queryable, delay: number): FindOrCreate {
  return async (tenant, { userId, ...subscriber }, now) => {
    if (userId !== undefined) {
      const sql =
        'SELECT subscriber_id AS id FROM reference_users WHERE tenant = $1 AND user_id = $2 ORDER BY 1 LIMIT 1';
      const { rows } = await database.query<{ id: string }>(sql, [tenant, userId]);
      if (rows[0]) return rows[0].id;
      await sleep(delay);
    }
    const id = randomBytes(12).toString('hex');
    await createSubscriberStore(database).create(id, tenant, { ...subscriber, userId: undefined }, now);
    if (userId !== undefined)
      await database.query('INSERT INTO reference_users VALUES ($1, $2, $3)', [id, tenant, userId]);
    return id;
  };
}
