import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { tooLongId } from '../../../test/support/notices.ts';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { tenantKey } from '../tenant-key.ts';

let platform: TestPlatform;
let database: pg.Pool;
let core: string;
let sender: string;

const sendRole = { 'event-service': ['event-sender'] };

const event = (changes: Record<string, unknown> = {}) => ({
  namespace: 'form-service',
  name: 'form-locked',
  timestamp: '2026-08-20T17:00:00Z',
  correlationId: 'urn:example:platform:form-service:v1:/forms/5d0c',
  context: { definitionId: 'permit', formId: '5d0c' },
  tenantId: platform.tenant.id,
  payload: { deleteOn: '2026-09-04T17:00:00Z' },
  ...changes,
});

const send = (body: unknown, token: string | undefined = core, query = '') =>
  call(`${platform.url}/event/v1/events${query}`, { method: 'POST', token, body });

async function accepted(): Promise<Record<string, unknown>[]> {
  return (await database.query<Record<string, unknown>>('SELECT * FROM recorded ORDER BY sequence')).rows;
}

async function defineEvents(namespace: string, schema: unknown, query = ''): Promise<number> {
  const token = await roleToken(platform.access, { 'configuration-service': ['configured-service'] });
  const definitions = { 'form-locked': { name: 'form-locked', description: 'Locked', payloadSchema: schema } };
  const update = { [namespace]: { name: namespace, definitions } };
  const url = `${platform.url}/configuration/v2/configuration/platform/event-service${query}`;
  return (await call(url, { method: 'PATCH', token, body: { operation: 'UPDATE', update } })).status;
}

const log = captureLog();

beforeAll(async () => {
  platform = await startTestPlatform({ log: log.log });
  core = await roleToken(platform.access, sendRole);
  sender = await roleToken(platform.access, sendRole, { realm: 'demo' });
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  await database.query(`CREATE TABLE recorded AS SELECT * FROM events WITH NO DATA;
    CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO recorded SELECT NEW.*; RETURN NEW; END';
    CREATE TRIGGER keep AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION keep()`);
});

beforeEach(() => database.query('TRUNCATE recorded, event_keys'));

afterAll(async () => {
  await database.end();
  await platform.close();
});

describe('sending', () => {
  it('an event with a correlation id that is too long for the database is refused with its place', async () => {
    expect(await send(event({ correlationId: tooLongId }))).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/correlationId', detail: expect.stringContaining('2000 bytes') }] },
    });
  });

  it('an event of a tenant with 10,000 waiting events gets 503, and events of other tenants are accepted', async () => {
    await database.query(
      `INSERT INTO events (id, tenant, namespace, name, occurred, context, payload, accepted)
       SELECT gen_random_uuid(), $1, 'full', 'e', now(), '{}', '{}', now() FROM generate_series(1, 10000)`,
      [tenantKey(platform.tenant.id)],
    );
    const refused = await send(event());
    expect(refused).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:busy' } });
    expect(refused.headers.get('retry-after')).toBe('60');
    expect((await send(event({ tenantId: platform.otherTenant.id }))).status).toBe(200);
    await database.query("DELETE FROM events WHERE namespace = 'full'");
    expect((await send(event())).status).toBe(200);
  });

  it('an event of a core account is in the audit trail of the tenant that it names', async () => {
    await send(event());
    const audits = () => log.lines().flatMap(({ audit }) => (audit ? [audit as object] : []));
    await expect.poll(() => audits().at(-1)).toMatchObject({ action: 'event.send', tenant: platform.tenant.id });
  });

  it('a large event of a core account uses the share of the tenant in the query, before its body is read', async () => {
    const query = `?tenantId=${encodeURIComponent(platform.tenant.id)}`;
    const { status } = await send(event({ payload: { text: 'x'.repeat(5 * 1_048_576) } }), core, query);
    expect(status).toBe(413);
    const lines = () => log.lines().filter((line) => line.status === 413);
    await expect.poll(lines).toMatchObject([{ tenant: platform.tenant.id }]);
  });

  it('an accepted event gets 200 with the text OK, after it was stored', async () => {
    const answered = await send(event());
    expect([answered.status, answered.text, answered.headers.get('content-type')]).toEqual([
      200,
      'OK',
      'text/plain; charset=utf-8',
    ]);
    expect(await accepted()).toMatchObject([
      {
        tenant: '65f0c2a9e4b0a1d2c3f4a5b6',
        namespace: 'form-service',
        name: 'form-locked',
        occurred: new Date('2026-08-20T17:00:00Z'),
        correlation_id: 'urn:example:platform:form-service:v1:/forms/5d0c',
        context: { definitionId: 'permit', formId: '5d0c' },
        payload: { deleteOn: '2026-09-04T17:00:00Z' },
      },
    ]);
  });

  it('an event without subscribers is deleted', async () => {
    await send(event());
    await expect.poll(async () => (await database.query('SELECT 1 FROM events')).rowCount).toBe(0);
    expect(
      (await database.query("SELECT 1 FROM graphile_worker.jobs WHERE task_identifier = 'route-event'")).rowCount,
    ).toBe(0);
  });

  it.each([
    { title: 'no namespace', changes: { namespace: undefined } },
    { title: 'a namespace of 51 characters', changes: { namespace: 'x'.repeat(51) } },
    { title: 'an empty name', changes: { name: '' } },
    { title: 'a timestamp that is no ISO time', changes: { timestamp: 'yesterday' } },
    { title: 'no payload', changes: { payload: undefined } },
    { title: 'a payload that is an array', changes: { payload: [] } },
    { title: 'a context that is a text', changes: { context: 'x' } },
  ])('$title gets 400 and stores nothing', async ({ changes }) => {
    const { status, body } = await send(event(changes));
    expect(status).toBe(400);
    expect(body).toMatchObject({ errorMessage: expect.any(String) });
    expect(await accepted()).toEqual([]);
  });
});

describe('tenant', () => {
  it('a core sender must name a tenant: in the body, or in the query, which takes precedence', async () => {
    expect((await send(event({ tenantId: undefined }))).status).toBe(400);
    expect((await send(event({ tenantId: 'nonsense' }))).status).toBe(400);
    expect((await send(event({ tenantId: 5 }))).status).toBe(400);
    const other = `?tenantId=${encodeURIComponent(platform.otherTenant.id)}`;
    expect((await send(event(), core, other)).status).toBe(200);
    expect((await send(event({ tenantId: undefined }), core, other)).status).toBe(200);
    expect((await accepted()).map(({ tenant }) => tenant)).toEqual([
      '65f0c2a9e4b0a1d2c3f4a5b7',
      '65f0c2a9e4b0a1d2c3f4a5b7',
    ]);
  });

  it('other senders send for their own tenant; the tenant in the body is ignored', async () => {
    expect((await send(event({ tenantId: platform.otherTenant.id }), sender)).status).toBe(200);
    expect((await accepted()).map(({ tenant }) => tenant)).toEqual(['65f0c2a9e4b0a1d2c3f4a5b6']);
  });
});

describe('roles', () => {
  it('sending requires event-sender: 401 without a token or with another audience, 403 without the role', async () => {
    const elsewhere = await roleToken(platform.access, sendRole, { audience: ['urn:example:platform:tenant-service'] });
    const without = await roleToken(platform.access, { 'event-service': ['event-reader'] });
    const foreign = await roleToken(
      platform.access,
      { 'form-service': ['event-sender'] },
      { audience: ['urn:example:platform:event-service'] },
    );
    expect((await call(`${platform.url}/event/v1/events`, { method: 'POST', body: event() })).status).toBe(401);
    expect((await send(event(), elsewhere)).status).toBe(401);
    expect((await send(event(), without)).status).toBe(403);
    expect((await send(event(), foreign)).status).toBe(403);
    expect(await accepted()).toEqual([]);
  });
});

describe('definitions', () => {
  it('a payload that does not match its definition gets 400 with a pointer; an event without a definition is accepted', async () => {
    const schema = {
      type: 'object',
      properties: { deleteOn: { type: 'string', format: 'date-time' } },
      required: ['deleteOn'],
    };
    expect(await defineEvents('defined', schema)).toBe(200);
    expect((await send(event({ namespace: 'defined' }))).status).toBe(200);
    const refused = await send(event({ namespace: 'defined', payload: { deleteOn: 'soon' } }));
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({ errors: [{ pointer: '/payload/deleteOn' }] });
    expect((await send(event({ namespace: 'defined', name: 'other', payload: {} }))).status).toBe(200);
  });

  it("core's definitions apply to the whole namespace, and a tenant's if core has none", async () => {
    const ofTenant = `?tenantId=${encodeURIComponent(platform.tenant.id)}`;
    await defineEvents('both', { type: 'object' });
    await defineEvents('both', { type: 'object', required: ['x'] }, ofTenant);
    await defineEvents('tenants', { type: 'object', required: ['x'] }, ofTenant);
    expect((await send(event({ namespace: 'both', payload: {} }))).status).toBe(200);
    expect((await send(event({ namespace: 'tenants', payload: {} }))).status).toBe(400);
    expect((await send(event({ namespace: 'tenants', payload: {}, tenantId: platform.otherTenant.id }))).status).toBe(
      200,
    );
  });

  it('a definition that is not of the documented shape is refused by the configuration service', async () => {
    const token = await roleToken(platform.access, { 'configuration-service': ['configured-service'] });
    const url = `${platform.url}/configuration/v2/configuration/platform/event-service`;
    const update = (value: unknown) =>
      call(url, { method: 'PATCH', token, body: { operation: 'UPDATE', update: { bad: value } } });
    const definition = { name: 'x', description: 'x', payloadSchema: {} };
    expect((await update({ name: 'bad', definitions: { x: { ...definition, interval: {}, log: {} } } })).status).toBe(
      200,
    );
    expect((await update({ name: 'bad', definitions: { x: { ...definition, more: 1 } } })).status).toBe(400);
    expect((await update({ name: 'bad', definitions: { x: {} } })).status).toBe(400);
    expect((await update({ name: 'bad', more: 1 })).status).toBe(400);
  });
});

describe('idempotency', () => {
  const keyed = (key: unknown, changes = {}) => event({ context: { idempotencyKey: key }, ...changes });

  it('a repeat with the same key gets 200 and changes nothing, even with 20 concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(keyed('one'))));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(await accepted()).toHaveLength(1);
  });

  it('a key belongs to one tenant and namespace; events without a key are never repeats', async () => {
    await send(keyed('two'));
    await send(keyed('two', { tenantId: platform.otherTenant.id }));
    await send(keyed('two', { namespace: 'elsewhere' }));
    await send(event());
    await send(event());
    expect(await accepted()).toHaveLength(5);
  });

  it('a refused event does not use up its key', async () => {
    await defineEvents('strict', { type: 'object', required: ['x'] });
    expect((await send(keyed('three', { namespace: 'strict', payload: {} }))).status).toBe(400);
    expect((await send(keyed('three', { namespace: 'strict', payload: { x: 1 } }))).status).toBe(200);
    expect(await accepted()).toHaveLength(1);
  });
});
