// Tests that what a tenant writes costs the main thread little for each event, however large it is. An earlier
// version may have stored documents that are larger than today's limit.
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Caller, callerOf, send, settled } from '../../../test/support/notices.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { tenantKey } from '../tenant-key.ts';

const mib = 1_048_576;
let platform: TestPlatform;
let caller: Caller;
let database: pg.Pool;

beforeAll(async () => {
  platform = await startTestPlatform();
  caller = await callerOf(platform);
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
});

afterAll(async () => {
  await database.end();
  await platform.close();
});

/** Stores a document of the tenant as an earlier version may have stored it: without today's limits. */
async function store(name: string, document: object): Promise<void> {
  const key = [tenantKey(platform.tenant.id), 'platform', name];
  await database.query('INSERT INTO configurations VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', key);
  await database.query(
    `INSERT INTO configuration_revisions VALUES ($1, $2, $3, 0, now(), now(), $4)
     ON CONFLICT (tenant, namespace, name, revision) DO UPDATE SET configuration = excluded.configuration`,
    [...key, JSON.stringify(document)],
  );
}

/** Returns the microseconds of processor time that `work` took on the main thread. Other processes do not add to it. */
async function busyTime(work: () => Promise<void>): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return user + system;
}

const copies = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);
const manyEvents = (bytes: number) => copies(bytes / 44, { namespace: 'a', name: 'b', templates: {} });
const typesOf = (bytes: number) => ({ own: { id: 'own', name: 'Own', channels: [], events: manyEvents(bytes) } });

it('an event costs a moment, also if the notification document of its tenant has 8 MiB', async () => {
  await store('notification-service', typesOf(8 * mib));
  const sendOne = async () => {
    await send(caller, { name: 'unheard' });
    await settled(database);
  };
  const first = await busyTime(sendOne);
  const further = await busyTime(async () => {
    for (let nth = 0; nth < 10; nth += 1) await sendOne();
  });
  expect(further / 10).toBeLessThan(first / 3);
});

it('an event costs less than parsing the event definitions of its tenant, which may have 8 MiB', async () => {
  await store('notification-service', {});
  const definitions = Object.fromEntries(
    Array.from({ length: 100_000 }, (_, nth) => [`event-${nth}`, { name: 'event', payloadSchema: { type: 'object' } }]),
  );
  const document = { large: { name: 'large', definitions } };
  await store('event-service', document);
  const text = JSON.stringify(document);
  const sendOne = () => send(caller, { namespace: 'large', name: 'event-0' });
  await sendOne();
  const busy = await busyTime(async () => {
    for (let nth = 0; nth < 5; nth += 1) await sendOne();
  });
  const parsing = await busyTime(async () => {
    for (let nth = 0; nth < 5; nth += 1) await Promise.resolve(text).then(JSON.parse);
  });
  await settled(database);
  expect(busy).toBeLessThan(parsing);
});

it('a tenant may not write a notification document above 1 MiB, and may shorten one that it already has', async () => {
  const admin = await roleToken(
    platform.access,
    { 'configuration-service': ['configuration-admin'] },
    { realm: platform.tenant.realm },
  );
  const write = (configuration: object) =>
    call(`${platform.url}/configuration/v2/configuration/platform/notification-service`, {
      ...{ method: 'PATCH', token: admin, body: { operation: 'REPLACE', configuration } },
    });
  const contact = (bytes: number) => ({ contact: { text: 'x'.repeat(bytes) } });
  await store('notification-service', {});
  expect((await write(contact(0.9 * mib))).status).toBe(200);
  expect(await write(contact(1.1 * mib))).toMatchObject({
    status: 400,
    body: { errors: [{ pointer: '/configuration', detail: `would be longer than ${mib} characters` }] },
  });
  await store('notification-service', contact(3 * mib));
  expect((await write(contact(3.1 * mib))).status).toBe(400);
  expect((await write(contact(2 * mib))).status).toBe(200);
});
