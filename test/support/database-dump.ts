// Dumps every table of a database, for tests that check that a secret is not stored.
import { createHash } from 'node:crypto';
import pg from 'pg';

/** Maps `schema.table.column` to the texts in that column. */
export type DatabaseDump = Map<string, string[]>;

/** Reads all tables of all schemas, including those of libraries, but not those of Postgres itself. */
export async function dumpDatabase(pool: Pick<pg.Pool, 'query'>): Promise<DatabaseDump> {
  const dump: DatabaseDump = new Map();
  const { rows: tables } = await pool.query<{ schema: string; name: string }>(
    `SELECT table_schema AS schema, table_name AS name FROM information_schema.tables
    WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  for (const { schema, name } of tables) {
    const table = `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
    const { rows } = await pool.query<{ row: Record<string, unknown> }>(`SELECT to_jsonb(t) AS row FROM ${table} t`);
    for (const { row } of rows)
      for (const [column, value] of Object.entries(row)) {
        const place = `${schema}.${name}.${column}`;
        dump.set(place, [...(dump.get(place) ?? []), JSON.stringify(value)]);
      }
  }
  return dump;
}

/** Returns the columns that contain a secret, in clear or in a form that can be decoded or guessed. */
export function placesOf(dump: DatabaseDump, secret: string): string[] {
  return [...dump].filter(([, texts]) => texts.some((text) => tells(text, secret))).map(([place]) => place);
}

/**
 * True if a text contains a secret: in clear, percent-encoded, in base64, in hexadecimal, or as a hash without a key.
 */
export function tells(text: string, secret: string): boolean {
  const hashes = ['md5', 'sha1', 'sha256'].flatMap((algorithm) => {
    const hash = createHash(algorithm).update(secret).digest();
    return [hash.toString('hex'), hash.toString('base64')];
  });
  const bytes = Buffer.from(secret);
  // The first and the last characters in base64 depend on the bytes around the secret.
  const inBase64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .slice(offset === 0 ? 0 : 4, -4),
  );
  const forms = [secret, encodeURIComponent(secret), bytes.toString('hex'), ...hashes];
  const lower = text.toLowerCase();
  return (
    forms.some((form) => lower.includes(form.toLowerCase())) ||
    inBase64.some((form) => form.length >= 6 && text.includes(form))
  );
}
