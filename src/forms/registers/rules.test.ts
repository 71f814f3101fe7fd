// Tests each rule of the specification's section "Data register" and each status of each method. The tests use HTTP,
// and the configuration service that test/support/registers.ts selects. The test titles quote the rules.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { roleToken } from '../../../test/support/platform.ts';
import {
  listPages,
  type RegisterBackend,
  type Replica,
  startRegisterBackend,
} from '../../../test/support/registers.ts';

let backend: RegisterBackend;
let api: Replica;
let place: { tenantId: string };

beforeAll(async () => {
  backend = await startRegisterBackend();
  api = await backend.start();
  place = { tenantId: backend.tenant.id };
});

afterAll(() => backend.close());

const home = ['platform', 'configuration-service'] as const;
const strings = ['Banff', 'Canmore'];
const objects = [
  { label: 'Banff', value: 1 },
  { label: 'Canmore', value: 2 },
];
const pathOf = (name: string) => `/${encodeURIComponent(name)}`;

async function create(entries: unknown = strings, name = backend.newName()): Promise<string> {
  const response = await api.request('POST', '', { body: { name, description: 'Towns', entries } });
  expect(response.status).toBe(201);
  return name;
}

async function definitionOf(name: string): Promise<unknown> {
  const { latest } = await backend.configuration.read(...home, place);
  return (latest?.configuration as Record<string, unknown> | undefined)?.[`data-register:${name}`];
}

/** Returns the number of the pinned revision, and the entries of all revisions, newest first. */
async function historyOf(name: string) {
  const { active } = await backend.configuration.read('data-register', name, place);
  const revisions = await backend.revisions.list('data-register', name, place);
  return { pinned: active?.revision, revisions: revisions.map(({ configuration }) => configuration) };
}

/** Creates a register with two revisions that contain `strings`. The older revision 0 is pinned. */
async function createPinned(): Promise<string> {
  const name = await create();
  await backend.revisions.create('data-register', name, place);
  await backend.configuration.setActiveRevision('data-register', name, 0, place);
  return name;
}

async function namesInList(): Promise<string[]> {
  return (await listPages(api)).flatMap(({ results }) => results.map(({ name }) => name));
}

describe('Storage: a register has two parts in the configuration service', () => {
  it("the definition is the entry data-register:<name> in the tenant's platform:configuration-service", async () => {
    const name = await create();
    expect(await definitionOf(name)).toMatchObject({ description: 'Towns', configurationSchema: { type: 'array' } });
  });

  it('the entries are the configuration with namespace data-register and the register name', async () => {
    const name = await create();
    const { latest, active } = await backend.configuration.read('data-register', name, place);
    expect(latest?.configuration).toEqual(strings);
    expect(active).toBeUndefined();
  });

  it('the stored schema accepts all strings and all objects, and rejects a mixture from any client', async () => {
    const name = await create();
    await backend.configuration.replace('data-register', name, objects, place);
    await backend.configuration.replace('data-register', name, [], place);
    const mixture = backend.configuration.replace('data-register', name, ['Banff', { label: 'Canmore' }], place);
    await expect(mixture).rejects.toMatchObject({ kind: 'rejected' });
  });
});

describe('GET /form/v1/registers', () => {
  it("200: lists the tenant's registers as {results: [{namespace, name, description, entries}], page}, sorted by name", async () => {
    const [first, second] = [await create(), await create(objects)].sort();
    const response = await api.request('GET', '?top=100');
    expect(response.status).toBe(200);
    expect(Object.keys(response.body as object)).toEqual(['results', 'page']);
    const pages = await listPages(api);
    for (const { results, page } of pages) expect(page.size).toBe(results.length);
    expect(pages[0]?.page.after).toBeNull();
    const listed = pages.flatMap(({ results }) => results);
    const names = listed.map(({ name }) => name);
    expect(names).toEqual([...names].sort());
    expect(names).toContain(first);
    const found = listed.find(({ name }) => name === second);
    expect(Object.keys(found ?? {})).toEqual(['namespace', 'name', 'description', 'entries']);
    expect(found).toMatchObject({ namespace: 'data-register', name: second, description: 'Towns' });
  });

  it('200: a page starts after the cursor of the page before, and the last page has none', async () => {
    for (let index = 0; index < 5; index += 1) await create();
    const all = await namesInList();
    const top = Math.max(2, Math.ceil(all.length / 50));
    const pages = await listPages(api, top);
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.map(({ page }) => page.after)).toEqual([null, ...pages.slice(0, -1).map(({ page }) => page.next)]);
    expect(pages.slice(0, -1).map(({ page }) => page.size)).toEqual(pages.slice(0, -1).map(() => top));
    expect(pages.flatMap(({ results }) => results.map(({ name }) => name))).toEqual(all);
  });

  it('200: an empty cursor returns the first page', async () => {
    await create();
    const [first] = await listPages(api);
    expect((await api.request('GET', '?top=100&after=')).body).toEqual(first);
  });

  it('200: the list returns each register as GET of the register does', async () => {
    const name = await createPinned();
    await backend.configuration.replace('data-register', name, ['not published'], place);
    const one = await api.request('GET', pathOf(name));
    const listed = (await listPages(api)).flatMap(({ results }) => results);
    expect(listed.find((register) => register.name === name)).toEqual(one.body);
  });

  it.each(['top=0', 'top=101', 'top=x', 'after=x', 'after=WyIuLi94Il0'])('400: %s is refused', async (query) => {
    const response = await api.request('GET', `?${query}`);
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({ errors: [{ pointer: `/query/${query.split('=')[0]}` }] });
  });
});

describe('GET /form/v1/registers/{name}', () => {
  it('200: returns one register as {namespace, name, description, entries}', async () => {
    const name = await create(objects);
    const response = await api.request('GET', pathOf(name));
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ namespace: 'data-register', name, description: 'Towns', entries: objects });
  });

  it('404: the register does not exist', async () => {
    const response = await api.request('GET', pathOf(backend.newName()));
    expect(response.status).toBe(404);
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json\b/);
  });
});

describe('POST /form/v1/registers', () => {
  it('201: returns the created register', async () => {
    const name = backend.newName();
    const response = await api.request('POST', '', { body: { name, description: 'Towns', entries: strings } });
    expect(response.status).toBe(201);
    expect(response.body).toEqual({ namespace: 'data-register', name, description: 'Towns', entries: strings });
    expect(response.headers.get('location')).toBe(`/form/v1/registers${pathOf(name)}`);
    expect((await api.request('GET', pathOf(name))).body).toEqual(response.body);
  });

  it('201: entries are optional and default to an empty array', async () => {
    const name = backend.newName();
    const response = await api.request('POST', '', { body: { name, description: 'Towns' } });
    expect(response.status).toBe(201);
    expect(response.body).toMatchObject({ entries: [] });
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ name, entries: [] });
  });

  it('201: namespace in a body is ignored if it equals data-register', async () => {
    const body = { namespace: 'data-register', name: backend.newName(), description: '' };
    expect((await api.request('POST', '', { body })).status).toBe(201);
  });

  it('400: another namespace in a body', async () => {
    const body = { namespace: 'platform', name: backend.newName(), description: '' };
    const response = await api.request('POST', '', { body });
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({ errors: [{ pointer: '/namespace' }] });
  });

  it.each([
    ['no body', undefined, ''],
    ['a body that is no object', [], ''],
    ['no name', { description: 'Towns' }, '/name'],
    ['a name that is no string', { name: 1, description: 'Towns' }, '/name'],
    ['a description that is no string', { name: 'x', description: 1 }, '/description'],
    ['entries that are no array', { name: 'x', description: '', entries: {} }, '/entries'],
    ['entries that are null', { name: 'x', description: '', entries: null }, '/entries'],
    ['an unknown field', { name: 'x', description: '', anonymousRead: true }, '/anonymousRead'],
  ])('400: %s', async (_what, body, pointer) => {
    const response = await api.request('POST', '', { body });
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({ errors: [{ pointer }] });
  });

  it('409: a name that already exists as a register, which is unchanged', async () => {
    const name = await create();
    const response = await api.request('POST', '', { body: { name, description: 'Other', entries: objects } });
    expect(response.status).toBe(409);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ description: 'Towns', entries: strings });
  });
});

describe('PATCH /form/v1/registers/{name}', () => {
  it('200: returns the updated register; a field that is not sent is unchanged: the description', async () => {
    const name = await create();
    const response = await api.request('PATCH', pathOf(name), { body: { entries: objects } });
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ namespace: 'data-register', name, description: 'Towns', entries: objects });
    expect((await api.request('GET', pathOf(name))).body).toEqual(response.body);
  });

  it('200: a field that is not sent is unchanged: the entries', async () => {
    const name = await create();
    const response = await api.request('PATCH', pathOf(name), { body: { description: 'Places' } });
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ namespace: 'data-register', name, description: 'Places', entries: strings });
    expect((await api.request('GET', pathOf(name))).body).toEqual(response.body);
  });

  it('200: entries are replaced, never appended; an empty array removes them; strings may become objects', async () => {
    const name = await create();
    for (const entries of [['Jasper'], [], objects, strings]) {
      expect((await api.request('PATCH', pathOf(name), { body: { entries } })).status).toBe(200);
      expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries });
    }
  });

  it('400: neither description nor entries', async () => {
    const name = await create();
    for (const body of [{}, { namespace: 'data-register' }])
      expect((await api.request('PATCH', pathOf(name), { body })).status).toBe(400);
  });

  it('400: an unknown field, name included, and another namespace', async () => {
    const name = await create();
    for (const body of [
      { name, description: '' },
      { entries: [], anonymousRead: true },
      { namespace: 'x', entries: [] },
    ])
      expect((await api.request('PATCH', pathOf(name), { body })).status).toBe(400);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ description: 'Towns', entries: strings });
  });

  it('404: the register does not exist, and none is created', async () => {
    const name = backend.newName();
    const response = await api.request('PATCH', pathOf(name), { body: { description: 'x', entries: strings } });
    expect(response.status).toBe(404);
    expect(await definitionOf(name)).toBeUndefined();
    expect((await historyOf(name)).revisions).toEqual([]);
  });
});

describe('DELETE /form/v1/registers/{name}', () => {
  it('204: deletes the register', async () => {
    const name = await create();
    const response = await api.request('DELETE', pathOf(name));
    expect(response.status).toBe(204);
    expect(response.text).toBe('');
    expect((await api.request('GET', pathOf(name))).status).toBe(404);
    expect(await namesInList()).not.toContain(name);
  });

  it('404: the register does not exist', async () => {
    expect((await api.request('DELETE', pathOf(backend.newName()))).status).toBe(404);
  });

  it('204, then 404, then a create with the same name succeeds', async () => {
    const name = await createPinned();
    expect((await api.request('DELETE', pathOf(name))).status).toBe(204);
    expect((await api.request('DELETE', pathOf(name))).status).toBe(404);
    await create(objects, name);
    expect(await historyOf(name)).toEqual({ pinned: undefined, revisions: [objects] });
  });
});

describe('Rule 1, existence: a register exists only when both its definition (with an array schema) and its entries exist', () => {
  const halves: [string, (name: string) => Promise<unknown>][] = [
    ['its entries are missing', (name) => backend.configuration.remove('data-register', name, place)],
    [
      'its definition is missing',
      (name) => backend.configuration.deleteProperty(...home, `data-register:${name}`, place),
    ],
    [
      'its definition has no array schema',
      (name) => {
        const configurationSchema = { type: 'object' };
        return backend.configuration.update(...home, { [`data-register:${name}`]: { configurationSchema } }, place);
      },
    ],
  ];

  it.each(halves)('if %s, it is not listed and returns 404 to GET, PATCH and DELETE', async (_what, takeAway) => {
    const name = await create();
    await takeAway(name);
    expect(await namesInList()).not.toContain(name);
    expect((await api.request('GET', pathOf(name))).status).toBe(404);
    expect((await api.request('PATCH', pathOf(name), { body: { entries: [] } })).status).toBe(404);
    expect((await api.request('DELETE', pathOf(name))).status).toBe(404);
  });

  it.each(halves)('if %s, it does not block a create with the same name', async (_what, takeAway) => {
    const name = await create();
    await takeAway(name);
    await create(objects, name);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ name, entries: objects });
    expect(await namesInList()).toContain(name);
  });

  it.each(halves)('if %s, a delete removes the existing part', async (_what, takeAway) => {
    const name = await create();
    await takeAway(name);
    expect((await api.request('DELETE', pathOf(name))).status).toBe(404);
    expect(await definitionOf(name)).toBeUndefined();
    expect((await historyOf(name)).revisions).toEqual([]);
  });
});

describe('Rule 2, active revision: entries are read from the active revision, or from the latest when none is active', () => {
  it('without a pin, the latest revision is read', async () => {
    const name = await create();
    await backend.revisions.create('data-register', name, place);
    await backend.configuration.replace('data-register', name, ['latest'], place);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: ['latest'] });
  });

  it('with a pin, the pinned revision is read, not an update of the latest that bypassed the API', async () => {
    const name = await createPinned();
    await backend.configuration.replace('data-register', name, ['latest'], place);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: strings });
  });
});

describe('Rule 3, writing entries publishes them', () => {
  it('an update that writes entries while an older revision is pinned moves the pin to the revision just written', async () => {
    const name = await createPinned();
    const response = await api.request('PATCH', pathOf(name), { body: { entries: objects } });
    expect(response.body).toMatchObject({ entries: objects });
    expect((await historyOf(name)).pinned).toBe(1);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: objects });
  });

  it('the pin also moves if the latest revision already has the written entries', async () => {
    const name = await createPinned();
    await backend.configuration.replace('data-register', name, objects, place);
    await api.request('PATCH', pathOf(name), { body: { entries: objects } });
    expect((await historyOf(name)).pinned).toBe(1);
  });

  it('a create that writes entries while an older revision is pinned moves the pin', async () => {
    const name = await createPinned();
    await backend.configuration.deleteProperty(...home, `data-register:${name}`, place);
    await create(objects, name);
    expect((await historyOf(name)).pinned).toBe(1);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: objects });
  });

  it('the older revision stays in the history and can be pinned again in the configuration service', async () => {
    const name = await createPinned();
    await api.request('PATCH', pathOf(name), { body: { entries: objects } });
    expect((await historyOf(name)).revisions).toEqual([objects, strings]);
    await backend.configuration.setActiveRevision('data-register', name, 0, place);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: strings });
  });

  it('an update that changes only the description does not move the pin', async () => {
    const name = await createPinned();
    await backend.configuration.replace('data-register', name, ['not published'], place);
    const response = await api.request('PATCH', pathOf(name), { body: { description: 'Places' } });
    expect(response.body).toMatchObject({ description: 'Places', entries: strings });
    expect(await historyOf(name)).toEqual({ pinned: 0, revisions: [['not published'], strings] });
  });

  it('a write pins nothing if nothing was pinned', async () => {
    const name = await create();
    await api.request('PATCH', pathOf(name), { body: { entries: objects } });
    expect(await historyOf(name)).toEqual({ pinned: undefined, revisions: [objects] });
  });
});

describe('Rule 4, entries: an array whose items are all strings or objects', () => {
  it.each([
    ['a number', [1], '/entries/0'],
    ['null', ['Banff', null], '/entries/1'],
    ['an array', [['Banff']], '/entries/0'],
    ['a boolean', [{}, true], '/entries/1'],
    ['a string after an object', [{ label: 'Banff' }, 'Canmore'], '/entries/1'],
    ['an object after a string', ['Banff', 'Canmore', {}], '/entries/2'],
    ['a reserved member', [{ label: 'Banff', META_note: 1 }], '/entries/0/META_note'],
    ['a reserved member below', [{}, { tags: [{ _bsontype: 'Binary' }] }], '/entries/1/tags/0/_bsontype'],
  ])('400: %s among the entries, on create and on update', async (_what, entries, pointer) => {
    const name = await create();
    const created = await api.request('POST', '', { body: { name: backend.newName(), description: '', entries } });
    const updated = await api.request('PATCH', pathOf(name), { body: { entries } });
    for (const response of [created, updated]) {
      expect(response.status).toBe(400);
      expect(response.body).toMatchObject({ errors: [{ pointer }] });
    }
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: strings });
  });

  it('objects may contain any JSON value', async () => {
    const entries = [{ label: { en: 'Banff', fr: 'Banff' }, tags: ['park', null, 1.5], 'odd key/~': true }, {}];
    const name = await create(entries);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries });
  });
});

describe('Rule 5: deleting removes the entries including their revision history, and the definition', () => {
  it('nothing is left of a register with a pin and several revisions', async () => {
    const name = await createPinned();
    await api.request('PATCH', pathOf(name), { body: { entries: objects } });
    expect((await api.request('DELETE', pathOf(name))).status).toBe(204);
    expect(await historyOf(name)).toEqual({ pinned: undefined, revisions: [] });
    expect(await definitionOf(name)).toBeUndefined();
  });
});

describe('Rule 6, anonymousRead', () => {
  async function open(name: string): Promise<void> {
    await backend.configuration.update(...home, { [`data-register:${name}`]: { anonymousRead: true } }, place);
  }

  it('an update of description, of entries, or of both keeps this setting', async () => {
    const name = await create();
    await open(name);
    for (const body of [{ description: 'Places' }, { entries: objects }, { description: 'Towns', entries: strings }]) {
      expect((await api.request('PATCH', pathOf(name), { body })).status).toBe(200);
      expect(await definitionOf(name)).toMatchObject({ anonymousRead: true });
    }
  });

  it('an update keeps the schema of a definition that another client wrote', async () => {
    const name = await create();
    const configurationSchema = { type: 'array', items: { type: 'string', maxLength: 20 } };
    await backend.configuration.update(...home, { [`data-register:${name}`]: { configurationSchema } }, place);
    await api.request('PATCH', pathOf(name), { body: { description: 'Places', entries: ['Jasper'] } });
    expect(await definitionOf(name)).toMatchObject({ configurationSchema, description: 'Places' });
  });

  it('the API does not set it', async () => {
    const name = await create();
    const definition = (await definitionOf(name)) as { anonymousRead?: boolean };
    expect(definition.anonymousRead ?? false).toBe(false);
  });

  it('a leftover definition never passes its anonymousRead to a new register', async () => {
    const name = await create();
    await open(name);
    await backend.configuration.remove('data-register', name, place);
    await create(objects, name);
    const definition = (await definitionOf(name)) as { anonymousRead?: boolean };
    expect(definition.anonymousRead ?? false).toBe(false);
  });
});

describe('Rule 7: rejections of the configuration service are 400, its failures and denials 502', () => {
  it("400: entries that the definition's own schema refuses", async () => {
    const name = await create();
    const configurationSchema = { type: 'array', items: { type: 'string', maxLength: 5 } };
    await backend.configuration.update(...home, { [`data-register:${name}`]: { configurationSchema } }, place);
    const response = await api.request('PATCH', pathOf(name), { body: { entries: ['much too long'] } });
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({
      type: 'urn:formgate:problem:invalid-request',
      errorMessage: expect.any(String),
    });
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: strings });
  });
});

describe('Common rule 1 and Authentication: who may call', () => {
  const methods: [string, string, unknown][] = [
    ['GET', '', undefined],
    ['POST', '', { name: 'towns', description: '' }],
    ['GET', '/towns', undefined],
    ['PATCH', '/towns', { description: '' }],
    ['DELETE', '/towns', undefined],
    ['GET', '/towns/entries', undefined],
  ];

  it.each(methods)('401: %s %s by a caller who is not authenticated', async (method, path, body) => {
    const foreign = await backend.access.foreignToken({ aud: 'urn:example:platform:form-service' }, { key: 'unknown' });
    const otherAudience = await roleToken(backend.access, { 'file-service': ['form-admin'] }, { realm: 'demo' });
    for (const token of [null, foreign, otherAudience, 'rubbish']) {
      const response = await api.request(method, path, { token, body });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
  });

  it.each(methods)('403: %s %s by a caller who has neither role', async (method, path, body) => {
    const roles = { 'form-service': ['intake-application'], 'configuration-service': ['configuration-reader'] };
    const token = await roleToken(backend.access, roles, { realm: 'demo', realmRoles: ['tenant-admin'] });
    expect((await api.request(method, path, { token, body })).status).toBe(403);
  });

  it('the role configuration-admin of the configuration service is enough, with that service as the only audience', async () => {
    const token = await roleToken(
      backend.access,
      { 'configuration-service': ['configuration-admin'] },
      { realm: 'demo' },
    );
    const name = backend.newName();
    expect((await api.request('POST', '', { token, body: { name, description: '' } })).status).toBe(201);
    for (const path of ['', pathOf(name), `${pathOf(name)}/entries`])
      expect((await api.request('GET', path, { token })).status).toBe(200);
    expect((await api.request('PATCH', pathOf(name), { token, body: { entries: strings } })).status).toBe(200);
    expect((await api.request('DELETE', pathOf(name), { token })).status).toBe(204);
  });

  it('a role configuration-admin of any other client is not', async () => {
    const token = await roleToken(backend.access, { 'form-service': ['configuration-admin'] }, { realm: 'demo' });
    expect((await api.request('GET', '', { token })).status).toBe(403);
  });

  it('404: a register of another tenant', async () => {
    const name = await create();
    const token = await roleToken(backend.access, { 'form-service': ['form-admin'] }, { realm: 'other' });
    expect((await api.request('GET', pathOf(name), { token })).status).toBe(404);
    expect((await api.request('PATCH', pathOf(name), { token, body: { entries: [] } })).status).toBe(404);
    expect((await api.request('DELETE', pathOf(name), { token })).status).toBe(404);
    expect((await api.request('GET', pathOf(name))).body).toMatchObject({ entries: strings });
    const { results } = (await api.request('GET', '?top=100', { token })).body as { results: { name: string }[] };
    expect(results.map((register) => register.name)).not.toContain(name);
  });

  it("403: a tenant's user who names another tenant", async () => {
    const path = `?tenantId=${encodeURIComponent('urn:example:platform:tenant-service:v2:/tenants/000000000000000000000000')}`;
    expect((await api.request('GET', path)).status).toBe(403);
  });
});

describe('Common rule 2: a core user must give the tenant in the query parameter tenantId', () => {
  const coreToken = () => roleToken(backend.access, { 'form-service': ['form-admin'] }, { realm: 'core' });

  it('200, 201, 204: with it, every method works in that tenant', async () => {
    const token = await coreToken();
    const query = `?tenantId=${encodeURIComponent(backend.tenant.id)}`;
    const name = backend.newName();
    const body = { name, description: 'Towns', entries: strings };
    expect((await api.request('POST', query, { token, body })).status).toBe(201);
    expect((await api.request('GET', `${pathOf(name)}${query}`, { token })).status).toBe(200);
    expect((await api.request('GET', pathOf(name))).status).toBe(200);
    expect((await api.request('PATCH', `${pathOf(name)}${query}`, { token, body: { entries: [] } })).status).toBe(200);
    expect((await api.request('GET', `${query}&top=100`, { token })).status).toBe(200);
    expect((await api.request('DELETE', `${pathOf(name)}${query}`, { token })).status).toBe(204);
  });

  it('400: without it, or with an unknown one', async () => {
    const token = await coreToken();
    const unknown = 'urn:example:platform:tenant-service:v2:/tenants/000000000000000000000000';
    for (const query of ['', '?tenantId=', `?tenantId=${encodeURIComponent(unknown)}`, '?tenantId=demo']) {
      const response = await api.request('GET', query, { token });
      expect(response.status).toBe(400);
      expect(response.body).toMatchObject({ errors: [{ pointer: '/query/tenantId' }] });
    }
  });
});

describe('Order of checks: 401, 403, tenant, validation, then the configuration service', () => {
  it.each([
    { method: 'PATCH', path: '/..%2Fx', body: { description: 'x' }, pointer: '/params/name' },
    { method: 'GET', path: '/..%2Fx', pointer: '/params/name' },
    { method: 'DELETE', path: '/..%2Fx', pointer: '/params/name' },
    { method: 'GET', path: '?top=x', pointer: '/query/top' },
  ])('each check of $method $path fails before the next one runs', async ({ method, path, body, pointer }) => {
    const noRole = await roleToken(backend.access, { 'form-service': [] }, { realm: 'core' });
    const core = await roleToken(backend.access, { 'form-service': ['form-admin'] }, { realm: 'core' });
    const down = await backend.start({ configurationUrl: 'http://127.0.0.1:9' });
    const ask = (token?: string | null) => down.request(method, path, { ...(token !== undefined && { token }), body });
    expect((await ask(null)).status).toBe(401);
    expect((await ask(noRole)).status).toBe(403);
    expect((await ask(core)).body).toMatchObject({ status: 400, errors: [{ pointer: '/query/tenantId' }] });
    expect((await ask()).body).toMatchObject({ status: 400, errors: [{ pointer }] });
    expect((await down.request(method, path.startsWith('?') ? '' : '/x', { body })).status).toBe(502);
  });

  it('each check of a create fails before the next one runs', async () => {
    const body = { name: '../x' };
    const noRole = await roleToken(backend.access, { 'form-service': [] }, { realm: 'core' });
    const core = await roleToken(backend.access, { 'form-service': ['form-admin'] }, { realm: 'core' });
    expect((await api.request('POST', '', { token: null, body })).status).toBe(401);
    expect((await api.request('POST', '', { token: noRole, body })).status).toBe(403);
    const noTenant = await api.request('POST', '', { token: core, body });
    expect(noTenant.body).toMatchObject({ status: 400, errors: [{ pointer: '/query/tenantId' }] });
    expect((await api.request('POST', '', { body })).body).toMatchObject({
      status: 400,
      errors: [{ pointer: '/name' }],
    });
    const down = await backend.start({ configurationUrl: 'http://127.0.0.1:9' });
    expect((await down.request('POST', '', { body })).status).toBe(400);
    expect((await down.request('POST', '', { body: { name: 'x', description: '' } })).status).toBe(502);
  });
});
