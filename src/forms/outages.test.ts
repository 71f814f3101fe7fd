// Outages of the form service's dependencies: checks its responses, and its recovery without a restart.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../../test/support/fault-proxy.ts';
import { anonymous, startTestForms, type TestForms } from '../../test/support/forms.ts';

let forms: TestForms;
let notifications: FaultProxy;
let configuration: FaultProxy;
beforeAll(async () => {
  forms = await startTestForms({
    async env({ url }) {
      [notifications, configuration] = await Promise.all([startFaultProxy(url), startFaultProxy(url)]);
      return {
        DIR_PLATFORM_NOTIFICATION_SERVICE_V1: `${notifications.url}/subscription/v1`,
        DIR_PLATFORM_CONFIGURATION_SERVICE_V2: `${configuration.url}/configuration/v2`,
        PLATFORM_TIMEOUT: 'PT2S',
      };
    },
  });
});
afterAll(async () => {
  await forms.close();
  await Promise.all([notifications.close(), configuration.close()]);
});
afterEach(() => Promise.all([notifications.heal(), configuration.heal()]));

const send = (id: string) => forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
const read = (id: string, code: string) =>
  forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': code } });
const tries = async (id: string) =>
  (await forms.pool.query('SELECT FROM code_attempts WHERE form_id = $1', [id])).rowCount;

describe('while the notification service is away', () => {
  it.each([500, 'reset', 'hang', 'half an answer'] as const)(
    '(%s) checking a code fails with a problem and does not count as a wrong code',
    async (fault) => {
      const id = await forms.draft();
      const code = await forms.code(id);
      await notifications.break(fault, { at: 1 });
      const response = await read(id, code);
      expect([502, 503, 504]).toContain(response.status);
      expect(response.headers.get('content-type')).toContain('application/problem+json');
      expect(await tries(id)).toBe(0);
      // After half a response, the notification service has checked and used up the code.
      await notifications.heal();
      if (fault === 'half an answer') return;
      await expect.poll(async () => (await read(id, code)).status).toBe(200);
    },
  );

  it('a code that cannot be sent does not count, and sending works again without a restart', async () => {
    const id = await forms.draft();
    await expect
      .poll(
        async () =>
          (await forms.pool.query('SELECT subscriber_id FROM forms WHERE id = $1', [id])).rows[0].subscriber_id,
      )
      .not.toBeNull();
    await notifications.break(503, { at: 1 });
    for (let nth = 0; nth < 3; nth += 1) expect([502, 503]).toContain((await send(id)).status);
    await notifications.heal();
    await expect.poll(async () => (await send(id)).status, { interval: 500 }).toBe(202);
  }, 60_000);

  it('forms can still be created, saved, submitted and deleted', async () => {
    await notifications.break('reset', { at: 1 });
    const id = await forms.draft();
    const body = { data: { name: 'Ana' }, files: {} };
    expect((await forms.ask('PUT', `/${id}/data`, { as: 'intake', body })).status).toBe(200);
    expect((await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'submit' } })).status).toBe(200);
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
  });

  it('a form whose code is sent before the dispatcher subscribes it has one subscriber', async () => {
    await notifications.break(503, { at: 1, times: 2 });
    const id = await forms.draft();
    await expect.poll(async () => (await send(id)).status, { interval: 500 }).toBe(202);
    const { rows } = await forms.pool.query('SELECT subscriber_id FROM forms WHERE id = $1', [id]);
    const platform = new pg.Client({ connectionString: forms.platform.databaseUrl });
    await platform.connect();
    const { rows: subscribers } = await platform.query(
      'SELECT subscriber_id AS id FROM subscription_criteria WHERE correlation_id LIKE $1',
      [`%${id}`],
    );
    await platform.end();
    expect(subscribers).toEqual([{ id: rows[0].subscriber_id }]);
  }, 60_000);
});

it('while the notification service does not know the notification type, codes are 503 with the reason, and nothing is quarantined', async () => {
  await notifications.break(404, { at: 1 });
  const id = await forms.draft();
  for (let nth = 0; nth < 3; nth += 1) {
    const response = await send(id);
    expect(response).toMatchObject({
      status: 503,
      body: {
        type: 'urn:formgate:problem:unavailable',
        detail: expect.stringContaining('has not read the registration of this service yet'),
      },
    });
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  const rows = async (sql: string) => (await forms.pool.query(sql, [id])).rows;
  await expect
    .poll(() => rows("SELECT FROM outbox WHERE form_id = $1 AND kind = 'subscribe' AND attempts > 10"))
    .toHaveLength(1);
  expect(await rows('SELECT FROM quarantine WHERE form_id = $1')).toEqual([]);
  expect(forms.log.text().match(/registration unknown to the service/g)).toHaveLength(1);
  await notifications.heal();
  await expect.poll(async () => (await send(id)).status, { interval: 100 }).toBe(202);
});

describe('while the configuration service is away', () => {
  const create = () =>
    forms.ask('POST', '', { as: 'intake', body: { definitionId: 'permit', applicant: anonymous() } });

  it('a definition read within five minutes still decides; after that, a create is 502 or 503 with a problem', async () => {
    await forms.draft();
    await configuration.break(503, { at: 1 });
    forms.advance(4 * 60_000);
    expect((await create()).status).toBe(201);
    forms.advance(2 * 60_000);
    const response = await create();
    expect([502, 503]).toContain(response.status);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
  });

  it('an intake application can still save and submit, with the cached definition', async () => {
    const id = await forms.draft();
    await configuration.break(503, { at: 1 });
    forms.advance(60 * 60_000);
    const body = { data: { name: 'Ana' }, files: {} };
    expect((await forms.ask('PUT', `/${id}/data`, { as: 'intake', body })).status).toBe(200);
    expect((await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'submit' } })).status).toBe(200);
  });

  it('creates work again without a restart after the outage', async () => {
    await expect.poll(async () => (await create()).status, { interval: 500 }).toBe(201);
  }, 60_000);
});

describe('while Postgres is away', () => {
  it('every form route returns 503 with a problem and Retry-After, and works again without a restart', async () => {
    const id = await forms.draft();
    await administer(`ALTER DATABASE ${databaseName()} WITH ALLOW_CONNECTIONS false`);
    await administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${databaseName()}'`);
    const asks = [
      () => forms.ask('POST', '', { as: 'intake', body: { definitionId: 'permit', applicant: anonymous() } }),
      () => forms.ask('GET', '', { as: 'admin' }),
      () => forms.ask('GET', `/${id}`, { as: 'admin' }),
      () => forms.ask('GET', `/${id}/data`, { as: 'admin' }),
      () => read(id, 'ABCDEF'),
      () => forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: {}, files: {} } }),
      () => send(id),
      () => forms.ask('DELETE', `/${id}`, { as: 'admin' }),
    ];
    for (const ask of asks) {
      const response = await ask();
      expect(response).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:unavailable' } });
      expect(response.headers.get('retry-after')).not.toBeNull();
    }
    await administer(`ALTER DATABASE ${databaseName()} WITH ALLOW_CONNECTIONS true`);
    await expect.poll(async () => (await forms.ask('GET', `/${id}`, { as: 'admin' })).status).toBe(200);
  });
});

function databaseName(): string {
  return new URL(forms.databaseUrl).pathname.slice(1);
}

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
