// Tests the creation of forms with form data, with and without an immediate submit, and the intake windows of a
// definition.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anonymous, permit, startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { call } from '../../../test/support/platform.ts';
import { roomInWindow } from '../../../test/support/rate-window.ts';
import { sendRaw } from '../../../test/support/raw-http.ts';

const hour = 3_600_000;
const day = 24 * hour;
const file = 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a553';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

interface CreateOptions {
  as?: Who;
  definitionId?: string;
  key?: string;
  body?: object;
}

const create = ({ as = 'intake', definitionId = 'permit', key, body = {} }: CreateOptions = {}) =>
  forms.ask('POST', '', {
    as,
    body: { definitionId, ...(as.toLowerCase().includes('intake') && { applicant: anonymous() }), ...body },
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });
const idOf = ({ body }: { body: unknown }) => (body as { id: string }).id;
const stored = async (id: string) => (await forms.ask('GET', `/${id}/data`, { as: 'admin' })).body;
async function count(): Promise<number> {
  const sql = `SELECT (SELECT count(*) FROM forms) + (SELECT count(*) FROM outbox) + (SELECT count(*) FROM idempotency_keys)
    AS count`;
  return Number((await forms.pool.query<{ count: string }>(sql)).rows[0]?.count);
}
const eventsOf = async (id: string) => {
  const sql = 'SELECT kind FROM outbox WHERE form_id = $1 ORDER BY sequence';
  return (await forms.pool.query<{ kind: string }>(sql, [id])).rows.map(({ kind }) => kind);
};
const typeOf = ({ body }: { body: unknown }) => (body as { type: string }).type.replace('urn:formgate:problem:', '');

describe('form data in a create', () => {
  it.each(['intake', 'alice', 'clerk'] as const)('is stored as it was sent by %s', async (as) => {
    const created = await create({ as, body: { data: { name: 'Ana', n: 1.5 }, files: { 'plan.pdf': file } } });
    expect(created).toMatchObject({ status: 201, body: { status: 'Draft' } });
    expect(await stored(idOf(created))).toEqual({ data: { name: 'Ana', n: 1.5 }, files: { 'plan.pdf': file } });
    expect(await eventsOf(idOf(created))).toContain('form-created');
  });

  it('may lack data or files, and is not validated without submit', async () => {
    expect(await stored(idOf(await create({ body: { data: { age: -1 } } })))).toEqual({ data: { age: -1 }, files: {} });
    expect(await stored(idOf(await create({ body: { files: { a: file } } })))).toEqual({
      data: {},
      files: { a: file },
    });
    expect(await stored(idOf(await create({ body: { submit: false } })))).toEqual({ data: {}, files: {} });
  });

  it.each([
    ['an array as data', { data: [] }, '/data'],
    ['a file that is no URN', { files: { a: 'x' } }, '/files/a'],
    ['a text as submit', { submit: 'yes' }, '/submit'],
    ['dryRun', { dryRun: true }, '/dryRun'],
  ])('with %s is 400 and stores nothing', async (_name, body, pointer) => {
    const before = await count();
    expect(await create({ body, key: randomUUID() })).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
    expect(await count()).toBe(before);
  });

  it('does not change the response, which has exactly six members', async () => {
    const { body } = await create({ body: { data: { name: 'Ana' }, files: {}, submit: true } });
    expect(Object.keys(body as object)).toEqual([
      ...['id', 'definitionId', 'status', 'created', 'createdBy', 'lastAccessed'],
    ]);
  });

  it('is judged after access: a caller who may not create gets 403, and learns nothing about the data', async () => {
    const invalid = { data: {}, submit: true };
    expect((await create({ as: 'nobody', body: invalid })).status).toBe(403);
    expect((await create({ as: 'assessor', body: invalid })).status).toBe(403);
    expect((await create({ definitionId: 'unknown', body: invalid })).status).toBe(404);
  });
});

describe('a create with submit', () => {
  const valid = { data: { name: 'Ana' }, submit: true };

  it.each(['intake', 'alice', 'clerk'] as const)('submits at once for %s, with one event', async (as) => {
    const created = await create({ as, body: valid });
    expect(created).toMatchObject({ status: 201, body: { status: 'Submitted' } });
    const id = idOf(created);
    const read = await forms.ask('GET', `/${id}`, { as: 'admin' });
    const { created: at } = created.body as { created: string };
    expect(read.body).toMatchObject({ status: 'Submitted', submitted: at, created: at });
    expect((await eventsOf(id)).filter((kind) => kind !== 'subscribe')).toEqual(['form-submitted']);
  });

  it('is form.submit in the audit trail, also if it is refused; a create without submit is form.create', async () => {
    const eventOf = async (body: object) => {
      const before = forms.log.lines().length;
      const { id } = (await create({ body })).body as { id?: string };
      const audited = () =>
        forms.log
          .lines()
          .slice(before)
          .flatMap(({ audit }) => audit ?? []);
      await expect.poll(audited).toHaveLength(1);
      return { id, audit: audited()[0] };
    };
    const submitted = await eventOf(valid);
    expect(submitted.audit).toMatchObject({
      ...{ action: 'form.submit', outcome: 'succeeded' },
      object: { type: 'form', id: submitted.id },
    });
    const refused = await eventOf({ data: {}, submit: true });
    expect(refused.audit).toMatchObject({ action: 'form.submit', outcome: 'refused' });
    const invalid = await eventOf({ data: 'text', submit: true });
    expect(invalid.audit).toMatchObject({ action: 'form.create', outcome: 'refused' });
    const draft = await eventOf({ data: {} });
    expect(draft.audit).toMatchObject({ action: 'form.create', object: { type: 'form', id: draft.id } });
  });

  it('notifies the applicant', async () => {
    const address = `${randomUUID()}@example.org`;
    await create({ body: { ...valid, applicant: anonymous(address) } });
    await forms.platform.mailbox.waitFor(
      ({ to, subject }) => to.includes(address) && /received|submitted/i.test(subject),
    );
  });

  it('whose data is invalid is 400 with pointers, stores nothing, and can be repeated', async () => {
    const [before, key] = [await count(), randomUUID()];
    const body = { data: { age: -1 }, submit: true };
    const refused = await create({ body, key });
    expect(refused.status).toBe(400);
    const { errors } = refused.body as { errors: { pointer: string }[] };
    expect(errors.map(({ pointer }) => pointer).toSorted()).toEqual(['/data/age', '/data/name']);
    expect(await create({ body: { submit: true } })).toMatchObject({ status: 400 });
    expect(await count()).toBe(before);
    expect((await create({ body: valid, key })).status).toBe(201);
  });

  it('counts for oneFormPerApplicant, and an invalid one does not', async () => {
    await forms.define({ ...permit, id: 'once', oneFormPerApplicant: true });
    expect((await create({ as: 'bob', definitionId: 'once', body: { submit: true } })).status).toBe(400);
    const first = await create({ as: 'bob', definitionId: 'once', body: valid });
    expect(first.status).toBe(201);
    const second = await create({ as: 'bob', definitionId: 'once', body: valid });
    expect(second).toMatchObject({ status: 409, body: { formId: idOf(first) } });
  });

  it('is done once for an idempotency key, which covers data, files and submit', async () => {
    const key = randomUUID();
    const body = { ...valid, files: { a: file }, applicant: anonymous() };
    const responses = await Promise.all(Array.from({ length: 5 }, () => create({ body, key })));
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(responses[0]?.status).toBe(201);
    for (const other of [{ data: { name: 'Bea' } }, { files: {} }, { submit: false }])
      expect((await create({ body: { ...body, ...other }, key })).status).toBe(422);
  });

  it('returns the first response to a repeat, also if the definition has changed since', async () => {
    const id = 'changing';
    await forms.define({ ...permit, id });
    const [key, body] = [randomUUID(), { ...valid, applicant: anonymous() }];
    const first = await create({ definitionId: id, body, key });
    await forms.define({ ...permit, id, dataSchema: { type: 'object', required: ['more'] } });
    expect((await create({ definitionId: id, body, key })).text).toBe(first.text);
    expect((await create({ definitionId: id, body, key: randomUUID() })).status).toBe(400);
  });

  it.each<[string, number, object]>([
    ['permits no applicants without an account', 403, { anonymousApply: false }],
    ['cannot be used', 409, { dataSchema: { type: 'nothing' } }],
  ])('returns the first response to a repeat, also if the definition now %s', async (_what, status, change) => {
    const id = `changed-${status}`;
    await forms.define({ ...permit, id });
    const [key, body] = [randomUUID(), { ...valid, applicant: anonymous() }];
    const first = await create({ definitionId: id, body, key });
    await forms.define({ ...permit, id, ...change });
    expect((await create({ definitionId: id, body, key })).text).toBe(first.text);
    expect((await create({ definitionId: id, body, key: randomUUID() })).status).toBe(status);
    expect((await create({ definitionId: id, body: { ...body, submit: false }, key })).status).toBe(422);
  });
});

describe('a large create', () => {
  const large = { data: { name: 'x'.repeat(20_000) } };

  it('may be as large as a save', async () => {
    expect((await create({ body: { data: { name: 'x'.repeat(900_000) } } })).status).toBe(201);
    expect((await create({ body: { data: { name: 'x'.repeat(1_100_000) } } })).status).toBe(413);
  });

  it('is limited for each person, before it is read; small ones and intake applications are not', async () => {
    const { port, host } = new URL(forms.url);
    const head = [
      ...['POST /form/v1/forms HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${forms.token('nobody')}`],
      'Content-Type: application/json',
    ];
    const statuses: number[] = [];
    await roomInWindow(60_000, 20_000, forms.now().getTime());
    for (let nth = 0; nth < 31; nth += 1) statuses.push((await create({ as: 'nobody', body: large })).status);
    expect(new Set(statuses.slice(0, 30))).toEqual(new Set([403]));
    expect(statuses[30]).toBe(429);
    for (const other of [
      'Content-Length: 900000',
      'Transfer-Encoding: chunked',
      'Content-Length: 99\r\nContent-Encoding: br',
    ])
      expect((await sendRaw(Number(port), `${[...head, other].join('\r\n')}\r\n\r\n`)).status).toBe(429);
    expect((await create({ as: 'nobody' })).status).toBe(403);
    expect((await create({ as: 'alice', body: large })).status).toBe(201);
    for (let nth = 0; nth < 31; nth += 1) expect((await create({ body: large })).status).toBe(201);
  });
});

describe('an intake window', () => {
  const submit = (id: string, as: Who = 'intake', key?: string) =>
    forms.ask('POST', `/${id}`, {
      as,
      body: { operation: 'submit' },
      headers: key === undefined ? {} : { 'idempotency-key': key },
    });
  async function problems(changes: object): Promise<unknown> {
    const url = `${forms.url}/form/v1/definitions/check`;
    const body = { ...permit, ...changes };
    const checked = await call(url, { method: 'POST', token: forms.token('admin'), body });
    return (checked.body as { problems: unknown }).problems;
  }
  /**
   * Configures a definition with these windows, and returns its id. The times are in milliseconds, counted from the
   * moment when this function returns.
   */
  async function defined(...windows: { opens?: number; closes?: number }[]): Promise<string> {
    const id = `w-${randomUUID().slice(0, 8)}`;
    // `define` moves the clock forward by six minutes.
    const later = forms.now().getTime() + hour / 10;
    const at = (milliseconds: number) => new Date(later + milliseconds).toISOString();
    const intake = windows.map(({ opens, closes }) => ({
      ...(opens !== undefined && { opens: at(opens) }),
      ...(closes !== undefined && { closes: at(closes) }),
    }));
    await forms.define({ ...permit, id, intake: intake.length === 1 ? intake[0] : intake });
    return id;
  }

  it('admits creates and submits from its first moment and until its last', async () => {
    const definitionId = await defined({ opens: hour, closes: 3 * hour });
    expect(await create({ definitionId })).toMatchObject({ status: 409 });
    forms.advance(hour + 1_000);
    const created = await create({ definitionId, body: { data: { name: 'Ana' } } });
    expect(created.status).toBe(201);
    expect((await create({ definitionId, body: { data: { name: 'Ana' }, submit: true } })).status).toBe(201);
    expect((await submit(idOf(created))).status).toBe(200);
    forms.advance(2 * hour);
    expect(await create({ definitionId })).toMatchObject({ status: 409 });
  });

  it('outside it, a create is 409 with the dates, and stores nothing', async () => {
    const definitionId = await defined({ opens: hour, closes: day });
    const before = await count();
    for (const as of ['intake', 'alice'] as const) {
      const refused = await create({ as, definitionId, key: randomUUID() });
      expect(typeOf(refused)).toBe('intake-closed');
      const { opens, closes, detail } = refused.body as Record<'opens' | 'closes' | 'detail', string>;
      expect(Date.parse(opens) - forms.now().getTime()).toBeGreaterThan(hour - 60_000);
      expect(Date.parse(closes) - Date.parse(opens)).toBe(23 * hour);
      expect(detail).toContain(opens);
      expect(detail).toContain(closes);
    }
    expect(await count()).toBe(before);
  });

  it('names the next of several windows or, after the last, that one; a missing date is null', async () => {
    const definitionId = await defined(
      { closes: -day },
      { opens: hour, closes: 2 * hour },
      { opens: day, closes: 2 * day },
    );
    const dates = async () => {
      const { opens, closes } = (await create({ definitionId })).body as Record<'opens' | 'closes', string>;
      const from = forms.now().getTime();
      return [opens, closes].map((date) => date && Math.round((Date.parse(date) - from) / hour));
    };
    expect(await dates()).toEqual([1, 2]);
    forms.advance(1.25 * hour);
    expect((await create({ definitionId })).status).toBe(201);
    forms.advance(hour);
    expect(await dates()).toEqual([22, 46]);
    forms.advance(2 * day);
    expect(await dates()).toEqual([-26, -2]);
    const closed = (await create({ definitionId: await defined({ closes: -hour }) })).body;
    expect(closed).toMatchObject({ opens: null, closes: expect.any(String) });
  });

  it('that has closed refuses the submit of a draft with the dates; the draft can be saved, read and deleted', async () => {
    const definitionId = await defined({ closes: hour });
    const [draft, own] = [await forms.draft({ definitionId }), await forms.draft({ definitionId, as: 'alice' })];
    const body = { data: { name: 'Ana' }, files: {} };
    await forms.ask('PUT', `/${draft}/data`, { as: 'intake', body });
    await forms.ask('PUT', `/${own}/data`, { as: 'alice', body });
    forms.advance(hour + 60_000);
    const refused = await submit(draft);
    expect(refused).toMatchObject({ status: 409, body: { opens: null, closes: expect.any(String) } });
    expect(typeOf(refused)).toBe('intake-closed');
    expect((await submit(own, 'alice')).status).toBe(409);
    expect((await forms.ask('GET', `/${own}`, { as: 'alice' })).body).toMatchObject({
      ...{ status: 'Draft', lockOn: expect.any(String) },
    });
    expect((await forms.ask('PUT', `/${own}/data`, { as: 'alice', body })).status).toBe(200);
    expect((await forms.ask('DELETE', `/${own}`, { as: 'alice' })).status).toBe(204);
  });

  it('does not bind clerks, who enter what arrived in time', async () => {
    const definitionId = await defined({ closes: -hour });
    const created = await create({
      as: 'clerk',
      definitionId,
      body: { applicant: anonymous(), data: { name: 'Ana' } },
    });
    expect(created.status).toBe(201);
    expect((await submit(idOf(created), 'clerk')).status).toBe(200);
  });

  it('does not bind an applicant whose submitted form was returned', async () => {
    const definitionId = await defined({ closes: hour });
    const id = idOf(await create({ as: 'alice', definitionId, body: { data: { name: 'Ana' }, submit: true } }));
    forms.advance(2 * hour);
    expect((await forms.ask('POST', `/${id}`, { as: 'assessor', body: { operation: 'to-draft' } })).status).toBe(200);
    expect((await submit(id, 'alice')).status).toBe(200);
  });

  it('that has closed does not change the response to a repeat with the same idempotency key', async () => {
    const definitionId = await defined({ closes: hour });
    const [key, body] = [randomUUID(), { data: { name: 'Ana' }, applicant: anonymous() }];
    const first = await create({ definitionId, key, body });
    const submitted = await submit(idOf(first), 'intake', key);
    forms.advance(2 * hour);
    expect((await create({ definitionId, key, body })).text).toBe(first.text);
    expect((await submit(idOf(first), 'intake', key)).text).toBe(submitted.text);
  });

  it.each([
    ['a date without a time zone', { opens: '2026-09-01T00:00:00' }, '/intake/opens'],
    ['a date without a time', { closes: '2026-09-01' }, '/intake/closes'],
    [
      'a window that ends before it begins',
      { opens: '2026-09-02T00:00:00Z', closes: '2026-09-01T00:00:00Z' },
      '/intake/closes',
    ],
    ['a window without dates', {}, '/intake'],
    ['no window', [], '/intake'],
    ['a wrong window among others', [{ opens: '2026-09-01T00:00:00Z' }, { opens: 7 }], '/intake/1/opens'],
    ['a text', 'always', '/intake'],
  ])('with %s makes the definition invalid, with a pointer', async (_name, intake, pointer) => {
    expect(await problems({ intake })).toEqual([{ pointer, severity: 'error', detail: expect.any(String) }]);
  });

  it('with wrong dates in a definition that was configured all the same is 409 definition-invalid', async () => {
    const definitionId = await defined({ opens: hour, closes: -hour });
    expect(typeOf(await create({ definitionId }))).toBe('definition-invalid');
  });

  it('in a calendar (scheduledIntakes) is a warning: only intake is supported', async () => {
    expect(await problems({ scheduledIntakes: true })).toEqual([
      { pointer: '/scheduledIntakes', severity: 'warning', detail: expect.any(String) },
    ]);
    const opens = '2026-09-01T00:00:00-06:00';
    for (const intake of [{ opens }, [{ opens }], null]) expect(await problems({ intake })).toEqual([]);
  });
});
