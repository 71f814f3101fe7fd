import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answered,
  call,
  roleToken,
  startTestPlatform,
  type TestPlatform,
} from '../../../test/support/platform.ts';

const mib = 1_048_576;

let platform: TestPlatform;
let base: string;
let admin: string;
let otherAdmin: string;
let database: pg.Pool;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { TENANT_CONFIGURATION_LIMIT: String(2 * mib) } });
  base = `${platform.url}/configuration/v2/configuration`;
  const roles = { 'configuration-service': ['configuration-admin'] };
  admin = await roleToken(platform.access, roles, { realm: 'demo' });
  otherAdmin = await roleToken(platform.access, roles, { realm: 'other' });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
});

afterAll(async () => {
  await database.end();
  await platform.close();
});

const send = (method: string, path: string, body?: unknown, token = admin) =>
  call(`${base}/${path}`, { method, token, body });
const replace = (path: string, configuration: unknown, token = admin) =>
  send('PATCH', path, { operation: 'REPLACE', configuration }, token);
const createRevision = (path: string, token = admin) => send('POST', path, { operation: 'CREATE-REVISION' }, token);

interface Page {
  results: Record<string, unknown>[];
  page: { next: string | null; size: number; total: number };
}

/** Reads a list to its end. */
async function pages(path: string): Promise<(Page & { length: number })[]> {
  const found: (Page & { length: number })[] = [];
  for (let after = ''; ; ) {
    const { text, body } = await send('GET', `${path}${after && `&after=${after}`}`);
    const page = body as Page;
    found.push({ ...page, length: text.length });
    if (!page.page.next) return found;
    after = page.page.next;
  }
}

describe('a page with large values', () => {
  it('of revisions ends before 8 MiB, and its cursor leads to the others', async () => {
    await replace('large/history', ['x'.repeat(3_000_000)]);
    for (let n = 1; n <= 4; n += 1) await createRevision('large/history');
    const found = await pages('large/history/revisions?top=5000');
    expect(found.map(({ results }) => results.map(({ revision }) => revision))).toEqual([[4, 3], [2, 1], [0]]);
    for (const { length, page } of found) {
      expect(length).toBeLessThan(8 * mib);
      expect(page.total).toBe(5);
    }
  });

  it('of a namespace ends before 8 MiB, active revisions included', async () => {
    for (const name of ['a', 'b', 'c']) await replace(`wide/${name}`, ['x'.repeat(3_000_000)]);
    const names = async (query: string) =>
      (await pages(`wide?${query}`)).map(({ results }) => results.map(({ name }) => name));
    expect(await names('top=1000')).toEqual([['a', 'b'], ['c']]);
    await send('POST', 'wide/b', { operation: 'SET-ACTIVE-REVISION', revision: 0 });
    await createRevision('wide/b');
    expect(await names('top=1000&includeActive=true')).toEqual([['a'], ['b'], ['c']]);
  });

  it('has one value if that is larger than a page', async () => {
    for (const member of ['a', 'b', 'c'])
      await send('PATCH', 'larger/history', { operation: 'UPDATE', update: { [member]: 'é'.repeat(2_000_000) } });
    await createRevision('larger/history');
    const found = await pages('larger/history/revisions?top=10');
    expect(found.map(({ results }) => results.map(({ revision }) => revision))).toEqual([[1], [0]]);
  });
});

it('at most one change of a configuration runs and 100 wait; more get 503, and another tenant is served', async () => {
  await replace('busy/x', ['x'.repeat(100_000)]);
  const started = performance.now();
  const flood = Array.from({ length: 150 }, async () => {
    const answer = await createRevision('busy/x');
    return { ...answer, passed: performance.now() - started };
  });
  const other = await createRevision('busy/x', otherAdmin);
  const answers = await Promise.all(flood);
  expect(other.status).toBe(200);
  const refused = answers.filter(({ status }) => status !== 200);
  // On a slow machine, some requests are refused later, after a wait of 10 s.
  const atOnce = refused.filter(({ passed }) => passed < 9_000);
  expect(atOnce.length).toBeGreaterThan(0);
  expect(answers.length - atOnce.length).toBeGreaterThanOrEqual(101);
  for (const { status, headers, body } of refused) {
    expect(status).toBe(503);
    expect(headers.get('retry-after')).toBe('5');
    expect(body).toMatchObject({ type: 'urn:formgate:problem:busy' });
  }
});

describe('code in a configuration', () => {
  const type = (id: string, channels: number) => {
    const templates = Object.fromEntries(Array.from({ length: channels }, (_, index) => [`c${index}`, {}]));
    return { id, name: id, events: [{ namespace: 'form-service', name: 'form-locked', templates }] };
  };

  it('has templates for at most 10 channels of an event', async () => {
    expect((await replace('platform/notification-service', { wide: type('wide', 10) })).status).toBe(200);
    const { status, body } = await replace('platform/notification-service', { wide: type('wide', 11) });
    expect(status).toBe(400);
    expect(body).toMatchObject({ errors: [{ pointer: '/configuration/wide/events/0/templates' }] });
  });

  it('has at most 10,000 schemas and templates, so that an edit never takes long', async () => {
    const definitions = (count: number) => ({
      many: {
        name: 'many',
        definitions: Object.fromEntries(
          Array.from({ length: count }, (_, index) => [`e${index}`, { name: `e${index}`, payloadSchema: true }]),
        ),
      },
    });
    expect((await replace('platform/event-service', definitions(10_000))).status).toBe(200);
    const { status, body } = await replace('platform/event-service', definitions(10_001));
    expect([status, body]).toMatchObject([
      400,
      { errors: [{ pointer: '/configuration', detail: 'has more than 10000 schemas and templates' }] },
    ]);
  });
});

describe('a configuration with more than 200,000 JSON values', () => {
  const members = (count: number, prefix: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, nth) => [`${prefix}${nth}`, 0]));
  const update = (path: string, value: unknown) => send('PATCH', path, { operation: 'UPDATE', update: value });
  const detail = 'has more than 200000 JSON values';

  it('is refused with a reason, whether it is sent at once or grows', async () => {
    const refused = await replace('values/x', members(210_000, 'a'));
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ pointer: '', detail }] } });
    expect((await replace('values/x', members(150_000, 'a'))).status).toBe(200);
    const { status, body } = await update('values/x', members(60_000, 'b'));
    expect([status, body]).toMatchObject([400, { errors: [{ pointer: '/update', detail }] }]);
    expect((await update('values/x', members(40_000, 'b'))).status).toBe(200);
  });

  it('is refused as well if most of them are defaults of its schema', async () => {
    const configurationSchema = { items: { properties: { filler: { default: Array(1_000).fill(0) } } } };
    await send('PATCH', 'platform/configuration-service', {
      operation: 'UPDATE',
      update: { grown: { configurationSchema } },
    });
    expect((await replace('grown/x', Array(190).fill({}))).status).toBe(200);
    const { status, body } = await replace('grown/x', Array(210).fill({}));
    expect([status, body]).toMatchObject([400, { errors: [{ pointer: '/configuration', detail }] }]);
  });

  it('that an earlier version stored can be made smaller, but not grow', async () => {
    await replace('older/x', { a: 0 });
    await database.query(`UPDATE configuration_revisions SET configuration = $1::json WHERE namespace = 'older'`, [
      JSON.stringify({ ...members(250_000, 'a'), more: 0 }),
    ]);
    expect((await update('older/x', { another: 0 })).status).toBe(400);
    expect((await send('PATCH', 'older/x', { operation: 'DELETE', property: 'more' })).status).toBe(200);
    expect((await replace('older/x', { a: 0 })).status).toBe(200);
  });
});

it('a configuration with 5,000 revisions gets no further one, but its latest can still be changed', async () => {
  await replace('many/x', ['a']);
  await database.query(`UPDATE configuration_revisions SET revision = 4998 WHERE namespace = 'many'`);
  expect((await createRevision('many/x')).body).toMatchObject({ latest: { revision: 4_999 } });
  expect(await createRevision('many/x')).toMatchObject({
    status: 409,
    body: { type: 'urn:formgate:problem:conflict', detail: expect.stringContaining('5000 revisions') },
  });
  expect((await replace('many/x', ['b'])).body).toMatchObject({ latest: { revision: 4_999, configuration: ['b'] } });
});

it('a tenant with very many small revisions gets no further one', async () => {
  await replace('small/x', [], otherAdmin);
  await database.query(
    `INSERT INTO configuration_revisions SELECT tenant, namespace, name, nth, created, last_updated, configuration
     FROM configuration_revisions, generate_series(1, 2048) nth WHERE namespace = 'small'`,
  );
  expect((await replace('small/y', [], otherAdmin)).status).toBe(409);
  expect((await send('DELETE', 'small/x', undefined, otherAdmin)).body).toEqual({ deleted: true });
  expect((await replace('small/y', [], otherAdmin)).status).toBe(200);
});

it('a tenant whose configuration is full can make it smaller and delete it; other tenants are not affected', async () => {
  const incompressible = (bytes: number) => [randomBytes(bytes / 2).toString('hex')];
  const expectRefused = ({ status, body }: Answered) => {
    expect(status).toBe(409);
    expect(body).toMatchObject({ detail: expect.stringContaining('Delete configurations') });
  };
  expect((await replace('full/x', incompressible(1_200_000), otherAdmin)).status).toBe(200);
  expectRefused(await createRevision('full/x', otherAdmin));
  expectRefused(await replace('full/y', incompressible(1_200_000), otherAdmin));
  expect((await send('GET', 'full/y/latest', undefined, otherAdmin)).body).toEqual({});
  expect((await replace('full/x', incompressible(600_000))).status).toBe(200);

  await database.query(
    `UPDATE configuration_revisions SET configuration = $1::json
     WHERE namespace = 'full' AND tenant = '65f0c2a9e4b0a1d2c3f4a5b7'`,
    [JSON.stringify(incompressible(3_000_000))],
  );
  expect((await replace('full/x', incompressible(2_000_000), otherAdmin)).status).toBe(200);
  expect((await send('DELETE', 'full/x', undefined, otherAdmin)).body).toEqual({ deleted: true });
  expect((await replace('full/y', incompressible(1_200_000), otherAdmin)).status).toBe(200);
});

it('a tenant cannot exceed its limit by replacing values with others of the same length that compress less', async () => {
  await send('DELETE', 'full/y', undefined, otherAdmin);
  const length = 1_500_000;
  const random = () => [randomBytes(length / 2).toString('hex')];
  for (const name of ['x', 'y'])
    expect((await replace(`same/${name}`, ['a'.repeat(length)], otherAdmin)).status).toBe(200);
  expect((await replace('same/x', random(), otherAdmin)).status).toBe(200);
  expect((await replace('same/y', random(), otherAdmin)).status).toBe(409);
});
