import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { ConfigError } from '../service/operations/config.ts';
import { applySeed } from './seed.ts';
import { readSeed, type Seed } from './seed-file.ts';
import { migrationsDirectory } from './start.ts';

let database: TestDatabase;
let pool: pg.Pool;
let directory: string;

const seed: Seed = {
  tenants: [{ id: 'a'.repeat(24), name: 'Blue River', realm: '0b7e2c51', adminEmail: 'pat@example.org' }],
  directory: [
    { namespace: 'platform', service: 'event-service', url: 'https://events.example.org/' },
    { namespace: 'platform', service: 'event-service:v1', url: 'https://events.example.org/event/v1' },
  ],
};

beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  directory = await mkdtemp(join(tmpdir(), 'seed-'));
});

afterAll(async () => {
  await database.drop();
  await rm(directory, { recursive: true });
});

async function stored(): Promise<unknown[][]> {
  const [tenants, entries] = [
    await pool.query('SELECT * FROM tenants'),
    await pool.query('SELECT * FROM directory_entries ORDER BY service'),
  ];
  return [tenants.rows, entries.rows];
}

function failureOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

describe('a seed', () => {
  it('changes nothing when it is applied again, and updates what has changed in it', async () => {
    await applySeed(pool, seed);
    const first = await stored();
    expect(first[0]).toMatchObject([{ name: 'Blue River', admin_email: 'pat@example.org' }]);
    expect(first[1]).toMatchObject([{ url: 'https://events.example.org' }, { service: 'event-service:v1' }]);
    await applySeed(pool, seed);
    expect(await stored()).toEqual(first);
    await applySeed(pool, { tenants: [{ id: 'a'.repeat(24), name: 'Red River', realm: '0b7e2c51' }] });
    expect((await stored())[0]).toMatchObject([{ name: 'Red River', admin_email: null }]);
  });

  it('can exchange the names and realms of its tenants', async () => {
    const names = async () =>
      (await pool.query('SELECT name, realm FROM tenants WHERE id <> $1 ORDER BY id', ['a'.repeat(24)])).rows;
    const east = { id: 'e'.repeat(24), name: 'East', realm: 'east' };
    const west = { id: 'f'.repeat(24), name: 'West', realm: 'west' };
    await applySeed(pool, { tenants: [east, west] });
    const exchanged = [
      { ...east, name: 'west', realm: 'west' },
      { ...west, name: 'North', realm: 'east' },
    ];
    await applySeed(pool, { tenants: exchanged });
    expect(await names()).toEqual(exchanged.map(({ name, realm }) => ({ name, realm })));
    await pool.query('DELETE FROM tenants WHERE id <> $1', ['a'.repeat(24)]);
  });

  it.each([
    ['name', { name: 'BLUE river', realm: 'other' }],
    ['realm', { name: 'Other', realm: '0b7e2c51' }],
  ])('with the %s of a tenant that it does not list is a configuration error', async (_what, taken) => {
    await applySeed(pool, seed);
    const failing = applySeed(pool, { tenants: [{ id: 'd'.repeat(24), ...taken }] });
    await expect(failing).rejects.toThrow(ConfigError);
    await expect(failing).rejects.toThrow(`SEED_FILE: the name or realm of tenant ${taken.name} belongs to`);
  });

  it('is applied whole or not at all', async () => {
    const clash = [
      { id: 'b'.repeat(24), name: 'New', realm: 'new' },
      { id: 'c'.repeat(24), name: 'Clash', realm: '0b7e2c51' },
    ];
    await expect(applySeed(pool, { tenants: clash })).rejects.toThrow();
    expect((await stored())[0]).toHaveLength(1);
  });

  it('that cannot be read, is not JSON or is invalid is a configuration error that names each fault', async () => {
    expect(() => readSeed(join(directory, 'none.json'))).toThrow(ConfigError);
    const file = join(directory, 'seed.json');
    await writeFile(file, '{');
    expect(() => readSeed(file)).toThrow('cannot be read as JSON');
    await writeFile(
      file,
      JSON.stringify({
        tenants: [{ id: 'x', name: 'a;b', realm: 'r' }],
        directory: [{ namespace: 'p', service: 's', url: 'ftp://x' }],
      }),
    );
    const error = failureOf(() => readSeed(file));
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).problems.map(({ problem }) => problem.split(':')[0])).toEqual([
      'tenants.0.id',
      'tenants.0.name',
      'directory.0.url',
    ]);
    await writeFile(file, JSON.stringify(seed));
    expect(readSeed(file)).toEqual(seed);
  });

  it('that names a tenant, its name or its realm twice is a configuration error that names the second', async () => {
    const tenants = [
      { id: 'a'.repeat(24), name: 'Blue River', realm: 'blue' },
      { id: 'a'.repeat(24), name: 'blue river', realm: 'other' },
      { id: 'b'.repeat(24), name: 'Red River', realm: 'blue' },
    ];
    const file = join(directory, 'duplicates.json');
    await writeFile(file, JSON.stringify({ tenants }));
    const error = failureOf(() => readSeed(file));
    expect((error as ConfigError).problems.map(({ problem }) => problem)).toEqual([
      'tenants.1.id: duplicates the id of tenants.0',
      'tenants.1.name: duplicates the name of tenants.0',
      'tenants.2.realm: duplicates the realm of tenants.0',
    ]);
  });
});
