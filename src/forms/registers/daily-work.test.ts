// Tests the register API in everyday use: single entries, CSV, revisions, and the search for the uses of a register.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { roleToken } from '../../../test/support/platform.ts';
import { type RegisterBackend, type Replica, startRegisterBackend } from '../../../test/support/registers.ts';

let backend: RegisterBackend;
let replica: Replica;
let tenantId: string;
beforeAll(async () => {
  backend = await startRegisterBackend();
  replica = await backend.start();
  tenantId = backend.tenant.id;
});
afterAll(() => backend.close());

const cities = [
  { value: 'banff', label: 'Banff', order: 1 },
  { value: 'jasper', label: 'Jasper', order: 2 },
];

async function register(entries: unknown[] = cities): Promise<string> {
  const name = backend.newName();
  expect((await replica.request('POST', '', { body: { name, description: 'Cities', entries } })).status).toBe(201);
  return name;
}

const ask = (method: string, name: string, rest: string, body?: unknown, headers?: Record<string, string>) =>
  replica.request(method, `/${encodeURIComponent(name)}${rest}`, { body, ...(headers && { headers }) });
const entriesOf = async (name: string) => (await ask('GET', name, '/entries')).body;
const csv = (name: string, query: string, body: string) =>
  ask('POST', name, `/entries${query}`, body, { 'content-type': 'text/csv' });

describe('one entry', () => {
  it('is added, replaced and deleted by its key, and the others stay as they are', async () => {
    const name = await register();
    const hinton = { value: 'hinton', label: 'Hinton' };
    expect(await ask('PUT', name, '/entries/hinton', hinton)).toMatchObject({ status: 201, body: hinton });
    const banff = { ...cities[0], label: 'Town of Banff' };
    expect(await ask('PUT', name, '/entries/banff', banff)).toMatchObject({ status: 200, body: banff });
    expect(await ask('DELETE', name, '/entries/jasper')).toMatchObject({ status: 204, text: '' });
    expect(await entriesOf(name)).toEqual([banff, hinton]);
    expect((await ask('DELETE', name, '/entries/jasper')).status).toBe(404);
  });

  it('of a register of strings is its own key, with any characters', async () => {
    const name = await register(['a/b', 'Élan vital']);
    expect((await ask('PUT', name, `/entries/${encodeURIComponent('a/b')}`, '"a/c"')).status).toBe(200);
    expect((await ask('DELETE', name, `/entries/${encodeURIComponent('Élan vital')}`)).status).toBe(204);
    expect(await entriesOf(name)).toEqual(['a/c']);
  });

  it('is found by another member with keyField', async () => {
    const name = await register();
    expect((await ask('DELETE', name, '/entries/2?keyField=order')).status).toBe(204);
    expect(await entriesOf(name)).toEqual([cities[0]]);
  });

  it.each(['..', '.', 'N/A', 'a\\b', 'a\nb', '%2F'])(
    'is added, replaced and deleted by the query parameter key, which takes any key: %j',
    async (key) => {
      const name = await register(['x']);
      const address = `/entries?${new URLSearchParams({ key })}`;
      const text = JSON.stringify(key);
      expect(await ask('PUT', name, address, text)).toMatchObject({ status: 201, body: key });
      expect(await ask('PUT', name, address, text)).toMatchObject({ status: 200, body: key });
      expect(await entriesOf(name)).toEqual(['x', key]);
      expect((await ask('DELETE', name, address)).status).toBe(204);
      expect(await entriesOf(name)).toEqual(['x']);
    },
  );

  it('is found by the query parameters key and keyField', async () => {
    const name = await register();
    expect((await ask('DELETE', name, '/entries?key=2&keyField=order')).status).toBe(204);
    expect(await entriesOf(name)).toEqual([cities[0]]);
  });

  it.each(['', '?key=', '?key=banff&key=jasper'])(
    'without one key in the query "%s" is 400 that names it',
    async (query) => {
      const name = await register();
      for (const [method, body] of [['PUT', cities[0]] as const, ['DELETE', undefined] as const])
        expect(await ask(method, name, `/entries${query}`, body)).toMatchObject({
          status: 400,
          body: { errors: [{ pointer: '/query/key' }] },
        });
      expect(await entriesOf(name)).toEqual(cities);
    },
  );

  it('whose key is a dot segment in the path, which clients resolve, does not delete the register', async () => {
    const name = await register(['..']);
    for (const rest of ['/?keyField=value', '?keyField=value'])
      expect(await ask('DELETE', name, rest)).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/query/keyField' }] },
      });
    expect(await entriesOf(name)).toEqual(['..']);
  });

  it.each([
    ['a number', 5, ''],
    ['a string among objects', '"x"', ''],
    ['an object with a reserved member', { value: 'x', META_id: 1 }, '/META_id'],
  ])('that is %s is rejected with 400 that names it, and changes nothing', async (_what, body, pointer) => {
    const name = await register();
    const { status, body: problem } = await ask('PUT', name, '/entries/x', body);
    expect([status, problem]).toMatchObject([400, { errors: [{ pointer }] }]);
    expect(await entriesOf(name)).toEqual(cities);
  });

  it.each([
    ['PUT', 'hinton', { label: 'Hinton' }, '', '/value'],
    ['PUT', 'banff', { label: 'Banff' }, '', '/value'],
    ['PUT', 'banff', { value: 'banff', label: 'Banff' }, '?keyField=vaule', '/vaule'],
    ['PUT', 'banff', { value: { nested: true } }, '', '/value'],
    ['PUT', 'banff', '""', '', ''],
  ])('of %s %s without its key (%j) is 400 that names the member, and changes nothing', async (...given) => {
    const [method, key, body, query, pointer] = given;
    const name = await register();
    const answered = await ask(method, name, `/entries/${key}${query}`, body);
    expect(answered).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
    expect(await entriesOf(name)).toEqual(cities);
  });

  it('that 20 callers write concurrently loses none of their entries', async () => {
    const name = await register([]);
    const second = await backend.start();
    const put = (n: number) =>
      (n % 2 === 0 ? replica : second).request('PUT', `/${encodeURIComponent(name)}/entries/k${n}`, {
        body: { value: `k${n}` },
      });
    const responses = await Promise.all(Array.from({ length: 20 }, (_, n) => put(n)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([201]));
    expect(await entriesOf(name)).toHaveLength(20);
    await second.close();
  });
});

describe('CSV', () => {
  it('has columns with any names, also those that every JavaScript object inherits', async () => {
    const name = await register();
    const { status, body } = await csv(name, '', 'value,toString,valueOf\njasper,a,\n');
    expect([status, body]).toMatchObject([200, { changed: 1, unchanged: 1 }]);
    const table = await ask('GET', name, '/entries', undefined, { accept: 'text/csv' });
    expect(table.text).toBe('value,label,order,toString\r\nbanff,Banff,1,""\r\njasper,Jasper,2,a\r\n');
  });

  it('is imported by key, and reports what was added, changed and unchanged', async () => {
    const name = await register();
    const { status, body } = await csv(name, '', 'value,label\njasper,Jasper Park\nhinton,Hinton\n');
    expect([status, body]).toEqual([
      200,
      {
        ...{ dryRun: false, added: 1, changed: 1, removed: 0, unchanged: 1, reordered: false, truncated: false },
        changes: [
          { change: 'changed', key: 'jasper', before: cities[1], after: { ...cities[1], label: 'Jasper Park' } },
          { change: 'added', key: 'hinton', after: { value: 'hinton', label: 'Hinton' } },
        ],
      },
    ]);
    expect(await entriesOf(name)).toHaveLength(3);
  });

  it('with mode=replace removes the entries that the table lacks, and with dryRun=true only reports', async () => {
    const name = await register();
    const table = '\ufeffvalue;label\r\njasper;Jasper\r\n';
    const report = { added: 0, changed: 0, removed: 1, unchanged: 1 };
    expect((await csv(name, '?mode=replace&dryRun=true', table)).body).toMatchObject({ dryRun: true, ...report });
    expect(await entriesOf(name)).toEqual(cities);
    expect((await csv(name, '?mode=replace', table)).body).toMatchObject({ dryRun: false, ...report });
    expect(await entriesOf(name)).toEqual([cities[1]]);
  });

  it('is exported with Accept: text/csv, and an import of the export changes nothing', async () => {
    const name = await register([...cities, { value: 'x', label: '=1+1' }]);
    const exported = await ask('GET', name, '/entries', undefined, { accept: 'text/csv' });
    expect(exported.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(exported.headers.get('content-disposition')).toBe(`attachment; filename="${name}.csv"`);
    expect(exported.text).toBe('value,label,order\r\nbanff,Banff,1\r\njasper,Jasper,2\r\nx,\'=1+1,""\r\n');
    const { body } = await csv(name, '?mode=replace', exported.text);
    expect(body).toMatchObject({ added: 0, changed: 0, removed: 0, unchanged: 3, reordered: false });
    const json = await ask('GET', name, '/entries', undefined, { accept: '*/*' });
    expect(json.headers.get('content-type')).toContain('application/json');
    expect(json.headers.get('etag')).not.toBe(exported.headers.get('etag'));
  });

  it('of entries with more than 100 different members is 400 that says so, and they are readable as JSON', async () => {
    const entries = Array.from({ length: 101 }, (_, n) => ({ [`member ${n}`]: n }));
    const name = await register(entries);
    const exported = await ask('GET', name, '/entries', undefined, { accept: 'text/csv' });
    expect(exported).toMatchObject({ status: 400, body: { detail: expect.stringContaining('100 different members') } });
    expect(await entriesOf(name)).toEqual(entries);
    const narrow = await register(entries.slice(1));
    expect((await ask('GET', narrow, '/entries', undefined, { accept: 'text/csv' })).status).toBe(200);
  });

  it('of a register with more than 10,000 entries is 400 that says so, and so is a comparison of its revisions', async () => {
    const name = await register();
    // The configuration service accepts longer lists than this API does.
    const entries = [{ value: 'a', ...Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`m${n}`, n])) }];
    for (let n = 0; n < 10_000; n += 1) entries.push({ value: `${n}` });
    await backend.configuration.replace('data-register', name, entries, { tenantId });
    const detail = 'The register has more than 10000 entries. Read them as JSON, or replace them with a PATCH.';
    for (const answer of [
      await ask('GET', name, '/entries', undefined, { accept: 'text/csv' }),
      await csv(name, '?mode=replace', 'value\na\n'),
      await csv(name, '?dryRun=true', 'value\na\n'),
      await ask('GET', name, '/revisions/0/changes'),
    ])
      expect(answer).toMatchObject({ status: 400, body: { type: 'urn:formgate:problem:invalid-request', detail } });
    expect(await entriesOf(name)).toEqual(entries);
    expect((await ask('PATCH', name, '', { entries: cities })).status).toBe(200);
    expect((await ask('GET', name, '/entries', undefined, { accept: 'text/csv' })).status).toBe(200);
  });

  it('with a long column name is 400 if the entries would be too large, before they are built', async () => {
    const name = await register();
    const rows = Array.from({ length: 9_000 }, (_, n) => `k${n},1\n`);
    const table = `value,${'x'.repeat(900_000)}\n${rows.join('')}`;
    for (const query of ['?dryRun=true', '?mode=replace'])
      expect(await csv(name, query, table)).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '', detail: 'must be at most 1048576 bytes of JSON' }] },
      });
    expect(await entriesOf(name)).toEqual(cities);
  });

  it.each([
    [
      'an integer that would be rounded',
      '[12345678901234567890]',
      /line 2 needs JSON in the column geo, but a part of it/,
    ],
    [
      'JSON that is nested too deeply',
      `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
      /but it is nested deeper than 100 levels$/,
    ],
    ['a forbidden name', '"{""__proto__"":{""x"":1}}"', /line 2 .*, but a part of it is a forbidden name$/],
  ])('with %s in a column of JSON is 400 that names the line', async (_what, cell, detail) => {
    const name = await register([{ value: 'banff', geo: {} }]);
    const response = await csv(name, '', `value,geo\nbanff,${cell}\n`);
    const errors = [{ pointer: '', detail: expect.stringMatching(detail) }];
    expect(response).toMatchObject({ status: 400, body: { type: 'urn:formgate:problem:invalid-request', errors } });
    expect(await entriesOf(name)).toEqual([{ value: 'banff', geo: {} }]);
  });

  it('with more JSON values than a document may have is 400 already with dryRun=true', async () => {
    const name = await register([{ value: 'a', geo: [] }]);
    const cell = `"[${'0,'.repeat(70_000)}0]"`;
    const { status, text } = await csv(name, '?dryRun=true', `value,geo\na,${cell}\nb,${cell}\nc,${cell}\n`);
    expect([status, text.slice(0, 500)]).toEqual([400, expect.stringContaining('has more than 200000 JSON values')]);
  });

  it('that would make the body of the write too large is 413 already with dryRun=true', async () => {
    const path = `/${await register([])}/entries`;
    const larger = await backend.start({ bodyLimit: 4 * 1_048_576 });
    const table = { body: `value\n${'x'.repeat(1_048_570)}\n`, headers: { 'content-type': 'text/csv' } };
    const responses = [
      await larger.request('POST', `${path}?dryRun=true`, table),
      await larger.request('POST', path, table),
    ];
    expect(responses.map(({ status }) => status)).toEqual([413, 413]);
  });

  it.each([
    ['another content type', 'application/json', '[]', 415],
    ['another charset', 'text/csv; charset=utf-16', 'value\n', 415],
    ['a NUL character', 'text/csv', 'value\na\0\n', 400],
    ['no content', 'text/csv', '', 400],
    ['a malformed line', 'text/csv', 'value,label\na\n', 400],
    ['a reserved column', 'text/csv', 'value,META_a\na,b\n', 400],
  ])('with %s is rejected, and changes nothing', async (_what, type, body, status) => {
    const name = await register();
    const response = await ask('POST', name, '/entries', body, { 'content-type': type });
    expect([response.status, response.headers.get('content-type')]).toEqual([
      status,
      'application/problem+json; charset=utf-8',
    ]);
    expect(await entriesOf(name)).toEqual(cities);
  });
});

describe('revisions', () => {
  it('are kept, listed, compared and pinned, and a change of entries is published again', async () => {
    const name = await register();
    expect(await ask('POST', name, '/revisions')).toMatchObject({ status: 201, body: { latest: 1 } });
    await ask('PUT', name, '/entries/hinton', { value: 'hinton' });
    const { body } = await ask('GET', name, '/revisions');
    expect(body).toMatchObject({
      results: [
        { revision: 1, entries: 3, latest: true, active: true },
        { revision: 0, entries: 2, latest: false, active: false },
      ],
    });
    expect((await ask('GET', name, '/revisions/0')).body).toEqual({ revision: 0, entries: cities });
    expect((await ask('GET', name, '/revisions/0/changes')).body).toMatchObject({
      ...{ added: 1, changed: 0, removed: 0, unchanged: 2 },
      changes: [{ change: 'added', key: 'hinton' }],
    });
    expect((await ask('GET', name, '/revisions/1/changes?to=0')).body).toMatchObject({ added: 0, removed: 1 });

    expect(await ask('PUT', name, '/active-revision', { revision: 0 })).toMatchObject({
      status: 200,
      body: { active: 0 },
    });
    expect(await entriesOf(name)).toEqual(cities);
    await ask('DELETE', name, '/entries/banff');
    expect(await entriesOf(name)).toEqual([cities[1]]);
    expect((await ask('GET', name, '/revisions')).body).toMatchObject({ results: [{ active: true }, { entries: 2 }] });
  });

  it.each([
    '/revisions/0/changes?to=',
    '/revisions/0/changes?to=%20',
    '/revisions/%20',
    '/revisions/0x0',
    '/revisions/-1',
  ])('have numbers: %s is 400', async (path) => {
    const name = await register();
    expect((await ask('GET', name, path)).status).toBe(400);
  });

  it('are listed in pages', async () => {
    const name = await register();
    await ask('POST', name, '/revisions');
    const first = (await ask('GET', name, '/revisions?top=1&after=')).body as {
      results: unknown[];
      page: { after: null; next: string };
    };
    expect(first).toMatchObject({ results: [{ revision: 1 }], page: { after: null, size: 1 } });
    const second = await ask('GET', name, `/revisions?top=1&after=${first.page.next}`);
    expect(second.body).toMatchObject({ results: [{ revision: 0 }], page: { after: first.page.next } });
  });

  it('are all listed in shorter pages if the register is large', async () => {
    const name = await register(
      Array.from({ length: 1_000 }, (_, n) => ({ value: `v${n}`, label: 'x'.repeat(1_000) })),
    );
    for (let kept = 0; kept < 9; kept += 1) await ask('POST', name, '/revisions');
    const pages: number[][] = [];
    for (let after = ''; ; ) {
      const { body } = await ask('GET', name, `/revisions?top=25${after && `&after=${after}`}`);
      const { results, page } = body as { results: { revision: number }[]; page: { next: string | null } };
      pages.push(results.map(({ revision }) => revision));
      if (page.next === null) break;
      after = page.next;
    }
    expect(pages.flat()).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    expect(pages.length).toBeGreaterThan(1);
  });

  it.each([
    ['GET', '/revisions/7', undefined],
    ['GET', '/revisions/0/changes?to=7', undefined],
    ['PUT', '/active-revision', { revision: 7 }],
  ])('%s %s is 404 if there is no such revision', async (method, path, body) => {
    expect((await ask(method, await register(), path, body)).status).toBe(404);
  });

  it.each([
    ['GET', '/revisions', undefined],
    ['POST', '/revisions', undefined],
    ['GET', '/revisions/0', undefined],
    ['GET', '/revisions/0/changes', undefined],
    ['PUT', '/active-revision', { revision: 0 }],
    ['PUT', '/entries/a', { value: 'a' }],
    ['DELETE', '/entries/a', undefined],
  ])('%s %s is 404 without a register, and 403 without a role', async (method, path, body) => {
    expect((await ask(method, 'no such register', path, body)).status).toBe(404);
    const token = await roleToken(backend.access, { 'form-service': ['intake-application'] }, { realm: 'demo' });
    expect((await replica.request(method, `/any${path}`, { body, token })).status).toBe(403);
  });
});

describe('references', () => {
  const urnOf = (name: string) => backend.access.urns.register(name);
  const choice = (name: string) => ({ type: 'Control', options: { register: { urn: urnOf(name) } } });
  const pointer = '/elements/0/options/register/urn';
  const configure = async (namespace: string, name: string, value: object) => {
    await backend.configuration.update(namespace, name, value as Record<string, unknown>, { tenantId });
  };

  it('list the definitions of both places that use a register, and the registers that are missing', async () => {
    const [used, gone] = [await register(), 'gone for ever'];
    const uiSchema = { type: 'VerticalLayout', elements: [choice(used), choice(gone)] };
    await configure('platform', 'form-service', {
      licence: { id: 'licence', name: 'Licence', uiSchema },
      broken: { id: 'broken', name: 'Broken', uiSchema: { elements: 5 } },
    });
    await configure('form-service', 'permit', { id: 'permit', name: 'Permit', uiSchema: { elements: [choice(used)] } });

    const { status, body } = await ask('GET', used, '/references');
    const found = (definitionId: string, definitionName: string) => ({
      ...{ definitionId, definitionName, register: used, urn: urnOf(used), pointer },
    });
    expect([status, body]).toEqual([
      200,
      { results: [found('licence', 'Licence'), found('permit', 'Permit')], truncated: false },
    ]);
    const dead = await replica.request('GET', '/../register-references/dead');
    expect(dead.body).toEqual({
      results: [
        { ...found('licence', 'Licence'), register: gone, urn: urnOf(gone), pointer: pointer.replace('0', '1') },
      ],
      truncated: false,
    });
  });

  it('of a tenant are searched once at a time, and other tenants do not wait', async () => {
    const searches = Array.from({ length: 8 }, () => replica.request('GET', '/any/references'));
    const statuses = (await Promise.all(searches)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
    expect(statuses.filter((status) => status === 503)).toHaveLength(3);
  });
});
