// Tests that the criteria of subscriptions are limited in size and number, so that no list of them exhausts the memory
// of the process. Rows that an earlier version stored may exceed the limits.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';

const kib = 1_024;
const mib = 1_024 * kib;

let platform: TestPlatform;
let database: pg.Pool;
let admin: string;
let subscriberId: string;

const type = 'form-status-updates';
const subscriptions = `types/${type}/subscriptions`;

function send(method: string, path: string, body?: unknown, query: Record<string, string> = {}) {
  const search = new URLSearchParams({ tenantId: platform.tenant.id, ...query });
  return call(`${platform.url}/subscription/v1/${path}?${search}`, { method, body, token: admin });
}

const request = (correlationId: string) => ({
  addressAs: 'Ana',
  channels: [{ channel: 'email', address: 'ana@example.org' }],
  criteria: { correlationId },
});

async function subscribe(): Promise<string> {
  const { body } = await send('POST', subscriptions, request('form:0'));
  return (body as { subscriberId: string }).subscriberId;
}

const one = () => `${subscriptions}/${subscriberId}`;
const add = (criteria: unknown) => send('POST', one(), { criteria });

/** Stores criteria as an earlier version may have stored them: without limits. */
async function storeCriteria(of: string, count: number, bytes: number): Promise<void> {
  await database.query(
    `INSERT INTO subscription_criteria (subscriber_id, type_id, tenant, correlation_id, context)
     SELECT subscriber_id, type_id, tenant, 'old:' || nth, jsonb_build_object('a', repeat('x', $3))
     FROM subscriptions, generate_series(1, $2::int) nth WHERE subscriber_id = $1`,
    [of, count, bytes],
  );
}

beforeAll(async () => {
  platform = await startTestPlatform();
  admin = await roleToken(platform.access, { 'notification-service': ['subscription-admin'] });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  const types = { [type]: { id: type, name: 'Form updates', channels: ['email'], events: [] } };
  await database.query(
    `WITH home AS (INSERT INTO configurations VALUES ('core', 'platform', 'notification-service') RETURNING *)
     INSERT INTO configuration_revisions (tenant, namespace, name, revision, created, last_updated, configuration)
     SELECT tenant, namespace, name, 0, now(), now(), $1::json FROM home`,
    [JSON.stringify(types)],
  );
});

afterAll(async () => {
  await database.end();
  await platform.close();
});

beforeEach(async () => {
  await database.query('DELETE FROM subscribers');
  subscriberId = await subscribe();
});

it('a criterion has at most 16 KiB of JSON: 400 beyond it, also when it is added to a subscription', async () => {
  const criterion = (bytes: number) => ({ correlationId: 'n', context: { a: 'é'.repeat(bytes / 2) } });
  expect((await add(criterion(15 * kib))).status).toBe(200);
  for (const refused of [
    await add(criterion(16 * kib)),
    await add([criterion(16 * kib)]),
    await send('POST', subscriptions, { ...request('x'), criteria: criterion(16 * kib) }),
  ]) {
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('16 KiB');
  }
});

it('a request that subscribes or changes criteria has at most 64 KiB: 413 beyond it', async () => {
  const criteria = Array.from({ length: 5 }, (_, nth) => ({
    correlationId: `${nth}`,
    context: { a: 'x'.repeat(15_000) },
  }));
  expect((await add(criteria.slice(0, 4))).status).toBe(200);
  expect((await add(criteria)).status).toBe(413);
  expect((await send('POST', subscriptions, { ...request('x'), addressAs: 'x'.repeat(65 * kib) })).status).toBe(413);
});

it('a subscription has at most 200 criteria: 409 for another one, however many requests add one at the same time', async () => {
  await add(Array.from({ length: 195 }, (_, nth) => ({ correlationId: `form:${nth}` })));
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async (_, nth) => (await add({ correlationId: `more:${nth}` })).status),
  );
  expect(statuses.toSorted()).toEqual([...Array(5).fill(200), ...Array(15).fill(409)]);
  expect((await add({ correlationId: 'form:3' })).status).toBe(200);
  const full = await send('POST', subscriptions, { ...request('another'), id: subscriberId });
  expect(full).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:conflict' } });
});

/** Stores criteria for events about everything, as an earlier version may have stored them: without limits. */
async function storeForAll(count: number, bytes = 1): Promise<void> {
  await database.query(
    `INSERT INTO subscription_criteria (subscriber_id, type_id, tenant, context)
     SELECT subscriber_id, type_id, tenant, jsonb_build_object('a', repeat('x', $2), 'nth', nth)
     FROM subscriptions, generate_series(1, $1::int) nth WHERE subscriber_id = $3`,
    [count, bytes, subscriberId],
  );
}

it('a tenant has at most 5,000 criteria without a correlation id, in all types and subscriptions: 409 beyond it', async () => {
  await storeForAll(4_999);
  const another = await subscribe();
  const addTo = (id: string, criteria: unknown) => send('POST', `${subscriptions}/${id}`, { criteria });
  expect((await addTo(another, { context: { a: 1 } })).status).toBe(200);
  const refused = await addTo(another, { context: { a: 2 } });
  expect(refused).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:conflict' } });
  expect(refused.text).toContain('5000 criteria');
  expect((await send('POST', subscriptions, { ...request(''), criteria: { context: { a: 3 } } })).status).toBe(409);
  expect((await addTo(another, [{ context: { a: 1 } }, { context: { a: 2 } }])).status).toBe(409);
  // Repeated criteria, those of a form, and a list that does not grow are accepted.
  expect((await addTo(another, { context: { a: 1 } })).status).toBe(200);
  expect((await addTo(another, { correlationId: 'form:2' })).status).toBe(200);
  expect((await addTo(another, [{ context: { a: 9 } }])).status).toBe(200);
});

it('a tenant has at most 1 MiB of criteria with the same correlation id, or without one: 409 beyond it', async () => {
  await storeForAll(70, 15_000);
  expect((await add([{ context: { a: 1 } }])).status).toBe(200);
  await storeForAll(70, 15_000);
  expect((await add({ context: { a: 2 } })).status).toBe(409);
  await database.query("UPDATE subscription_criteria SET correlation_id = 'form:7' WHERE context ? 'nth'");
  expect((await add({ context: { a: 2 } })).status).toBe(200);
  expect((await add({ correlationId: 'form:7' })).status).toBe(409);
});

it('a subscription that an earlier version let grow to 160 MiB is read, listed and repaired', async () => {
  await storeCriteria(subscriberId, 40, 4 * mib);
  const read = await send('GET', one());
  expect(read.status).toBe(200);
  expect(read.text.length).toBeLessThan(9 * mib);
  expect(read.body).toMatchObject({ criteria: expect.arrayContaining([{ correlationId: 'form:0' }]) });
  expect((await send('GET', subscriptions)).text.length).toBeLessThan(9 * mib);
  expect((await add([{ correlationId: 'form:1' }])).body).toMatchObject({ criteria: [{ correlationId: 'form:1' }] });
});

it('a page of subscriptions ends before 8 MiB, and its cursor leads to the others', async () => {
  const all = [subscriberId, await subscribe(), await subscribe(), await subscribe()].toSorted();
  for (const id of all) await storeCriteria(id, 1, 3 * mib);
  const found: string[][] = [];
  for (let after: string | null = ''; after !== null; ) {
    const { body } = await send('GET', subscriptions, undefined, { top: '1000', ...(after && { after }) });
    const { results, page } = body as { results: { subscriberId: string }[]; page: { next: string | null } };
    found.push(results.map((subscription) => subscription.subscriberId));
    after = page.next;
  }
  expect(found).toEqual([all.slice(0, 2), all.slice(2)]);
});

it('a page of 1,000 subscriptions is one request to the database, and shows each subscriber', async () => {
  await database.query(
    `WITH subscriber AS (
       INSERT INTO subscribers (id, tenant, address_as, created)
       SELECT lpad(nth::text, 24, '0'), tenant, 'nth ' || nth, now() FROM subscribers, generate_series(1, 999) nth
       WHERE id = $1 RETURNING id, tenant)
     INSERT INTO subscriptions SELECT id, $2, tenant, true FROM subscriber`,
    [subscriberId, type],
  );
  const pages = await Promise.all(
    Array.from({ length: 4 }, () => send('GET', subscriptions, undefined, { top: '1000' })),
  );
  for (const { body } of pages) {
    const { results } = body as { results: { subscriberId: string; subscriber: { id: string; addressAs: string } }[] };
    expect(results).toHaveLength(1_000);
    for (const result of results) expect(result.subscriber.id).toBe(result.subscriberId);
  }
});
