// Stores the entries of the directory in Postgres.
import type { Queryable } from '../../service/postgres/postgres.ts';
import { withoutTrailingSlashes } from '../../service/url-text.ts';
import type { Entry } from './entry.ts';

export type DirectoryStore = ReturnType<typeof createDirectoryStore>;

export function createDirectoryStore(database: Queryable) {
  return {
    async list(namespace: string): Promise<Entry[]> {
      const { rows } = await database.query<Entry>(
        'SELECT namespace, service, url FROM directory_entries WHERE namespace = $1 ORDER BY service',
        [namespace],
      );
      return rows;
    },

    async find(namespace: string, service: string): Promise<Entry | undefined> {
      const { rows } = await database.query<Entry>(
        'SELECT namespace, service, url FROM directory_entries WHERE namespace = $1 AND service = $2',
        [namespace, service],
      );
      return rows[0];
    },

    async save({ namespace, service, url }: Entry): Promise<void> {
      await database.query(
        `INSERT INTO directory_entries (namespace, service, url) VALUES ($1, $2, $3)
         ON CONFLICT (namespace, service) DO UPDATE SET url = $3`,
        // Clients append a path that begins with a slash.
        [namespace, service, withoutTrailingSlashes(url)],
      );
    },
  };
}
