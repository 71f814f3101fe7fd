// Everything that a database holds, whatever its tables are: for tests that look for what must not be there.
import { createHash } from 'node:crypto';
import pg from 'pg';

/** `schema.table.column` → the texts in it. */
export type DatabaseDump = Map<string, string[]>;

/** All tables of all schemas but Postgres' own, those of libraries included. */
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

/** Places where a secret is to be found, as it is or in a form that anybody can turn back or try out. */
export function placesOf(dump: DatabaseDump, secret: string): string[] {
  return [...dump].filter(([, texts]) => texts.some((text) => tells(text, secret))).map(([place]) => place);
}

/** Whether a text tells a secret: as it is, percent-encoded, in base64, in hexadecimal, or as a hash without a key. */
export function tells(text: string, secret: string): boolean {
  const hashes = ['md5', 'sha1', 'sha256'].flatMap((algorithm) => {
    const hash = createHash(algorithm).update(secret).digest();
    return [hash.toString('hex'), hash.toString('base64')];
  });
  const bytes = Buffer.from(secret);
  // The first and the last characters of base64 depend on what stands beside the secret.
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
