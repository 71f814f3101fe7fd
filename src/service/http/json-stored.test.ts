// Fuzzes bodies against a real Postgres. Text that the reader accepts is stored byte for byte, and reads back as the
// validated value. Texts that the reader parsed earlier do not affect the result. FUZZED_BODIES sets the number of
// bodies; TEST_SEED repeats a run.
import { Readable } from 'node:stream';
import type { Request } from 'express';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createBodyFuzzer } from '../../../test/support/fuzzed-bodies.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { seedOfRun, sizeOf } from '../../../test/support/sizes.ts';
import { parseJson } from '../json-parser.ts';
import { createJsonBodyReader, type JsonBody } from './json-body.ts';
import { Problem } from './problem.ts';

const bodies = sizeOf('FUZZED_BODIES');
const seed = seedOfRun(import.meta.filename);
const batchSize = 2_000;

const readBody = createJsonBodyReader(65_536);

async function read(bytes: Buffer): Promise<JsonBody | Problem> {
  const request = Object.assign(Readable.from([bytes]), {
    headers: { 'content-type': 'application/json', 'content-length': String(bytes.length) },
  });
  return readBody(request as unknown as Request).catch((error: unknown) => {
    if (error instanceof Problem) return error;
    throw error;
  });
}

/** Returns the same text for values that differ only in the order of names or in the sign of zero. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}

interface Accepted {
  sent: string | undefined;
  text: string;
  data: unknown;
}

describe('JSON bodies', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createTestDatabase();
    ({ pool } = database);
    await pool.query('CREATE TABLE stored (place bigserial, data json)');
  });
  afterAll(() => database.drop());

  async function storeAndCompare(accepted: Accepted[]): Promise<void> {
    const { rows } = await pool.query<{ text: string; names: string[] | null; canonical: string }>(
      `WITH kept AS (INSERT INTO stored (data) SELECT text::json FROM unnest($1::text[]) AS text RETURNING place, data)
      SELECT data::text AS text, data::jsonb::text AS canonical,
        (SELECT array_agg(key) FROM json_each_text(data)) AS names
      FROM kept ORDER BY place`,
      [accepted.map(({ text }) => text)],
    );
    rows.forEach((row, index) => {
      const { sent, text, data } = accepted[index] as Accepted;
      expect(row.text).toBe(sent ?? text);
      expect(new Set(row.names ?? [])).toEqual(new Set(Object.keys(data as object)));
      expect(canonical(parseJson(row.canonical))).toBe(canonical(data));
    });
    expect(rows).toHaveLength(accepted.length);
  }

  /** Expects Postgres to reject `texts` too. */
  async function compareRefused(texts: string[], type: 'json' | 'jsonb'): Promise<void> {
    const { rows } = await pool.query<{ text: string }>(
      `SELECT text FROM unnest($1::text[]) AS text WHERE pg_input_is_valid(text, '${type}')`,
      [texts],
    );
    expect(rows).toEqual([]);
  }

  it('are stored byte for byte as they were validated, or rejected, whatever was parsed before', {
    timeout: 120_000 + bodies,
  }, async () => {
    const next = createBodyFuzzer(seed);
    let acceptedInAll = 0;
    const label = `TEST_SEED=${seed}`;
    for (let done = 0; done < bodies; done += batchSize) {
      const accepted: Accepted[] = [];
      const refused = { json: [] as string[], jsonb: [] as string[] };
      for (let index = 0; index < batchSize; index += 1) {
        const { bytes, data: sent } = next();
        const outcome = await read(bytes);
        if (!(outcome instanceof Problem)) {
          const { data } = (outcome.value ?? {}) as { data?: unknown };
          const text = outcome.textOf('data');
          if (typeof data === 'object' && data !== null && !Array.isArray(data) && text !== undefined)
            accepted.push({ sent, text, data });
        } else if (!bytes.includes(0)) {
          const details = outcome.errors?.map(({ detail }) => detail) ?? [];
          if (details.some((detail) => /NUL|surrogate/.test(detail))) refused.jsonb.push(bytes.toString());
          else if (outcome.slug === 'malformed-json' && !details.includes('is not UTF-8'))
            refused.json.push(bytes.toString());
        }
      }
      acceptedInAll += accepted.length;
      await storeAndCompare(accepted).catch((error: unknown) => {
        throw new Error(label, { cause: error });
      });
      await compareRefused(refused.json, 'json');
      await compareRefused(refused.jsonb, 'jsonb');
    }
    // Both outcomes must be common: between a quarter and three quarters of the bodies are accepted.
    expect([acceptedInAll > bodies / 4, acceptedInAll < (bodies * 3) / 4], label).toEqual([true, true]);
  });
});
