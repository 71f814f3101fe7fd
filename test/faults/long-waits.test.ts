// Tests the longest waits for a lock in real time, with the pools of the services. Postgres sends nothing during such a
// wait, and a pool closes a connection that is silent for too long (src/service/postgres/silent-connections.ts).
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPools as openFormPools, type Pools } from '../../src/forms/pools.ts';
import { createRegisterLock } from '../../src/forms/registers/register-lock.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { databaseProblem, withTransaction } from '../../src/service/postgres/postgres.ts';
import { lockClient } from '../../src/token-handler/clients/registration-locks.ts';
import { openPools } from '../../src/token-handler/pools.ts';
import { captureLog } from '../support/captured-log.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
let forms: Pools;
let tokenHandler: ReturnType<typeof openPools>;

beforeAll(async () => {
  database = await createTestDatabase();
  const config = { DATABASE_URL: database.url, DATABASE_POOL_SIZE: 2 };
  const { log } = captureLog();
  forms = openFormPools({ config, log, metrics: createMetrics() });
  tokenHandler = openPools({ config, log, metrics: createMetrics() });
});

afterAll(async () => {
  const pools: pg.Pool[] = [...Object.values(forms), ...Object.values(tokenHandler)];
  await Promise.all(pools.map((pool) => pool.end()));
  await database.drop();
});

/** Calls `take` twice. The second call waits for a lock that the first one holds. Returns the second call's error. */
async function waitBehind(take: (work: () => Promise<void>) => Promise<void>): Promise<unknown> {
  const { promise: held, resolve: isHeld } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const holder = take(() => {
    isHeld();
    return ended;
  });
  await held;
  const failure = await take(async () => undefined).catch((error: unknown) => error);
  end();
  await holder;
  return failure;
}

it.concurrent('a change of a register that waits 30 s for another replica is refused as busy, not as a failure of Postgres', async () => {
  // Each replica has its own queue, so the second change waits in Postgres.
  const replica = () => createRegisterLock({ pool: forms.registers, metrics: createMetrics() });
  const failure = await waitBehind((work) => replica()('tenant', 'cities', work));
  expect(failure).toMatchObject({ slug: 'busy', detail: 'The register is being changed by other requests.' });
});

it.concurrent('a change of a client that waits 25 s for another replica is refused as busy, not as a failure of Postgres', async () => {
  const key = { tenantId: 'tenant', clientId: 'client' };
  const failure = await waitBehind((work) =>
    withTransaction(tokenHandler.changePool, async (client) => {
      await lockClient(client, key);
      await work();
    }),
  );
  expect(databaseProblem(failure)).toMatchObject({ slug: 'busy' });
});
