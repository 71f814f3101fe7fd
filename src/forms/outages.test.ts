// Checks the responses of the form service during outages of its dependencies, and its recovery without a restart.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Fault, type FaultProxy, startFaultProxy } from '../../test/support/fault-proxy.ts';
import { anonymous, startTestForms, type TestForms } from '../../test/support/forms.ts';
import { cutDatabase, restoreDatabase } from '../../test/support/postgres.ts';

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
        PLATFORM_TIMEOUT: 'PT5S',
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

/** Creates a draft, and waits until its applicant is subscribed. */
async function subscribed(): Promise<string> {
  const id = await forms.draft();
  const sql = 'SELECT subscriber_id FROM forms WHERE id = $1';
  await expect.poll(async () => (await forms.pool.query(sql, [id])).rows[0].subscriber_id).not.toBeNull();
  return id;
}

describe('while the notification service is away', () => {
  it('a code that the service did not get does not count', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await notifications.break('refused', { at: 1 });
    expect((await read(id, code)).status).toBe(502);
    expect(await tries(id)).toBe(0);
    await notifications.heal();
    await expect.poll(async () => (await read(id, code)).status, { interval: 100 }).toBe(200);
  });

  it('a channel that the service rejects is 409 no-channel, and does not count', async () => {
    const id = await forms.draft();
    const subscriber = async () =>
      (await forms.pool.query('SELECT subscriber_id FROM forms WHERE id = $1', [id])).rows[0].subscriber_id;
    await expect.poll(subscriber).not.toBeNull();
    await notifications.break(400, { at: 1 });
    expect(await send(id)).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:no-channel' } });
    await notifications.heal();
    expect((await send(id)).status).toBe(202);
  });

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
  });

  it('a code that cannot be sent does not count, and sending works again without a restart', async () => {
    const id = await subscribed();
    await notifications.break('refused', { at: 1 });
    let response = await send(id);
    // Each failure of the notification service results in a 502, even after the form service has stopped calling it.
    for (let asked = 0; asked < 20 && response.headers.get('retry-after') === null; asked += 1) {
      expect(response).toMatchObject({ status: 502, body: { type: 'urn:formgate:problem:dependency-failed' } });
      response = await send(id);
    }
    expect(response).toMatchObject({ status: 502, body: { type: 'urn:formgate:problem:dependency-failed' } });
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    await notifications.heal();
    await expect.poll(async () => (await send(id)).status, { interval: 500 }).toBe(202);
  });
});

it.each(['lost response', 'lost as 502', 504] as const)('a code that may have been sent (%s) counts', async (fault) => {
  const id = await subscribed();
  await notifications.break(fault, { at: 1 });
  expect((await send(id)).status).toBe(502);
  await notifications.heal();
  const again = await send(id);
  expect(again.status).toBe(429);
  expect(Number(again.headers.get('retry-after'))).toBeGreaterThan(50);
});

it('applicants get codes immediately after the service failed 20 times to send a code to somebody else', async () => {
  const [refused, other] = [await subscribed(), await subscribed()];
  await notifications.break(500, { at: 1 });
  for (let asked = 0; asked < 20; asked += 1) expect((await send(refused)).status).toBe(502);
  await notifications.heal();
  expect((await send(other)).status).toBe(202);
});

describe('if the response to the check of a code is lost', () => {
  const lost = ['lost response', 'lost in silence', 'lost as 502', 'lost as 504', 'half a response', 500] as const;
  /**
   * Reads the form data with each code while the responses of the notification service are lost. Returns the statuses.
   */
  async function readAndLose(id: string, codes: string[], fault: Fault = 'lost response'): Promise<number[]> {
    await notifications.break(fault, { at: 1 });
    const statuses: number[] = [];
    for (const code of codes) statuses.push((await read(id, code)).status);
    await notifications.heal();
    return statuses;
  }
  /** Retries a read until the form service calls the notification service again. Returns the status of the response. */
  async function readAgain(id: string, code: string): Promise<number> {
    let status = 0;
    const again = async () => {
      ({ status } = await read(id, code));
      return status;
    };
    await expect.poll(again, { interval: 100 }).toBeLessThan(500);
    return status;
  }

  it.each(lost)('(%s) the same code works afterwards and does not count', async (fault) => {
    const id = await forms.draft();
    const code = await forms.code(id);
    const [status] = await readAndLose(id, [code], fault);
    expect([502, 504]).toContain(status);
    expect(await tries(id)).toBe(1);
    expect(await readAgain(id, code)).toBe(200);
    expect(await tries(id)).toBe(0);
  });

  it('another account can use the code instead', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await readAndLose(id, [code]);
    expect(await readAgain(id, 'WRONG1')).toBe(403);
    const other = () => forms.ask('GET', `/${id}/data`, { as: 'otherIntake', headers: { 'x-form-code': code } });
    await expect.poll(async () => (await other()).status).toBe(200);
    expect(await readAgain(id, code)).toBe(403);
  });

  it('a wrong code counts once however often it is tried, and each other code counts', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await readAndLose(id, ['WRONG1', 'WRONG1', 'WRONG2', 'WRONG1']);
    expect(await tries(id)).toBe(2);
    expect(await readAgain(id, 'WRONG1')).toBe(403);
    expect(await tries(id)).toBe(2);
    await readAndLose(id, ['WRONG3', 'WRONG4', 'WRONG5']);
    expect(await tries(id)).toBe(5);
    expect(await readAgain(id, code)).toBe(429);
    expect(await readAgain(id, 'WRONG5')).toBe(403);
    expect(await readAgain(id, 'WRONG5')).toBe(429);
    expect(await tries(id)).toBe(5);
  });

  it('because the process died, the same code works a minute later and does not count', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await readAndLose(id, [code]);
    await forms.pool.query('UPDATE code_attempts SET undecided = false WHERE form_id = $1', [id]);
    forms.advance(61_000);
    expect(await readAgain(id, code)).toBe(200);
    expect(await tries(id)).toBe(0);
  });
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

  it('a definition read within five minutes still decides; after that, a create is 502 with a problem', async () => {
    await forms.draft();
    await configuration.break(503, { at: 1 });
    forms.advance(4 * 60_000);
    expect((await create()).status).toBe(201);
    forms.advance(2 * 60_000);
    const response = await create();
    expect(response.status).toBe(502);
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
  });
});

describe('while Postgres is away', () => {
  it('every form route returns 503 with a problem and Retry-After, and works again without a restart', async () => {
    const id = await forms.draft();
    await cutDatabase(forms.databaseUrl);
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
    await restoreDatabase(forms.databaseUrl);
    await expect.poll(async () => (await forms.ask('GET', `/${id}`, { as: 'admin' })).status).toBe(200);
  });
});
