// Searches for codes, addresses and form data in every table of both databases, the logs of both services at level
// trace, events, metrics, errors, and URLs of calls. Also tests what remains after a form is deleted, and how many
// wrong codes a caller may try.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureLog } from '../support/captured-log.ts';
import { dumpDatabase, placesOf, tells } from '../support/database-dump.ts';
import { codeFor, draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { permit } from '../support/forms.ts';
import { call } from '../support/platform.ts';
import { until } from '../support/until.ts';

const platformLog = captureLog('trace');
const minute = 60_000;
let world: FormWorld;
let forms: FormReplica;
let other: FormReplica;
let moved = 0;
beforeAll(async () => {
  world = await startFormWorld({ log: platformLog });
  const clock = () => new Date(Date.now() + moved);
  [forms, other] = await Promise.all([world.start({ clock }), world.start({ clock })]);
});
afterAll(() => world.close());

const sendCode = (id: string) => forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
const readWith = (id: string, code: string, replica = forms, as: 'intake' | 'otherIntake' = 'intake') =>
  replica.ask('GET', `/${id}/data`, { as, headers: { 'x-form-code': code } });

async function sentCode(id: string, address: string): Promise<string> {
  const seen = new Set(world.platform.mailbox.messages().map((message) => message.id));
  expect((await sendCode(id)).status).toBe(202);
  return codeFor(world.platform, address, seen);
}

async function expireCodes(): Promise<void> {
  await world.platformPool.query("UPDATE codes SET expires = expires - interval '1 hour'");
}

describe('a code', () => {
  it('that is wrong, of another form, expired or used gets 403', async () => {
    const [address, otherAddress] = [`${randomUUID()}@example.org`, `${randomUUID()}@example.org`];
    const [id, otherId] = [await draft(forms, address), await draft(forms, otherAddress)];
    const [code, otherCode] = [await sentCode(id, address), await sentCode(otherId, otherAddress)];
    expect((await readWith(id, 'WRONGCODE')).status).toBe(403);
    expect((await readWith(id, otherCode)).status).toBe(403);
    await expireCodes();
    expect((await readWith(id, code)).status).toBe(403);
    moved += 2 * minute;
    const fresh = await sentCode(id, address);
    expect((await readWith(id, fresh)).status).toBe(200);
    expect((await readWith(id, fresh, other, 'otherIntake')).status).toBe(403);
    moved += 30 * minute;
    expect((await readWith(id, fresh)).status).toBe(403);
  });

  it('cannot be guessed by requesting new codes: after five wrong codes even the right one gets 429 at every replica', async () => {
    const address = `${randomUUID()}@example.org`;
    const id = await draft(forms, address);
    await sentCode(id, address);
    for (let nth = 0; nth < 5; nth += 1) {
      if (nth === 3) {
        moved += 2 * minute;
        await sentCode(id, address);
      }
      expect((await readWith(id, `WRONG${nth}`, nth % 2 ? forms : other)).status).toBe(403);
    }
    moved += 2 * minute;
    const right = await sentCode(id, address);
    expect((await readWith(id, 'WRONG6')).status).toBe(429);
    expect((await readWith(id, right, other)).status).toBe(429);
  });

  it('cannot be guessed in parallel: of 50 concurrent guesses at two replicas at most five are checked', async () => {
    const address = `${randomUUID()}@example.org`;
    const id = await draft(forms, address);
    await sentCode(id, address);
    const before = world.notifications.exchanges.length;
    const guesses = Array.from({ length: 50 }, (_, nth) => readWith(id, `GUESS${nth}`, nth % 2 ? forms : other));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    const checks = world.notifications.exchanges.slice(before).filter(({ body }) => body.includes('check-code'));
    expect(checks.length).toBeLessThanOrEqual(5);
    expect(statuses.filter((status) => status === 403)).toHaveLength(checks.length);
    expect(new Set(statuses)).toEqual(new Set([403, 429]));
  });
});

describe('the personal data of a form', () => {
  const address = `canary-${randomUUID()}@example.org`;
  const phone = '+15550104477';
  const name = 'Canaria Canaryson';
  const fieldValue = `canary-field-${randomUUID()}`;
  const lateFieldValue = `canary-late-${randomUUID()}`;
  const fileName = `canary-file-${randomUUID()}.pdf`;
  const wrongCode = 'CANARYWRONGCODE';
  const file = 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a553';
  const applicant = {
    addressAs: name,
    channels: [
      { channel: 'sms', address: phone },
      { channel: 'email', address },
    ],
  };
  let id = '';
  let codes: string[] = [];
  const put = (body: unknown, query = '') => forms.ask('PUT', `/${id}/data${query}`, { as: 'intake', body });
  const submit = () => forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'submit' } });

  /** Creates, fills and submits a form, with failures of every kind, and waits until its events are delivered. */
  beforeAll(async () => {
    const created = await forms.ask('POST', '', { as: 'intake', body: { definitionId: permit.id, applicant } });
    expect(created.status).toBe(201);
    id = (created.body as { id: string }).id;
    await drained(world.pool);
    await makeClientMistakes();
    const first = await sentCode(id, address);
    codes = [first];
    expect((await forms.ask('GET', `/${id}/data?code=${first}`, { as: 'intake' })).status).toBe(200);
    expect((await forms.ask('GET', `/${id}/data?code=${wrongCode}`, { as: 'intake' })).status).toBe(403);
    expect((await readWith(id, `${wrongCode}2`)).status).toBe(403);
    moved += 2 * minute;
    codes.push(await sentCode(id, address));
    await breakTheNotificationService();
    expect((await put({ data: { name: fieldValue, more: [fieldValue] }, files: { [fileName]: file } })).status).toBe(
      200,
    );
    await breakPostgres();
    await world.events.shut();
    expect((await submit()).status).toBe(200);
    await sleep(200);
    await world.events.open();
    moved += minute;
    await drained(world.pool);
    expect((await forms.ask('POST', `/${id}`, { as: 'admin', body: { operation: 'to-draft' } })).status).toBe(200);
    expect((await put({ data: { name: lateFieldValue }, files: {} })).status).toBe(200);
    expect((await submit()).status).toBe(200);
    await settled();
  });

  async function makeClientMistakes(): Promise<void> {
    const wrongType = { data: { name: { [fieldValue]: fieldValue } }, files: {} };
    expect((await put(wrongType, '?validate=true')).status).toBe(200);
    expect((await submit()).status).toBe(400);
    expect((await put({ data: fieldValue, files: { [fileName]: fieldValue } })).status).toBe(400);
    expect((await put({ data: {}, files: {}, [fieldValue]: 1 }, `?validate=${fieldValue}`)).status).toBe(400);
    expect((await put(`{"data":{"name":"${fieldValue}"`)).status).toBe(400);
    expect((await put(`{"data":{"name":"${fieldValue}\\u0000"},"files":{}}`)).status).toBe(400);
    const bad = { addressAs: name, channels: [{ channel: 'email', address: `${address} ${address}` }] };
    const create = (body: unknown) => forms.ask('POST', '', { as: 'intake', body });
    expect((await create({ definitionId: permit.id, applicant: bad })).status).toBe(400);
    expect((await create({ definitionId: 'unknown', applicant })).status).toBe(404);
    expect((await forms.ask('PATCH', `/${id}?code=${wrongCode}`, { as: 'intake', body: { fieldValue } })).status).toBe(
      405,
    );
    expect((await forms.ask('GET', `/${id}/nothing?code=${wrongCode}`, { as: 'intake' })).status).toBe(404);
    expect((await forms.ask('GET', `/${id}/data?code=${wrongCode.repeat(9)}`, { as: 'intake' })).status).toBe(400);
  }

  async function breakTheNotificationService(): Promise<void> {
    await world.notifications.shut();
    expect((await readWith(id, codes.at(-1) ?? '')).status).toBe(502);
    await world.notifications.open();
    expect((await readWith(id, codes.at(-1) ?? '')).status).toBe(200);
  }

  /** Interrupts a save: the statement of the save is cancelled while it waits for the form's row. */
  async function breakPostgres(): Promise<void> {
    const client = await world.pool.connect();
    await client.query('BEGIN');
    await client.query('SELECT FROM forms WHERE id = $1 FOR UPDATE', [id]);
    const failed = put({ data: { name: fieldValue }, files: {} });
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until('the save that waits', async () => (await world.pool.query(terminate)).rowCount === 1);
    expect((await failed).status).toBe(503);
    await client.query('ROLLBACK');
    client.release();
  }

  /** Resolves when all outbox rows are delivered and the platform has sent its mails. */
  async function settled(): Promise<void> {
    await drained(world.pool);
    await mailsSent();
  }

  async function mailsSent(): Promise<void> {
    const sql = 'SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM deliveries) AS left';
    await until('mails', async () => (await world.platformPool.query<{ left: string }>(sql)).rows[0]?.left === '0');
  }

  const secrets = () => ({ address, phone, name, fieldValue, lateFieldValue, fileName });
  const allCodes = () => [...codes, wrongCode];
  const tokens = () => [world.token('intake'), world.token('admin')];

  it('is in no log line of the form service and the platform server, even at level trace; neither is a code or a token', () => {
    for (const [service, text] of Object.entries({
      forms: forms.logText(),
      other: other.logText(),
      platform: platformLog.text(),
    })) {
      expect(text.length).toBeGreaterThan(100);
      for (const secret of [...Object.values(secrets()), ...allCodes(), ...tokens()])
        expect([service, secret, tells(text, secret)]).toEqual([service, secret, false]);
    }
  });

  it('is in events only with the name by which the applicant is addressed; no event contains a code', () => {
    const events = world.events.exchanges.filter(({ body }) => body.includes(id));
    expect(events.length).toBeGreaterThanOrEqual(4);
    const { name: _addressedAs, ...rest } = secrets();
    for (const secret of [...Object.values(rest), ...allCodes()])
      expect(events.filter(({ body }) => tells(body, secret))).toEqual([]);
  });

  it('is in no error response; neither is a code', () => {
    const errors = world.answers.filter(({ status }) => status >= 400);
    expect(errors.length).toBeGreaterThan(15);
    // Errors contain JSON pointers, which contain the member names that the client sent. The file name is one of
    // these names, so it is not searched for.
    const { fileName: _inPointers, fieldValue: value, ...rest } = secrets();
    for (const secret of [...Object.values(rest), ...allCodes()])
      expect(errors.filter(({ text }) => tells(text, secret))).toEqual([]);
    const details = errors.map(({ body }) => JSON.stringify(body, withoutPlaces));
    expect(details.filter((text) => tells(text, value))).toEqual([]);
  });

  it('is in no metric and in no URL of a call to the platform; neither is a code', async () => {
    const targets = [...world.events.exchanges, ...world.notifications.exchanges]
      .map(({ target }) => target)
      .join('\n');
    const pages = await Promise.all(
      [forms.metricsUrl, world.platform.metricsUrl].map(async (url) => (await call(`${url}/metrics`)).text),
    );
    for (const text of [targets, ...pages])
      for (const secret of [...Object.values(secrets()), ...allCodes(), ...tokens()])
        expect([secret, tells(text, secret)]).toEqual([secret, false]);
  });

  it('is only in the database columns that need it; codes and tokens are in none', async () => {
    const dumps = [await dumpDatabase(world.pool), await dumpDatabase(world.platformPool)];
    const places = (secret: string) => dumps.flatMap((dump) => placesOf(dump, secret));
    expect(places(address).sort()).toEqual([
      'public.codes.address',
      'public.forms.applicant',
      'public.subscriber_channels.address',
    ]);
    expect(places(phone).sort()).toEqual(['public.forms.applicant', 'public.subscriber_channels.address']);
    expect(places(name).sort()).toEqual(['public.forms.applicant', 'public.subscribers.address_as']);
    expect(places(lateFieldValue)).toEqual(['public.forms.data']);
    for (const overwritten of [fieldValue, fileName]) expect(places(overwritten)).toEqual([]);
    for (const secret of [...allCodes(), ...tokens()]) expect(places(secret)).toEqual([]);
  });

  it('is in no row, job, subscription, subscriber or log line after the form is deleted', async () => {
    moved += 2 * minute;
    expect((await forms.ask('POST', `/${id}`, { as: 'admin', body: { operation: 'to-draft' } })).status).toBe(200);
    expect((await put({ data: { name: lateFieldValue }, files: { [fileName]: file } })).status).toBe(200);
    codes.push(await sentCode(id, address));
    expect((await readWith(id, codes.at(-1) ?? '')).status).toBe(200);
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    const sql = "SELECT FROM outbox WHERE form_id = $1 AND kind = 'form-deleted' AND accepted IS NOT NULL";
    await expect.poll(async () => (await world.pool.query(sql, [id])).rowCount).toBe(1);
    // Waits for the mails, because a subscriber is kept while a mail is being sent.
    await mailsSent();
    moved += 15 * minute;
    await settled();
    const dumps = [await dumpDatabase(world.pool), await dumpDatabase(world.platformPool)];
    for (const secret of [...Object.values(secrets()), ...allCodes()]) {
      expect([secret, ...dumps.flatMap((dump) => placesOf(dump, secret))]).toEqual([secret]);
      for (const text of [forms.logText(), other.logText(), platformLog.text()])
        expect(tells(text, secret)).toBe(false);
    }
    const urn = world.platform.access.urns.form(id);
    const { rowCount } = await world.platformPool.query('SELECT FROM subscribers WHERE user_id = $1', [urn]);
    expect(rowCount).toBe(0);
    expect((await forms.ask('GET', `/${id}/data`, { as: 'admin' })).status).toBe(410);
  });
});

function withoutPlaces(key: string, value: unknown): unknown {
  return ['pointer', 'instance', 'detail', 'errorMessage'].includes(key) && typeof value === 'string'
    ? value.replace(/\/[^\s:]+/g, '')
    : value;
}
