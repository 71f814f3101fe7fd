// Tests the rules of codes over HTTP: their mails, their verification by the platform server's notification service,
// and their budgets.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumpDatabase, placesOf } from '../../../test/support/database-dump.ts';
import { anonymous, startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { startTestMailbox, type TestMailbox } from '../../../test/support/mailbox.ts';
import type { Answered } from '../../../test/support/platform.ts';

const minute = 60_000;

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
/** The mailbox that a test starts after it has closed the first mailbox. */
let replaced: TestMailbox | undefined;
afterAll(async () => {
  await forms.close();
  await replaced?.close();
});

const send = (id: string, as: 'intake' | 'otherIntake' | 'admin' | 'alice' | 'clerk' = 'intake') =>
  forms.ask('POST', `/${id}`, { as, body: { operation: 'send-code' } });
const read = (id: string, code: string, as: 'intake' | 'otherIntake' = 'intake') =>
  forms.ask('GET', `/${id}/data`, { as, headers: { 'x-form-code': code } });
const wrong = (nth: number) => `WRONG${nth}`;

async function spend(id: string, tries = 5): Promise<Answered[]> {
  const responses: Answered[] = [];
  for (let nth = 0; nth < tries; nth += 1) responses.push(await read(id, wrong(nth)));
  return responses;
}

it('a code in the query counts also if the header for codes is empty', async () => {
  const id = await forms.draft();
  const code = await forms.code(id);
  const headers = { 'x-form-code': ' ' };
  expect((await forms.ask('GET', `/${id}/data`, { as: 'intake', headers })).body).toMatchObject({
    type: expect.stringContaining('code-required'),
  });
  expect((await forms.ask('GET', `/${id}/data?code=${code}`, { as: 'intake', headers })).status).toBe(200);
});

it.each([
  ['in lower case', (code: string) => code.toLowerCase()],
  ['with a space and a hyphen', (code: string) => ` ${code.slice(0, 2)} ${code.slice(2, 4)}-${code.slice(4)}`],
])('a code %s works, and its read session too, because people and their devices write codes so', async (_, write) => {
  const id = await forms.draft();
  const code = await forms.code(id);
  expect((await read(id, write(code))).status).toBe(200);
  expect((await read(id, code)).status).toBe(200);
  const query = new URLSearchParams({ code: write(code) });
  expect((await forms.ask('GET', `/${id}/data?${query}`, { as: 'intake' })).status).toBe(200);
});

describe('send-code', () => {
  it('returns 202 with id, sent, channel and expires, never the address or the code', async () => {
    const id = await forms.draft({ applicant: anonymous('only-here@example.org') });
    const { status, body, text } = await send(id);
    expect(status).toBe(202);
    expect(body).toEqual({ id, sent: true, channel: 'email', expires: expect.stringMatching(/Z$/) });
    expect(text).not.toContain('only-here');
    const message = await forms.platform.mailbox.waitFor(
      ({ to, text }) => to.includes('only-here@example.org') && /code/i.test(text),
    );
    const code = /^\s*([A-Z0-9]{6,})\s*$/m.exec(message.text)?.[1];
    expect(code).toBeDefined();
    expect(text).not.toContain(code);
  });

  it('goes to the first email channel, also if another channel precedes it', async () => {
    const id = await forms.draft({
      applicant: {
        channels: [
          { channel: 'sms', address: '+15550109999' },
          { channel: 'email', address: 'first-email@example.org' },
          { channel: 'email', address: 'second-email@example.org' },
        ],
      },
    });
    expect((await send(id)).body).toMatchObject({ channel: 'email' });
    await forms.platform.mailbox.waitFor(
      ({ to, text }) => to.includes('first-email@example.org') && /code/i.test(text),
    );
  });

  it.each(['admin', 'alice', 'clerk'] as const)('is only for an intake application: 403 for %s', async (as) => {
    expect((await send(await forms.draft(), as)).status).toBe(403);
  });

  it('is also allowed to an intake application that did not create the form', async () => {
    expect((await send(await forms.draft(), 'otherIntake')).status).toBe(202);
  });

  it.each([
    ['Locked', 'form-locked'],
    ['Submitted', 'form-not-draft'],
    ['Archived', 'form-not-draft'],
  ])('of a form that is %s returns 409 (%s)', async (status, type) => {
    const id = await forms.draft();
    await forms.setStatus(id, status);
    const response = await send(id);
    expect(response.status).toBe(409);
    expect(response.body).toMatchObject({ type: `urn:formgate:problem:${type}` });
  });

  it('returns 409 if the applicant has no channel', async () => {
    const id = await forms.draft();
    await forms.pool.query(`UPDATE forms SET applicant = '{"channels": []}' WHERE id = $1`, [id]);
    const response = await send(id);
    expect(response.status).toBe(409);
    expect(response.body).toMatchObject({ type: 'urn:formgate:problem:no-channel' });
  });

  it('does not set lastAccessed', async () => {
    const id = await forms.draft();
    const before = await forms.ask('GET', `/${id}`, { as: 'admin' });
    await send(id);
    expect((await forms.ask('GET', `/${id}`, { as: 'admin' })).body).toEqual(before.body);
  });
});

it('a code that was sent is 202 even if the history cannot be written', async () => {
  const id = await forms.draft();
  await forms.pool.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OF history ON forms FOR EACH ROW WHEN (OLD.id = '${id}') EXECUTE FUNCTION refuse()`);
  expect((await send(id)).status).toBe(202);
  await forms.pool.query('DROP TRIGGER refuse ON forms; DROP FUNCTION refuse');
  expect(forms.log.lines().filter(({ msg }) => msg === 'sent code not recorded in the history')).toHaveLength(1);
});

describe('the limit of sent codes', () => {
  it('is one a minute for a form: then 429 with Retry-After', async () => {
    const id = await forms.draft();
    expect((await send(id)).status).toBe(202);
    const second = await send(id);
    expect(second.status).toBe(429);
    const wait = Number(second.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(50);
    expect(wait).toBeLessThanOrEqual(60);
    forms.advance(wait * 1000);
    expect((await send(id)).status).toBe(202);
  });

  it('is five an hour for a form, until the first of the five is an hour old', async () => {
    const id = await forms.draft();
    for (let nth = 0; nth < 5; nth += 1) {
      expect((await send(id)).status).toBe(202);
      forms.advance(2 * minute);
    }
    const sixth = await send(id);
    expect(sixth.status).toBe(429);
    const wait = Number(sixth.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(49 * 60);
    expect(wait).toBeLessThanOrEqual(50 * 60);
    forms.advance(wait * 1000);
    expect((await send(id)).status).toBe(202);
  });

  it('counts all forms of an address', async () => {
    const applicant = anonymous();
    const [one, other] = [await forms.draft({ applicant }), await forms.draft({ applicant })];
    expect((await send(one)).status).toBe(202);
    expect((await send(other)).status).toBe(429);
  });

  it('admits one of ten concurrent requests', async () => {
    const id = await forms.draft();
    const responses = await Promise.all(Array.from({ length: 10 }, () => send(id)));
    expect(responses.map(({ status }) => status).sort()).toEqual([202, ...Array<number>(9).fill(429)]);
  });

  it('does not count codes that could not be sent', async () => {
    const id = await forms.draft();
    const { port } = forms.platform.mailbox;
    await expect
      .poll(
        async () =>
          (await forms.pool.query('SELECT FROM outbox WHERE form_id = $1 AND accepted IS NULL', [id])).rowCount,
      )
      .toBe(0);
    await forms.platform.mailbox.close();
    const failed = await send(id);
    expect(failed.status).toBe(502);
    expect(failed.headers.get('content-type')).toContain('problem+json');
    replaced = await startTestMailbox({ port });
    forms.platform.mailbox = replaced;
    const { rowCount } = await forms.pool.query('SELECT FROM code_sends WHERE form_id = $1', [id]);
    expect(rowCount).toBe(0);
  });
});

describe('a code', () => {
  it('opens the form data, sent in the header X-Form-Code', async () => {
    const id = await forms.draft();
    expect((await read(id, await forms.code(id))).status).toBe(200);
  });

  it('opens the form data, sent in the query parameter code', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    expect((await forms.ask('GET', `/${id}/data?code=${code}`, { as: 'intake' })).status).toBe(200);
  });

  it('is required of an intake application: 400 without one and with an empty one, which is never checked', async () => {
    const id = await forms.draft();
    await forms.code(id);
    for (const path of ['', '?code=', '?code=%20'])
      expect(await forms.ask('GET', `/${id}/data${path}`, { as: 'intake' })).toMatchObject({
        status: 400,
        body: { type: 'urn:formgate:problem:code-required' },
      });
    expect((await read(id, '')).status).toBe(400);
    const { rowCount } = await forms.pool.query('SELECT FROM code_attempts WHERE form_id = $1', [id]);
    expect(rowCount).toBe(0);
  });

  it('that is wrong is 403', async () => {
    const id = await forms.draft();
    await forms.code(id);
    expect(await read(id, wrong(1))).toMatchObject({
      status: 403,
      body: { type: 'urn:formgate:problem:invalid-code' },
    });
  });

  it('that was never sent is 403', async () => {
    expect((await read(await forms.draft(), 'ABCDEF')).status).toBe(403);
  });

  it('that has expired is 403', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    await expireCodes();
    expect((await read(id, code)).status).toBe(403);
  });

  it('of another form is 403', async () => {
    const [one, other] = [await forms.draft(), await forms.draft()];
    await forms.code(one);
    const code = await forms.code(other);
    expect((await read(one, code)).status).toBe(403);
  });

  it('that a newer one has replaced is 403', async () => {
    const id = await forms.draft();
    const old = await forms.code(id);
    forms.advance(minute);
    const fresh = await forms.code(id);
    expect((await read(id, old)).status).toBe(403);
    expect((await read(id, fresh)).status).toBe(200);
  });

  it('keeps working for 30 minutes for the service account that used it, and no longer', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(200);
    forms.advance(30 * minute - 5_000);
    expect((await read(id, code)).status).toBe(200);
    forms.advance(5_000);
    expect((await read(id, code)).status).toBe(403);
  });

  it('that one service account has used is 403 for another', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(200);
    expect((await read(id, code, 'otherIntake')).status).toBe(403);
  });

  it('that was used is kept as an HMAC only', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(200);
    const { rows } = await forms.pool.query('SELECT code_hash FROM used_codes WHERE form_id = $1', [id]);
    expect(rows).toHaveLength(1);
    expect(rows[0].code_hash).toHaveLength(32);
    const dump = await dumpDatabase(forms.pool);
    expect(placesOf(dump, code).filter((place) => place.includes('used_codes'))).toEqual([]);
  });

  it('sent in twenty concurrent reads counts as one right code', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    const responses = await Promise.all(Array.from({ length: 20 }, () => read(id, code)));
    expect(responses.map(({ status }) => status)).toEqual(Array<number>(20).fill(200));
    const { rowCount } = await forms.pool.query('SELECT FROM code_attempts WHERE form_id = $1', [id]);
    expect(rowCount).toBe(0);
  });

  it('that is too long is 400', async () => {
    expect((await read(await forms.draft(), 'X'.repeat(65))).status).toBe(400);
  });
});

describe('the budget of wrong codes', () => {
  it('is five in an hour for a form; then 429 with Retry-After, the right code included', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    expect((await spend(id)).map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    const sixth = await read(id, code);
    expect(sixth.status).toBe(429);
    expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(59 * 60);
  });

  it('is not reset by a resend: the sixth attempt is 429, also with the new code', async () => {
    const id = await forms.draft();
    await forms.code(id);
    await spend(id);
    forms.advance(2 * minute);
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(429);
  });

  it('is available again after an hour', async () => {
    const id = await forms.draft();
    await spend(id);
    forms.advance(60 * minute);
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(200);
  });

  it('is not used up by a right code', async () => {
    const id = await forms.draft();
    await spend(id, 4);
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(200);
    expect((await read(id, code)).status).toBe(200);
    expect((await read(id, wrong(9))).status).toBe(403);
    expect((await read(id, wrong(10))).status).toBe(429);
  });

  it('counts all forms of an address', async () => {
    const applicant = anonymous();
    const [one, other] = [await forms.draft({ applicant }), await forms.draft({ applicant })];
    await spend(one, 3);
    await spend(other, 2);
    const { status } = await read(await forms.draft({ applicant }), wrong(1));
    expect(status).toBe(429);
  });

  it('of an address outlives its form', async () => {
    const applicant = anonymous();
    const id = await forms.draft({ applicant });
    await spend(id);
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    expect((await read(await forms.draft({ applicant }), wrong(1))).status).toBe(429);
  });

  it('when spent, also ends sessions that codes have opened', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(200);
    await spend(id);
    expect((await read(id, code)).status).toBe(429);
  });

  it('is kept against twenty concurrent codes', async () => {
    const id = await forms.draft();
    await forms.code(id);
    const responses = await Promise.all(Array.from({ length: 20 }, (_, nth) => read(id, wrong(nth))));
    const statuses = responses.map(({ status }) => status);
    expect(statuses.filter((status) => status === 403).length).toBeLessThanOrEqual(5);
    expect(new Set(statuses)).toEqual(new Set([403, 429]));
    const { rows } = await forms.pool.query('SELECT count(*)::int AS tries FROM code_attempts WHERE form_id = $1', [
      id,
    ]);
    expect(rows[0].tries).toBeLessThanOrEqual(5);
  });

  it('stores codes and addresses as HMACs only', async () => {
    const id = await forms.draft({ applicant: anonymous('budget-canary@example.org') });
    await read(id, 'CANARYCODE');
    const { rows } = await forms.pool.query<{ kept: string }>(
      "SELECT string_agg(a::text, ' ') AS kept FROM code_attempts a",
    );
    expect(rows[0]?.kept).not.toContain('budget-canary');
    expect(rows[0]?.kept).not.toContain(Buffer.from('CANARYCODE').toString('hex'));
    expect(rows[0]?.kept).not.toContain('CANARYCODE');
  });
});

describe('secrets', () => {
  it('appear in no log line: codes in header and query, addresses, form data', async () => {
    const id = await forms.draft({ applicant: anonymous('log-canary@example.org') });
    const code = await forms.code(id);
    await forms.ask('GET', `/${id}/data?code=${code}`, { as: 'intake' });
    await forms.ask('GET', `/${id}/data?code=LOGCANARY`, { as: 'intake' });
    await forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'data-canary' }, files: {} } });
    const log = forms.log.text();
    for (const canary of [code, 'LOGCANARY', 'log-canary', 'data-canary', forms.token('intake')])
      expect(log).not.toContain(canary);
  });
});

/** Moves the expiry of the sent codes into the past, because the platform server's clock cannot be set. */
async function expireCodes(): Promise<void> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: forms.platform.databaseUrl });
  await client.connect();
  await client.query("UPDATE codes SET expires = expires - interval '1 hour'");
  await client.end();
}
