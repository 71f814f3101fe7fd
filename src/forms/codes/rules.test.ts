// Tests the rules of codes that hold with any implementation of the notification service. Also tests the lifetime of
// codes and the choice of the channel.
import { request, type Server } from 'node:http';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anonymous, startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { createHttpServer } from '../../../test/support/http-server.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { isReferenceRun } from '../../../test/support/platform-behaviour.ts';

const minute = 60_000;
const textOnly = { channels: [{ channel: 'sms', address: '+15550109998' }] };

let forms: TestForms;
let database: pg.Client;
let notifications: Server;
/** The `traceparent` of each call to the notification service. */
const traces: unknown[] = [];
/** The path of each call to the notification service. */
const calls: string[] = [];

beforeAll(async () => {
  forms = await startTestForms({
    async env({ url }) {
      notifications = createHttpServer((incoming, response) => {
        const { method, headers } = incoming;
        traces.push(headers.traceparent);
        calls.push(incoming.url ?? '');
        const passed = request(`${url}${incoming.url}`, { method, headers }, (upstream) => {
          response.writeHead(upstream.statusCode ?? 502, upstream.headers);
          upstream.pipe(response);
        });
        incoming.pipe(passed);
      });
      const port = await listenOnLoopback(notifications);
      return {
        DIR_PLATFORM_NOTIFICATION_SERVICE_V1: `http://127.0.0.1:${port}/subscription/v1`,
        // The notification service of the public platform has no API that lists its channels.
        ...(isReferenceRun && { CODE_CHANNELS: 'email' }),
      };
    },
  });
  database = new pg.Client({ connectionString: forms.platform.databaseUrl });
  await database.connect();
});
afterAll(async () => {
  await database.end();
  await forms.close();
  notifications.close();
});

const send = (id: string, headers: Record<string, string> = {}) =>
  forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' }, headers });
const read = (id: string, code: string, as: 'intake' | 'otherIntake' = 'intake') =>
  forms.ask('GET', `/${id}/data`, { as, headers: { 'x-form-code': code } });

/** Returns the digest of a form's code as the notification service stores it. */
async function keptCode(id: string) {
  const { rows } = await forms.pool.query('SELECT subscriber_id FROM forms WHERE id = $1', [id]);
  const { subscriber_id: subscriber } = rows[0];
  const kept = await database.query('SELECT digest FROM codes WHERE subscriber_id = $1', [subscriber]);
  return { subscriber, digest: kept.rows[0]?.digest as Buffer | null };
}

describe('a used code', () => {
  it('opens no second read session, even if the notification service would verify it again', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    const { subscriber, digest } = await keptCode(id);
    expect((await read(id, code)).status).toBe(200);
    // Restores the digest of the used code, so that the notification service would accept the code again. The public
    // platform's notification service does not use up codes, so there the digest is never removed.
    if (!isReferenceRun) expect((await keptCode(id)).digest).toBeNull();
    await database.query('UPDATE codes SET digest = $2 WHERE subscriber_id = $1', [subscriber, digest]);
    expect((await read(id, code, 'otherIntake')).status).toBe(403);
    forms.advance(30 * minute);
    expect((await read(id, code)).status).toBe(403);
    // A call to the notification service would have used up the code. The digest is still stored, so there was no call.
    expect((await keptCode(id)).digest).toEqual(digest);
    expect(calls.filter((path) => path.includes(subscriber)).length).toBe(2);
  });
});

describe('a code that is sent', () => {
  it('expires after ten minutes, as the response says', async () => {
    const asked = forms.now().getTime();
    const { body } = await send(await forms.draft());
    const expires = Date.parse((body as { expires: string }).expires);
    expect(expires - asked).toBeGreaterThanOrEqual(10 * minute);
    expect(expires - asked).toBeLessThan(11 * minute);
  });

  it('is sent and checked with the trace context of the request', async () => {
    const id = await forms.draft();
    const trace = (nth: number) => `00-4bf92f3577b34da6a3ce929d0e0e473${nth}-00f067aa0ba902b7-01`;
    await send(id, { traceparent: trace(1) });
    const headers = { 'x-form-code': 'WRONG1', traceparent: trace(2) };
    await forms.ask('GET', `/${id}/data`, { as: 'intake', headers });
    expect(traces).toEqual(expect.arrayContaining([trace(1), trace(2)]));
    expect(forms.log.text()).toContain(`"traceId":"${trace(1).slice(3, 35)}"`);
  });

  it('goes to an address at most five times an hour, for all its forms together', async () => {
    const applicant = anonymous();
    for (let nth = 0; nth < 5; nth += 1) {
      expect((await send(await forms.draft({ applicant }))).status).toBe(202);
      forms.advance(2 * minute);
    }
    const sixth = await send(await forms.draft({ applicant }));
    expect(sixth.status).toBe(429);
    expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(49 * 60);
  });

  it('goes to the sms channel if there is no email; if the platform has no text messages, that is 409 and does not count', async () => {
    // An applicant who signs in needs no channel for codes, so every platform allows the creation of this form.
    const id = await forms.draft({ as: 'alice', applicant: textOnly });
    await forms.pool.query('UPDATE forms SET anonymous_applicant = true WHERE id = $1', [id]);
    const response = await send(id);
    expect(response).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:no-channel' } });
    expect(response.text).not.toContain('0109998');
    const { rowCount } = await forms.pool.query('SELECT FROM code_sends WHERE form_id = $1', [id]);
    expect(rowCount).toBe(0);
  });
});

describe('an applicant without an account whose only channel gets no codes', () => {
  const create = (as: 'intake' | 'clerk' = 'intake', channels: object[] = textOnly.channels) =>
    forms.ask('POST', '', { as, body: { definitionId: 'permit', applicant: { channels } } });

  it('gets 409 no-channel at create, once the notification service has said so or because CODE_CHANNELS does', async () => {
    await expect.poll(async () => (await create()).status).toBe(409);
    const before = await count();
    expect(await create()).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:no-channel' } });
    expect(await count()).toBe(before);
    expect((await create('clerk')).status).toBe(201);
    const both = [...textOnly.channels, { channel: 'email', address: 'both@example.org' }];
    expect((await create('intake', both)).status).toBe(201);
  });

  async function count(): Promise<number> {
    const { rows } = await forms.pool.query<{ count: number }>('SELECT count(*)::int AS count FROM forms');
    return rows[0]?.count ?? 0;
  }
});

describe('the header X-Form-Code', () => {
  it('takes precedence over the query parameter', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    const headers = { 'x-form-code': code };
    expect((await forms.ask('GET', `/${id}/data?code=WRONG1`, { as: 'intake', headers })).status).toBe(200);
  });
});
