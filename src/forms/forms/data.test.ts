// Tests each rule for reading and saving form data, over HTTP. roles.test.ts tests access; codes.test.ts tests codes.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { permit, startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

const minute = 60_000;
const file = 'urn:example:platform:file-service:v1:/files/3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a553';
const otherFile = file.replace('3f0c', '4a1d');

const put = (id: string, body: unknown, headers: Record<string, string> = {}, as: Who = 'intake', query = '') =>
  forms.ask('PUT', `/${id}/data${query}`, { as, body, headers });
const read = (id: string, code: string) =>
  forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': code } });
const adminRead = (id: string) => forms.ask('GET', `/${id}/data`, { as: 'admin' });
const lastAccessed = async (id: string) =>
  ((await forms.ask('GET', `/${id}`, { as: 'admin' })).body as { lastAccessed: string }).lastAccessed;

describe('GET data', () => {
  it('returns {data, files} with an ETag', async () => {
    const id = await forms.draft();
    await put(id, { data: { name: 'Ana' }, files: { 'plan.pdf': file } });
    const { status, body, headers } = await read(id, await forms.code(id));
    expect(status).toBe(200);
    expect(body).toEqual({ data: { name: 'Ana' }, files: { 'plan.pdf': file } });
    expect(headers.get('etag')).toBe('"2"');
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store, no-transform');
  });

  it('returns empty objects for a new draft', async () => {
    expect((await adminRead(await forms.draft())).body).toEqual({ data: {}, files: {} });
  });

  it('sets lastAccessed, with a code, in its session and without a code', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    let before = await lastAccessed(id);
    for (const ask of [() => read(id, code), () => read(id, code), () => adminRead(id)]) {
      forms.advance(minute);
      expect((await ask()).status).toBe(200);
      const after = await lastAccessed(id);
      expect(Date.parse(after) - Date.parse(before)).toBeGreaterThanOrEqual(minute);
      before = after;
    }
  });

  it('never changes form data: the revision is the same', async () => {
    const id = await forms.draft();
    const [one, two] = [await adminRead(id), await adminRead(id)];
    expect(two.headers.get('etag')).toBe(one.headers.get('etag'));
  });

  it('returns form data as it was sent: order, large numbers, escapes and Unicode', async () => {
    const id = await forms.draft();
    const data = { z: 1e300, a: [0.1, -0, 1234567890123456], ключ: '“\u2028\t\\"😀', nested: { b: null, a: true } };
    await put(id, { data, files: {} });
    const { text } = await adminRead(id);
    expect(text).toBe(`{"data":${JSON.stringify(data)},"files":{}}`);
  });

  it('returns every digit of a number, and white space', async () => {
    const id = await forms.draft();
    const data = '{ "price": 1.50, "rate": 0.10000000000000000555,\n"list": [ ] }';
    const saved = await put(id, `{"files": {}, "data": ${data}}`);
    expect([saved.text, (await adminRead(id)).text]).toEqual(Array(2).fill(`{"data":${data},"files":{}}`));
  });
});

describe('PUT data', () => {
  it('replaces data and files, returns them with an ETag and sets lastAccessed', async () => {
    const id = await forms.draft();
    const before = await lastAccessed(id);
    forms.advance(minute);
    const first = await put(id, { data: { a: 1, b: 2 }, files: { one: file } });
    expect(first).toMatchObject({ status: 200, body: { data: { a: 1, b: 2 }, files: { one: file } } });
    expect(first.headers.get('etag')).toBe('"2"');
    expect(Date.parse(await lastAccessed(id)) - Date.parse(before)).toBeGreaterThanOrEqual(minute);
    const second = await put(id, { data: { c: 3 }, files: {} });
    expect(second.body).toEqual({ data: { c: 3 }, files: {} });
    expect((await adminRead(id)).body).toEqual({ data: { c: 3 }, files: {} });
  });

  it('needs no code from an intake application', async () => {
    expect((await put(await forms.draft(), { data: {}, files: {} })).status).toBe(200);
  });

  it('does not change a member that a signed-in caller does not send', async () => {
    const id = await forms.draft({ as: 'alice' });
    await put(id, { data: { a: 1 }, files: { one: file } }, {}, 'alice');
    expect((await put(id, { data: { a: 2 } }, {}, 'alice')).body).toEqual({ data: { a: 2 }, files: { one: file } });
    expect((await put(id, { files: {} }, {}, 'alice')).body).toEqual({ data: { a: 2 }, files: {} });
  });

  it.each([
    [{ data: { a: 2 } }, '/files'],
    [{ files: {} }, '/data'],
  ])('is 400 for an intake application without a session that sends only %j', async (body, pointer) => {
    const id = await forms.draft();
    await put(id, { data: { secret: 'answer' }, files: { one: file } });
    const response = await put(id, body);
    expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
    expect(response.text).not.toContain('secret');
    expect((await adminRead(id)).body).toEqual({ data: { secret: 'answer' }, files: { one: file } });
  });

  it('does not change a member that an intake application with an open read session does not send', async () => {
    const id = await forms.draft();
    await put(id, { data: { a: 1 }, files: { one: file } });
    await read(id, await forms.code(id));
    expect((await put(id, { data: { a: 2 } })).body).toEqual({ data: { a: 2 }, files: { one: file } });
    expect((await put(id, { files: {} }, {}, 'otherIntake')).status).toBe(400);
    forms.advance(30 * minute);
    expect((await put(id, { files: {} })).status).toBe(400);
  });

  it.each([['intake'], ['alice']] as const)('with neither data nor files is 400, also from %s', async (as) => {
    expect((await put(await forms.draft({ as }), {}, {}, as)).status).toBe(400);
  });

  it('by a caller without access is 403, with any body', async () => {
    expect((await put(await forms.draft(), {}, {}, 'admin')).status).toBe(403);
  });

  it.each([
    ['a list for data', { data: [], files: {} }, '/data'],
    ['null for data', { data: null, files: {} }, '/data'],
    ['a text for data', { data: 'x', files: {} }, '/data'],
    ['a list for files', { data: {}, files: [] }, '/files'],
    ['a number for a file', { data: {}, files: { one: 1 } }, '/files/one'],
    ['no URN for a file', { data: {}, files: { one: 'https://example.org/x.pdf' } }, '/files/one'],
    ['the URN of no file', { data: {}, files: { one: file.replace('file-service', 'form-service') } }, '/files/one'],
    ['a URN of another prefix', { data: {}, files: { one: file.replace('urn:example', 'urn:other') } }, '/files/one'],
    ['a file URN without id', { data: {}, files: { 'a/b': `${file.slice(0, 50)}x` } }, '/files/a~1b'],
    ['an unknown field', { data: {}, files: {}, status: 'Submitted' }, '/status'],
    ['NUL in a value', { data: { a: 'x\u0000' }, files: {} }, '/data/a'],
  ])('with %s is 400 with a pointer', async (_name, body, pointer) => {
    const response = await put(await forms.draft(), body);
    expect(response.status).toBe(400);
    expect((response.body as { errors: { pointer: string }[] }).errors.map((error) => error.pointer)).toContain(
      pointer,
    );
  });

  it('accepts several file URNs in one value, separated by semicolons', async () => {
    const body = { data: {}, files: { plans: `${file};${otherFile}` } };
    expect((await put(await forms.draft(), body)).status).toBe(200);
  });

  it('of more than 1 MiB is 413', async () => {
    const id = await forms.draft();
    const room = 1_048_576 - '{"data":{"a":""},"files":{}}'.length;
    expect((await put(id, { data: { a: 'x'.repeat(room) }, files: {} })).status).toBe(200);
    expect((await put(id, { data: { a: 'x'.repeat(room + 1) }, files: {} })).status).toBe(413);
  });

  it.each([
    ['Locked', 'form-locked'],
    ['Submitted', 'form-not-draft'],
    ['Archived', 'form-not-draft'],
  ])('of a form that is %s is 409 (%s) and changes nothing', async (status, type) => {
    const id = await forms.draft();
    await put(id, { data: { a: 1 }, files: {} });
    await forms.setStatus(id, status);
    expect(await put(id, { data: {}, files: {} })).toMatchObject({
      status: 409,
      body: { type: `urn:formgate:problem:${type}` },
    });
    expect((await adminRead(id)).body).toMatchObject({ data: { a: 1 } });
  });
});

describe('If-Match', () => {
  let id: string;
  beforeEach(async () => {
    id = await forms.draft();
    await put(id, { data: { a: 1 }, files: {} });
  });
  const save = (tag: string, value = 2, as: Who = 'intake') =>
    put(id, { data: { a: value }, files: {} }, { 'if-match': tag }, as);

  it('saves over the version that it names', async () => {
    const saved = await save('"2"');
    expect(saved.status).toBe(200);
    expect(saved.headers.get('etag')).toBe('"3"');
  });

  it('that is stale returns 412 and changes nothing', async () => {
    expect(await save('"1"')).toMatchObject({ status: 412, body: { type: 'urn:formgate:problem:stale' } });
    expect((await adminRead(id)).body).toEqual({ data: { a: 1 }, files: {} });
  });

  it('applies to signed-in callers too', async () => {
    id = await forms.draft({ as: 'alice' });
    expect((await save('"1"', 1, 'alice')).status).toBe(200);
    expect((await save('"1"', 2, 'alice')).status).toBe(412);
  });

  it.each(['*', '"1", "2"', '"x" ,"2"'])('of %s saves', async (tag) => {
    expect((await save(tag)).status).toBe(200);
  });

  it('of a weak tag saves, because a proxy that compresses the response makes the ETag weak', async () => {
    expect((await save('W/"2"')).status).toBe(200);
    expect((await save('W/"2"')).status).toBe(412);
  });

  it.each(['"x"', '"two"', '"02"'])('of %s matches nothing: 412', async (tag) => {
    expect((await save(tag)).status).toBe(412);
  });

  it.each(['2', '""2', '"2', '"2" "3"'])('of %s is 400', async (tag) => {
    expect(await save(tag)).toMatchObject({ status: 400, body: { errors: [{ pointer: '/headers/if-match' }] } });
  });

  it('is optional: without it the last save wins', async () => {
    await put(id, { data: { a: 5 }, files: {} });
    await put(id, { data: { a: 6 }, files: {} });
    expect((await adminRead(id)).body).toEqual({ data: { a: 6 }, files: {} });
  });

  it('admits one of two saves with the same ETag', async () => {
    const responses = await Promise.all([save('"2"', 10), save('"2"', 11)]);
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 412]);
  });
});

describe('?validate=true', () => {
  it('returns the problems found by the definition’s dataSchema, and saves the form data', async () => {
    const id = await forms.draft();
    const { status, body } = await put(id, { data: { age: -1 }, files: {} }, {}, 'intake', '?validate=true');
    expect(status).toBe(200);
    expect(body).toEqual({
      data: { age: -1 },
      files: {},
      problems: [
        { pointer: '/data/name', detail: 'is required' },
        { pointer: '/data/age', detail: 'must be >= 0' },
      ],
    });
    expect((await adminRead(id)).body).toEqual({ data: { age: -1 }, files: {} });
  });

  it('returns an empty list for valid form data', async () => {
    const response = await put(
      await forms.draft(),
      { data: { name: 'Ana' }, files: {} },
      {},
      'intake',
      '?validate=true',
    );
    expect(response.body).toMatchObject({ problems: [] });
  });

  it('validates the stored data if only files are sent', async () => {
    const id = await forms.draft({ as: 'alice' });
    await put(id, { data: { age: 1 } }, {}, 'alice');
    const { body } = await put(id, { files: {} }, {}, 'alice', '?validate=true');
    expect(body).toMatchObject({ problems: [{ pointer: '/data/name' }] });
  });

  it('saves the form data even if it cannot be validated, and says why', async () => {
    const definition = { ...permit, id: 'changing' };
    await forms.define(definition);
    const id = await forms.draft({ definitionId: 'changing' });
    await forms.define({ ...definition, dataSchema: { type: 7 } });
    const { status, body } = await put(id, { data: { age: 3 }, files: {} }, {}, 'intake', '?validate=true');
    expect(status).toBe(200);
    expect(body).toMatchObject({ problems: [{ pointer: '', detail: expect.stringContaining('changing') }] });
    expect((await adminRead(id)).body).toEqual({ data: { age: 3 }, files: {} });
  });

  it('of another value is 400', async () => {
    expect((await put(await forms.draft(), { data: {}, files: {} }, {}, 'intake', '?validate=maybe')).status).toBe(400);
  });
});

describe('concurrent reads and saves', () => {
  it('lose no save in 1,000 interleaved requests', async () => {
    const id = await forms.draft();
    const code = await forms.code(id);
    expect((await read(id, code)).status).toBe(200);
    const saves = 500;
    const saver = async (from: number) => {
      for (let nth = from; nth < saves; nth += 10)
        expect((await put(id, { data: { nth, text: `text ${nth}` }, files: {} })).status).toBe(200);
    };
    const reader = async () => {
      for (let nth = 0; nth < 50; nth += 1) {
        const { status, body } = await read(id, code);
        expect(status).toBe(200);
        const { data } = body as { data: { nth?: number; text?: string } };
        if (data.nth !== undefined) expect(data.text).toBe(`text ${data.nth}`);
      }
    };
    await Promise.all(Array.from({ length: 10 }, (_, worker) => [saver(worker), reader()]).flat());
    const { headers, body } = await adminRead(id);
    expect(headers.get('etag')).toBe(`"${saves + 1}"`);
    expect((body as { data: { nth: number } }).data.nth).toBeGreaterThanOrEqual(saves - 10);
  });

  it('with If-Match by ten clients count to 50', async () => {
    const id = await forms.draft({ as: 'alice' });
    await put(id, { data: { count: 0 } }, {}, 'alice');
    const client = async () => {
      for (let done = 0; done < 5; ) {
        const { headers, body } = await forms.ask('GET', `/${id}/data`, { as: 'alice' });
        const { count } = (body as { data: { count: number } }).data;
        const saved = await put(id, { data: { count: count + 1 } }, { 'if-match': headers.get('etag') ?? '' }, 'alice');
        if (saved.status === 200) done += 1;
      }
    };
    await Promise.all(Array.from({ length: 10 }, client));
    expect((await adminRead(id)).body).toMatchObject({ data: { count: 50 } });
  });
});
