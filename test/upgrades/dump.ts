// The dumps of the old version's stores: plain SQL of each database as pg_dump writes it, and the keys of Redis as its
// DUMP command returns them. `facts.json` contains data that tests need to use the dumps, such as a mailed code.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestRedis } from '../support/redis.ts';

export const databases = ['access', 'platform', 'forms', 'tokenHandler'] as const;

export interface Facts {
  /**
   * Time at which the dump was made. Tests move their clock back to this time, because the dump's codes and sessions
   * expire.
   */
  madeAt: string;
  /** Ids of forms, keyed by the names of the examples, such as `withCode`. */
  forms: Record<string, string>;
  /** The mailed code of `forms.withCode`, which has not been entered yet. */
  code: string;
  /** The body and the key with which `forms.withKey` was created. */
  idempotency: { key: string; body: object };
  /** Sessions of signed-in browsers: the values of the session cookie and of the CSRF cookie, and the handle. */
  sessions: Record<string, { cookie: string; csrf: string; handle: string }>;
}

export interface Dump {
  facts: Facts;
  sql: Record<(typeof databases)[number], string>;
  redis: RedisKey[];
}

interface RedisKey {
  key: string;
  /** Milliseconds until the key expires; -1 if it does not expire. */
  lifetime: number;
  /** Value of the key, in base64. */
  value: string;
}

const folderOf = (version: string) => join(import.meta.dirname, '../fixtures/stores', version);

export function readDump(version: string): Dump {
  const text = (name: string) => readFileSync(join(folderOf(version), name), 'utf8');
  const sql = databases.map((name) => [name, text(`${name}.sql`)]);
  return { facts: JSON.parse(text('facts.json')), sql: Object.fromEntries(sql), redis: JSON.parse(text('redis.json')) };
}

export function writeDump(version: string, { facts, sql, redis }: Dump): void {
  const write = (name: string, content: string) => writeFileSync(join(folderOf(version), name), content);
  const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;
  for (const name of databases) write(`${name}.sql`, sql[name]);
  write('facts.json', json(facts));
  write('redis.json', json(redis));
}

/** Returns the dump of a database. Calls pg_dump, which must not be older than the server. */
export async function dumpDatabase(url: string): Promise<string> {
  const { stdout } = await promisify(execFile)('pg_dump', ['--no-owner', '--inserts', '--rows-per-insert=1000', url], {
    maxBuffer: 100 * 1024 * 1024,
  });
  // Remove the psql commands that newer versions of pg_dump write as a protection against injection. They are not SQL.
  return stdout.replaceAll(/^\\(?:un)?restrict .*\n/gm, '');
}

/** Returns all keys of a Redis. The values are raw bytes, because decoding them as characters would corrupt them. */
export async function dumpRedis({ port }: TestRedis): Promise<RedisKey[]> {
  const { createClient, RESP_TYPES } = await import('@redis/client');
  const client = createClient({ socket: { host: '127.0.0.1', port }, RESP: 2 });
  await client.connect();
  try {
    const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    const found: RedisKey[] = [];
    for (const key of (await client.keys('*')).sort()) {
      const value = (await bytes.sendCommand(['DUMP', key])) as unknown as Buffer;
      found.push({ key, lifetime: await client.pTTL(key), value: value.toString('base64') });
    }
    return found;
  } finally {
    client.destroy();
  }
}

export async function restoreRedis({ port }: TestRedis, keys: RedisKey[]): Promise<void> {
  const { createClient } = await import('@redis/client');
  const client = createClient({ socket: { host: '127.0.0.1', port }, RESP: 2 });
  await client.connect();
  try {
    for (const { key, lifetime, value } of keys)
      await client.sendCommand(['RESTORE', key, String(Math.max(lifetime, 0)), Buffer.from(value, 'base64')]);
  } finally {
    client.destroy();
  }
}
