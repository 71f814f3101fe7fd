// Tests that a tenant cannot take all connections to the database: neither by lists that read many large values, nor by
// requests that wait for a lock.
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';

let platform: TestPlatform;
let database: pg.Pool;
let admin: string;
let otherAdmin: string;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { DATABASE_POOL_SIZE: '4' } });
  const roles = { 'configuration-service': ['configuration-admin'] };
  admin = await roleToken(platform.access, roles, { realm: 'demo' });
  otherAdmin = await roleToken(platform.access, { ...roles, 'tenant-service': [] }, { realm: 'other' });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
});
afterAll(async () => {
  await database.end();
  await platform.close();
});

const get = (path: string, token = admin) => call(`${platform.url}/configuration/v2/configuration/${path}`, { token });
const key = () => platform.tenant.id.split('/').at(-1);
const search = (fields: object) => `criteria=${encodeURIComponent(JSON.stringify(fields))}`;

/** Stores revisions, each a day older than the next one. Their values have `mib` MiB. */
async function store(name: string, count: number, mib: number): Promise<void> {
  await database.query(
    `WITH home AS (INSERT INTO configurations VALUES ($1, 'large', $2) RETURNING *)
     INSERT INTO configuration_revisions (tenant, namespace, name, revision, created, last_updated, configuration)
     SELECT tenant, namespace, name, nth, now() - ($3 - nth) * interval '1 day', now(),
       json_build_object('a', nth, 'text', repeat('x', $4 * 1048576))
     FROM home, generate_series(0, $3::int - 1) nth`,
    [key(), name, count, mib],
  );
}

/** Locks the table of revisions, so that lists and changes wait. Returns a function that unlocks it. */
async function lockRevisions() {
  const client = await database.connect();
  await client.query('BEGIN; LOCK TABLE configuration_revisions IN ACCESS EXCLUSIVE MODE');
  return async () => {
    await client.query('COMMIT');
    client.release();
  };
}

/** Number of statements that wait for a lock. */
async function lockWaits() {
  const sql = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  return (await database.query(sql)).rowCount;
}

it('criteria that compare fields of more than 64 MiB of values get 400; with a shorter period, they find them', async () => {
  await store('history', 9, 8);
  for (const path of ['large/history/revisions?', 'large/history/revisions?top=1&'])
    expect(await get(`${path}${search({ a: 8 })}`)).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/query/criteria', detail: expect.stringContaining('64 MiB') }] },
    });
  const createDateAfter = new Date(Date.now() - 3.5 * 86_400_000).toISOString();
  const narrow = await get(`large/history/revisions?${search({ a: 8, createDateAfter })}`);
  expect(narrow).toMatchObject({ status: 200, body: { results: [{ revision: 8 }], page: { total: 1 } } });
  expect((await get(`large/history/revisions?${search({ a: 8, createDateAfter, useOr: true })}`)).status).toBe(400);
  expect(await get(`large?${search({ a: 8 })}`)).toMatchObject({ body: { results: [{ name: 'history' }] } });
});

it('criteria compare at most 20 fields: 400 beyond it', async () => {
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, nth) => [`f${nth}`, 1]));
  expect((await get(`large?${search(fields(20))}`)).status).toBe(200);
  expect((await get(`large?${search(fields(21))}`)).status).toBe(400);
});

it.each([
  ['of revisions that compares fields', 'large/slow/revisions', { a: 1 }],
  ['of configurations that searches names', 'large', { nameContains: 'slow' }],
])('a list %s runs alone for its tenant, and 4 wait: 503 busy beyond it', async (_, path, criteria) => {
  await database.query("DELETE FROM configurations WHERE name = 'slow'");
  await store('slow', 3, 1);
  const unlock = await lockRevisions();
  const refused: Awaited<ReturnType<typeof get>>[] = [];
  const lists = Array.from({ length: 30 }, async () => {
    const answer = await get(`${path}?${search(criteria)}`);
    if (answer.status !== 200) refused.push(answer);
    return answer.status;
  });
  await expect.poll(() => refused.length, { timeout: 5_000 }).toBe(25);
  await expect.poll(lockWaits).toBe(1);
  await unlock();
  expect((await Promise.all(lists)).filter((status) => status === 200)).toHaveLength(5);
  for (const { status, headers, body } of refused) {
    expect([status, headers.get('retry-after')]).toEqual([503, '5']);
    expect(body).toMatchObject({ type: 'urn:formgate:problem:busy' });
  }
});

it.each(['empty', 'empty/none/revisions'])(
  'criteria that filter nothing do not make the list %s wait',
  async (path) => {
    const unlock = await lockRevisions();
    const lists = Array.from({ length: 8 }, (_, nth) => get(`${path}?${search(nth % 2 ? {} : { useOr: true })}`));
    await expect.poll(lockWaits).toBe(2);
    await unlock();
    for (const answered of await Promise.all(lists)) expect(answered.status).toBe(200);
  },
);

it('a tenant whose changes wait for a lock leaves connections to another tenant', async () => {
  await database.query("INSERT INTO configurations VALUES ($1, 'locked', 'x')", [key()]);
  const unlock = await lockRevisions();
  const names = Array.from({ length: 8 }, (_, nth) => `x${nth}`);
  const waiting = names.map((name) => get(`locked/${name}`));
  await expect.poll(lockWaits).toBe(2);
  expect((await call(`${platform.url}/api/tenant/v2/tenants`, { token: otherAdmin })).status).toBe(200);
  await unlock();
  for (const answered of await Promise.all(waiting)) expect(answered.status).toBe(200);
});
