// Tests which periods apply to the forms of a definition: the definition's own periods, the defaults that the last run
// recorded, or the initial defaults.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import type { Lookup } from '../../platform/configuration.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { createDefinitionSource } from '../definitions/source.ts';
import { createFindPolicy } from './dates.ts';
import type { Retention } from './expiry.ts';
import { formMigrations } from './migrations.ts';
import { writeRun } from './run-store.ts';

const day = 86_400_000;
const initial: Retention = { warnBefore: 3 * day, lockAfter: 15 * day, deleteAfter: 15 * day };
const changed: Retention = { warnBefore: day, lockAfter: 7 * day, deleteAfter: 8 * day };
const key = { tenantId: 'urn:tenant', definitionId: 'permit' };

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase(formMigrations.directory);
  ({ pool } = database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await pool.query('DELETE FROM reconciler_runs');
});

/** Records a run of the reconciler with these default periods. */
async function recordRun(generation: number, retention: Retention | null): Promise<void> {
  const moment = new Date(0);
  await writeRun(pool, {
    ...{ generation: String(generation), started: moment, finished: moment, outcome: 'succeeded', counts: {} },
    ...{ expirySucceeded: true, clientsSucceeded: null, conditions: null, oldestOverdue: null },
    ...{ overdueDeletions: null, formsByStatus: null, retention },
  });
}

function createWorld(configured: unknown = { permit: {} }) {
  let moment = Date.parse('2026-03-20T10:00:00.000Z');
  let isBroken = false;
  const reads: (Lookup | undefined)[] = [];
  const db = {
    query(...call: Parameters<pg.Pool['query']>) {
      return isBroken ? Promise.reject(new Error('the connection broke')) : pool.query(...call);
    },
  } as unknown as Queryable;
  const definitions = createDefinitionSource({
    async activeOrLatest(namespace, _name, _owner, read) {
      reads.push(read);
      if (configured instanceof Error) throw configured;
      return namespace === 'platform' ? { revision: 1, configuration: configured } : undefined;
    },
  });
  return {
    reads,
    find: createFindPolicy({ db, definitions, clock: () => new Date(moment) }),
    advance: (milliseconds: number) => {
      moment += milliseconds;
    },
    breakDatabase: (broken: boolean) => {
      isBroken = broken;
    },
  };
}

describe('the periods of a definition without its own', () => {
  it('are 3, 15 and 15 days until the first run of the reconciler', async () => {
    const { find, reads } = createWorld();
    expect(await find(key)).toEqual({ ...key, retention: initial });
    expect(reads).toEqual([{ permission: false }]);
  });

  it('are those that the last run recorded', async () => {
    await recordRun(1, initial);
    await recordRun(2, changed);
    await recordRun(3, null);
    expect(await createWorld().find(key)).toEqual({ ...key, retention: changed });
  });

  it('also apply to a definition that was removed', async () => {
    await recordRun(1, changed);
    expect(await createWorld({}).find(key)).toEqual({ ...key, retention: changed });
  });

  it('change at most a minute after the setting', async () => {
    const { find, advance } = createWorld();
    await find(key);
    await recordRun(1, changed);
    advance(59_999);
    expect(await find(key)).toMatchObject({ retention: initial });
    advance(1);
    expect(await find(key)).toMatchObject({ retention: changed });
  });

  it('are read again if the clock was set back', async () => {
    const { find, advance } = createWorld();
    await find(key);
    await recordRun(1, changed);
    advance(-59_999);
    expect(await find(key)).toMatchObject({ retention: initial });
    advance(-1);
    expect(await find(key)).toMatchObject({ retention: changed });
  });

  it('are read again at once after the database failed', async () => {
    await recordRun(1, changed);
    const { find, breakDatabase } = createWorld();
    breakDatabase(true);
    await expect(find(key)).rejects.toThrow('the connection broke');
    breakDatabase(false);
    expect(await find(key)).toMatchObject({ retention: changed });
  });
});

describe('a definition', () => {
  it('overrides single periods', async () => {
    const { find } = createWorld({ permit: { retention: { lockAfter: 'P30D' } } });
    expect(await find(key)).toEqual({ ...key, retention: { ...initial, lockAfter: 30 * day } });
  });

  it.each([
    ['that is invalid', { permit: { retention: { lockAfter: 'P1Y' } } }],
    ['that cannot be read', new PlatformError('configuration', 'unreachable')],
  ])('%s lets its forms not expire', async (_what, configured) => {
    expect(await createWorld(configured).find(key)).toBeUndefined();
  });
});
