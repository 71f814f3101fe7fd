// Compares the migrations that a database has applied with the files of this release. Changes nothing.
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';

export interface MigrationFile {
  version: number;
  name: string;
  md5: string;
  /** Hashes of earlier contents of this file. These contents had the same result and were never released. */
  superseded: readonly string[];
}

/** True if `md5` is the hash of the file, or of one of its superseded contents. */
export const hasMd5 = (file: MigrationFile, md5: string | undefined) =>
  md5 !== undefined && (file.md5 === md5 || file.superseded.includes(md5));

/**
 * How the schema of a database relates to this release:
 * - `none`: the database has no schema of Formgate yet
 * - `pending`: `count` files are still to be applied
 * - `newer`: the database has migrations up to `version`, which this release does not know
 */
export type SchemaState =
  | { kind: 'none' }
  | { kind: 'current' }
  | { kind: 'pending'; count: number }
  | { kind: 'newer'; version: number };

const supersededFile = 'superseded.json';

/**
 * Reads the `NNN.do.<name>.sql` files of a directory, and the hashes of their earlier contents from `superseded.json`,
 * if that file exists.
 */
export async function readMigrationFiles(directory: string): Promise<MigrationFile[]> {
  const files = await readdir(directory);
  const read = (file: string) => readFile(join(directory, file), 'utf8');
  const superseded: Record<string, string[]> = files.includes(supersededFile)
    ? JSON.parse(await read(supersededFile))
    : {};
  return Promise.all(
    files
      .filter((file) => file.endsWith('.sql'))
      .map(async (file) => {
        const [number, , name = ''] = file.split('.');
        const version = Number(number);
        return { version, name, md5: hash('md5', await read(file)), superseded: superseded[version] ?? [] };
      }),
  );
}

/**
 * Returns the state of the schema. Throws if the database belongs to another service, or if a file was changed after it
 * ran.
 */
export async function inspectSchema(client: pg.Client, directory: string): Promise<SchemaState> {
  const files = await readMigrationFiles(directory);
  const applied = await checkApplied(client, files);
  if (applied.length === 0) return { kind: 'none' };
  const newest = Math.max(...applied);
  if (newest > Math.max(...files.map(({ version }) => version))) return { kind: 'newer', version: newest };
  const count = files.filter(({ version }) => !applied.includes(version)).length;
  return count === 0 ? { kind: 'current' } : { kind: 'pending', count };
}

/**
 * Returns the versions that were applied. Throws if an applied migration differs from the file with its number.
 * Postgrator makes this comparison only if the database is not newer, and cannot tell a changed file from the database
 * of another service.
 */
export async function checkApplied(client: pg.Client, files: readonly MigrationFile[]): Promise<number[]> {
  const { rows: found } = await client.query("SELECT to_regclass('schema_migrations') IS NOT NULL AS exists");
  if (!found[0]?.exists) return [];
  const sql = 'SELECT version::int, name, md5 FROM schema_migrations WHERE version > 0 ORDER BY version';
  const { rows } = await client.query<{ version: number; name: string; md5: string }>(sql);
  for (const { version, name, md5 } of rows) {
    const file = files.find((one) => one.version === version);
    if (!file || hasMd5(file, md5)) continue;
    throw new Error(
      name === file.name
        ? `its migration ${version} (${name}) is not the one of this version of the service: the file was changed`
        : `it belongs to another service, whose migration ${version} is ${name}, not ${file.name}; check DATABASE_URL`,
    );
  }
  return rows.map(({ version }) => version);
}
