// Tests what reads of large configuration cost the main thread, and how much of it a tenant and strangers may read.
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createPool } from '../../service/postgres/postgres.ts';
import { tenantKey } from '../tenant-key.ts';
import { createConfigurationStore } from './store.ts';

let platform: TestPlatform;
let database: pg.Pool;
let admin: string;
let otherAdmin: string;
let core: string;
// The time stands still, so that the budgets are not refilled.
const now = new Date();

/** About 8 MiB, with 199,000 values. */
const large = JSON.stringify({ values: Array.from({ length: 199_000 }, (_, nth) => `${nth} ${'x'.repeat(34)}`) });

beforeAll(async () => {
  platform = await startTestPlatform({ clock: () => now });
  const roles = { 'configuration-service': ['configuration-admin'] };
  admin = await roleToken(platform.access, roles, { realm: 'demo' });
  otherAdmin = await roleToken(platform.access, roles, { realm: 'other' });
  core = await roleToken(platform.access, roles, { realm: 'core' });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  await database.query(
    `WITH home AS (
       INSERT INTO configurations VALUES ($1, 'open', 'large', 0), ($1, 'platform', 'configuration-service', NULL)
       RETURNING *)
     INSERT INTO configuration_revisions (tenant, namespace, name, revision, created, last_updated, configuration)
     SELECT tenant, namespace, name, nth, now(), now(),
       CASE WHEN namespace = 'open' THEN $2::json ELSE '{"open:large": {"configurationSchema": {}, "anonymousRead": true}}' END
     FROM home, generate_series(0, 1) nth`,
    [tenantKey(platform.tenant.id), large],
  );
});
afterAll(async () => {
  await database.end();
  await platform.close();
});

const url = (path: string) => `${platform.url}/configuration/v2/configuration/open/large${path}`;

/** Returns the status and the number of bytes, without parsing the body. */
async function read(path: string, token?: string): Promise<[number, number]> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(url(path), { headers });
  return [response.status, (await response.arrayBuffer()).byteLength];
}

/** Returns the microseconds of processor time that `work` took on the main thread. */
async function busyTime(work: () => Promise<void>): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return user + system;
}

it('a large document that is only shown costs the main thread less than one that is parsed and written', async () => {
  const pool = createPool({ url: platform.databaseUrl, size: 1, log: captureLog().log, metrics: createMetrics() });
  const store = createConfigurationStore(pool);
  const key = { scope: tenantKey(platform.tenant.id), namespace: 'open', name: 'large' };
  // The smallest of several times is the one with the least collection of garbage and compilation.
  const least = { parsed: Infinity, texts: Infinity };
  for (let nth = 0; nth < 6; nth += 1) {
    const parsed = await busyTime(async () => void JSON.stringify(await store.read(key)));
    const texts = await busyTime(async () => void (await store.readTexts(key)));
    least.parsed = Math.min(least.parsed, parsed);
    least.texts = Math.min(least.texts, texts);
  }
  await pool.end();
  expect(least.texts).toBeLessThan(0.9 * least.parsed);
});

it('a tenant that reads 128 MiB at once gets 503 busy, which concerns neither strangers, core accounts nor other tenants', async () => {
  expect(await call(url(''), { token: admin })).toMatchObject({
    ...{ status: 200, body: { latest: { revision: 1 }, active: { revision: 0 } } },
  });
  let reads = 1;
  for (; reads < 20; reads += 1) if ((await read('', admin))[0] === 503) break;
  expect(reads).toBeGreaterThan(6);
  expect(reads).toBeLessThan(10);
  const refused = await call(url('/latest'), { token: admin });
  expect(refused).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:busy' } });
  expect(refused.headers.get('retry-after')).toBe('5');
  expect((await read('', otherAdmin))[0]).toBe(200);
  expect((await read(`?tenantId=${encodeURIComponent(platform.tenant.id)}`, core))[0]).toBe(200);
  expect(await read(`/latest?tenant=${platform.tenant.id}`)).toEqual([200, large.length]);
});

it('a client address may read 300 times a minute without a token', async () => {
  const statuses: number[] = [];
  const ask = async () => {
    while (statuses.length < 310) statuses.push((await read('/latest'))[0]);
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  expect(statuses.filter((status) => status !== 429 && status !== 401)).toEqual([]);
  // The test above has used one of the 300.
  expect([299, 300]).toContain(statuses.filter((status) => status === 401).length);
});
