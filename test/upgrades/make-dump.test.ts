// Makes the dump of the old version's stores by running the old version's code. With FORMGATE_WRITE_DUMPS=1, writes the
// dump to test/fixtures/stores, where dump.test.ts (part of `npm test`) reads it.
import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { startSystemPostgres } from '../support/system-postgres.ts';
import { type Dump, databases, dumpDatabase, dumpRedis, writeDump } from './dump.ts';
import { fillOldStores } from './fill.ts';
import { checkOutOldVersion, oldVersion } from './old-version.ts';
import { startWorld } from './world.ts';

it('the old version fills its stores', async () => {
  const postgres = await startSystemPostgres();
  onTestFinished(() => postgres.close());
  const createDatabase = async () => ({
    url: await postgres.createDatabase(randomUUID()),
    drop: async () => undefined,
  });
  const world = await startWorld({ oldFolder: await checkOutOldVersion(), createDatabase });
  let isClosed = false;
  const close = async () => {
    if (!isClosed) await world.close();
    isClosed = true;
  };
  onTestFinished(close);
  const facts = await fillOldStores(world);
  const redis = await dumpRedis(world.redis);
  const texts = await Promise.all(databases.map((name) => dumpDatabase(world.databaseUrls[name])));
  const sql = Object.fromEntries(databases.map((name, index) => [name, texts[index]])) as Dump['sql'];
  await close();
  for (const table of [
    'forms',
    'outbox',
    'tombstones',
    'used_codes',
    'code_attempts',
    'code_sends',
    'idempotency_keys',
    'quarantine',
    'reconciler_runs',
    'created_notices',
  ])
    expect(sql.forms, table).toContain(`INSERT INTO public.${table} `);
  for (const status of ['Draft', 'Locked', 'Submitted', 'Archived']) expect(sql.forms).toContain(`'${status}'`);
  expect(redis.filter(({ key }) => key.endsWith(':tokens'))).toHaveLength(4);
  if (process.env.FORMGATE_WRITE_DUMPS) writeDump(oldVersion, { facts, sql, redis });
}, 300_000);
