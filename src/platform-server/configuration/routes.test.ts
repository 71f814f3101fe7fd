import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, roleToken, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';

let platform: TestPlatform;
let base: string;
/** The token of a core service that may list, write, set the active revision and delete. */
let service: string;
/** The token of an administrator of the tenant Demo. */
let admin: string;
let reader: string;

const role = (...roles: string[]) => ({ 'configuration-service': roles });
const urlOf = (path: string, query: Record<string, string> = {}) => `${base}/${path}?${new URLSearchParams(query)}`;
const ofTenant = (query: Record<string, string> = {}) => ({ tenantId: platform.tenant.id, ...query });
const get = (path: string, token?: string, query?: Record<string, string>) => call(urlOf(path, query), { token });

async function patch(path: string, body: unknown, token = admin, query?: Record<string, string>) {
  return call(urlOf(path, query), { method: 'PATCH', token, body });
}
async function post(path: string, body: unknown, token = admin, query?: Record<string, string>) {
  return call(urlOf(path, query), { method: 'POST', token, body });
}
const replace = (path: string, configuration: unknown, token = admin, query?: Record<string, string>) =>
  patch(path, { operation: 'REPLACE', configuration }, token, query);

async function define(key: string, definition: Record<string, unknown>, token = admin) {
  const answered = await patch(
    'platform/configuration-service',
    { operation: 'UPDATE', update: { [key]: definition } },
    token,
  );
  expect(answered.status).toBe(200);
}

beforeAll(async () => {
  platform = await startTestPlatform();
  base = `${platform.url}/configuration/v2/configuration`;
  service = await roleToken(platform.access, role('configured-service', 'configuration-admin'));
  admin = await roleToken(platform.access, role('configuration-admin'), { realm: 'demo' });
  reader = await roleToken(platform.access, role('configuration-reader'), { realm: 'demo' });
});

afterAll(() => platform.close());

describe('whose configuration', () => {
  it("a core caller addresses core configuration, or the tenant's that tenantId names", async () => {
    await replace('scope/one', { of: 'core' }, service);
    await replace('scope/one', { of: 'tenant' }, service, ofTenant());
    expect((await get('scope/one/latest', service)).body).toEqual({ of: 'core' });
    expect((await get('scope/one/latest', service, ofTenant())).body).toEqual({ of: 'tenant' });
  });

  it('a tenant caller addresses its own tenant; tenantId is ignored', async () => {
    await replace('scope/two', { of: 'demo' });
    const other = await roleToken(platform.access, role('configuration-admin'), { realm: 'other' });
    await replace('scope/two', { of: 'other' }, other);
    expect((await get('scope/two/latest', admin, { tenantId: platform.otherTenant.id })).body).toEqual({ of: 'demo' });
  });

  it('a tenant caller reads core configuration with any value of core, but only the configuration and its latest revision', async () => {
    await replace('scope/three', { of: 'core' }, service);
    for (const core of ['', 'true', 'no']) {
      expect((await get('scope/three/latest', reader, { core })).body).toEqual({ of: 'core' });
      expect((await get('scope/three', reader, { core })).body).toMatchObject({
        latest: { configuration: { of: 'core' } },
      });
    }
    expect((await get('scope/three/active', reader, { core: '', orLatest: 'true' })).text).toBe('');
    expect((await get('scope/three/revisions', reader, { core: '' })).body).toMatchObject({ results: [] });
    expect((await get('scope/three/revisions/0', reader, { core: '' })).status).toBe(404);
  });

  it('an unknown tenantId of a core caller gets 400', async () => {
    for (const tenantId of ['nonsense', platform.access.urns.tenant('000000000000000000000000'), ''])
      expect((await get('scope/one', service, { tenantId })).status).toBe(400);
  });
});

describe('reads', () => {
  it('a configuration that does not exist reads as null, {}, an empty body or an empty page', async () => {
    expect((await get('none/such', reader)).body).toEqual({
      urn: 'urn:example:platform:configuration-service:v2:/configuration/none/such',
      namespace: 'none',
      name: 'such',
      latest: null,
      active: null,
    });
    expect((await get('none/such/latest', reader)).body).toEqual({});
    const active = await get('none/such/active', reader);
    expect([active.status, active.text]).toEqual([200, '']);
    expect((await get('none/such/active', reader, { orLatest: 'true' })).text).toBe('');
    expect((await get('none/such/revisions', reader)).body).toMatchObject({ results: [], page: { size: 0, total: 0 } });
    expect((await get('none/such/revisions/0', reader)).status).toBe(404);
  });

  it('/active returns the pinned revision or, with orLatest, the latest if none is pinned', async () => {
    await replace('reads/pin', ['a']);
    expect((await get('reads/pin/active', reader)).text).toBe('');
    expect((await get('reads/pin/active', reader, { orLatest: 'true' })).body).toMatchObject({
      revision: 0,
      configuration: ['a'],
    });
    await post('reads/pin', { operation: 'CREATE-REVISION' });
    await replace('reads/pin', ['b']);
    await post('reads/pin', { operation: 'SET-ACTIVE-REVISION', revision: 0 });
    expect((await get('reads/pin/active', reader)).body).toEqual({
      revision: 0,
      created: expect.any(String),
      lastUpdated: expect.any(String),
      configuration: ['a'],
    });
    expect((await get('reads/pin', reader)).body).toMatchObject({
      latest: { revision: 1, configuration: ['b'] },
      active: { revision: 0, configuration: ['a'] },
    });
  });

  it('the order of members is kept', async () => {
    const value = { zeta: 1, alpha: { y: 1, b: 2, aaaa: 3 }, m: [] };
    await replace('reads/order', value);
    expect((await get('reads/order/latest', reader)).text).toBe(JSON.stringify(value));
  });

  it('revisions are listed newest first, page by page, with their total', async () => {
    await replace('reads/history', { n: 0 });
    for (let n = 1; n < 5; n += 1) await post('reads/history', { operation: 'CREATE-REVISION' });
    const seen: number[] = [];
    let after: string | undefined;
    do {
      const { body } = (await get('reads/history/revisions', reader, { top: '2', ...(after && { after }) })) as {
        body: { results: { revision: number }[]; page: { next: string | null; total: number } };
      };
      expect(body.page.total).toBe(5);
      seen.push(...body.results.map(({ revision }) => revision));
      after = body.page.next ?? undefined;
    } while (after);
    expect(seen).toEqual([4, 3, 2, 1, 0]);
  });

  it('top is 1 to 5000 for revisions', async () => {
    for (const top of ['0', '5001', 'x'])
      expect((await get('reads/history/revisions', reader, { top })).status).toBe(400);
    expect((await get('reads/history/revisions', reader, { top: '5000' })).status).toBe(200);
  });
});

describe('the list of a namespace', () => {
  beforeAll(async () => {
    for (let n = 0; n < 12; n += 1)
      await replace(`listed/entry ${String(n).padStart(2, '0')}`, { n, kind: n % 2 ? 'odd' : 'even' });
    await post('listed/entry 03', { operation: 'SET-ACTIVE-REVISION', revision: 0 });
  });

  interface Listed {
    results: { name: string; latest: unknown; active?: unknown }[];
    page: { after: string | null; next: string | null; size: number; total: number };
  }
  const list = async (query: Record<string, string> = {}, token = admin) =>
    (await get('listed', token, query)).body as Listed;

  it('has 10 entries by default, sorted by name, with total and next', async () => {
    const { results, page } = await list();
    expect(results.map(({ name }) => name)).toEqual(
      Array.from({ length: 10 }, (_, n) => `entry ${String(n).padStart(2, '0')}`),
    );
    expect(page).toMatchObject({ after: null, size: 10, total: 12, next: expect.any(String) });
  });

  it('continues at next, lists each entry once although one is added between two pages, and ends', async () => {
    const first = await list({ top: '5' });
    await replace('listed/entry 005', { n: 'late' });
    const second = await list({ top: '5', after: first.page.next ?? '' });
    const third = await list({ top: '5', after: second.page.next ?? '' });
    await call(urlOf('listed/entry 005'), { method: 'DELETE', token: admin });
    expect([...first.results, ...second.results, ...third.results].map(({ name }) => name)).toHaveLength(12);
    expect([first.page.next, second.page.next, third.page.next]).toEqual([
      expect.any(String),
      expect.any(String),
      null,
    ]);
    expect(second.page.after).toBe(first.page.next);
  });

  it('holds the active revision only with includeActive=true', async () => {
    expect((await list()).results[3]).not.toHaveProperty('active');
    const { results } = await list({ includeActive: 'true' });
    expect(results[3]).toMatchObject({ active: { revision: 0 } });
    expect(results[4]).toMatchObject({ active: null });
  });

  it('top is at most 1000', async () => {
    expect((await get('listed', admin, { top: '1001' })).status).toBe(400);
    expect((await get('listed', admin, { top: '1000' })).status).toBe(200);
  });

  it('criteria select by part of the name, by creation and by fields of the configuration; all must match or, with useOr, any', async () => {
    const names = async (criteria: unknown) =>
      (await list({ top: '100', criteria: JSON.stringify(criteria) })).results.map(({ name }) => name);
    expect(await names({ nameContains: 'ENTRY 1' })).toEqual(['entry 10', 'entry 11']);
    expect(await names({ kind: 'odd', nameContains: 'entry 1' })).toEqual(['entry 11']);
    expect(await names({ n: 3, nameContains: 'entry 1', useOr: true })).toEqual(['entry 03', 'entry 10', 'entry 11']);
    expect(await names({ createDateAfter: '2999-01-01T00:00:00Z' })).toEqual([]);
    expect(await names({ createDateBefore: '2999-01-01T00:00:00Z' })).toHaveLength(12);
    expect(await names({ "kind' OR 1=1 --": 'x' })).toEqual([]);
  });

  it('malformed criteria or cursors get 400 with a pointer', async () => {
    for (const query of [
      { criteria: '{' },
      { criteria: '[]' },
      { criteria: '{"useOr":"x"}' },
      { after: 'MTA=' },
      { after: 'x' },
    ]) {
      const answered = await get('listed', admin, query);
      expect(answered.status).toBe(400);
      expect(answered.body).toMatchObject({
        errors: [{ pointer: expect.stringMatching(/^\/query\/(criteria|after)$/) }],
      });
    }
  });

  it("shows one tenant's entries only", async () => {
    const other = await roleToken(platform.access, role('configuration-admin'), { realm: 'other' });
    expect((await list({}, other)).page.total).toBe(0);
    expect((await get('listed', service)).body).toMatchObject({ page: { total: 0 } });
    expect((await get('listed', service, ofTenant())).body).toMatchObject({ page: { total: 12 } });
  });
});

describe('roles', () => {
  const urns = { resolver: 'directory-service', exporter: 'export-service' };
  const cases: {
    title: string;
    roles: Record<string, string[]>;
    read: number;
    patch: number;
    post: number;
    list: number;
    coreList: number;
  }[] = [
    {
      title: 'configuration-reader',
      roles: role('configuration-reader'),
      read: 200,
      patch: 403,
      post: 403,
      list: 403,
      coreList: 403,
    },
    {
      title: 'configuration-admin',
      roles: role('configuration-admin'),
      read: 200,
      patch: 200,
      post: 200,
      list: 200,
      coreList: 403,
    },
    {
      title: 'configured-service',
      roles: role('configured-service'),
      read: 200,
      patch: 200,
      post: 403,
      list: 200,
      coreList: 200,
    },
    {
      title: 'resource-resolver of the directory',
      roles: { [urns.resolver]: ['resource-resolver'] },
      read: 200,
      patch: 403,
      post: 403,
      list: 403,
      coreList: 403,
    },
    {
      title: 'export-job of the export service',
      roles: { [urns.exporter]: ['export-job'] },
      read: 200,
      patch: 403,
      post: 403,
      list: 200,
      coreList: 200,
    },
    {
      title: 'a like-named role of another service',
      roles: { 'form-service': ['configuration-admin'] },
      read: 403,
      patch: 403,
      post: 403,
      list: 403,
      coreList: 403,
    },
    { title: 'no role', roles: {}, read: 403, patch: 403, post: 403, list: 403, coreList: 403 },
  ];

  it.each(cases)(
    '$title: read $read, PATCH $patch, POST and DELETE $post, list $list, list by core $coreList',
    async (expected) => {
      const token = await roleToken(platform.access, expected.roles, { realm: 'demo' });
      const core = await roleToken(platform.access, expected.roles);
      expect((await get('roles/x', token)).status).toBe(expected.read);
      expect((await get('roles/x/latest', token)).status).toBe(expected.read);
      expect((await get('roles/x/active', token)).status).toBe(expected.read);
      expect((await get('roles/x/revisions', token)).status).toBe(expected.read);
      expect((await replace('roles/x', { a: 1 }, token)).status).toBe(expected.patch);
      expect((await post('roles/x', { operation: 'CREATE-REVISION' }, token)).status).toBe(expected.post);
      expect((await call(urlOf('roles/x'), { method: 'DELETE', token })).status).toBe(expected.post);
      expect((await get('roles', token)).status).toBe(expected.list);
      expect((await get('roles', core, ofTenant())).status).toBe(expected.coreList);
    },
  );

  it('a realm role of the same name passes', async () => {
    const token = await roleToken(platform.access, {}, { realm: 'demo', realmRoles: ['configuration-reader'] });
    expect((await get('roles/x', token)).status).toBe(200);
  });

  it('a token for any audience is accepted', async () => {
    const token = await roleToken(platform.access, role('configuration-reader'), {
      realm: 'demo',
      audience: ['something-else'],
    });
    expect((await get('roles/x', token)).status).toBe(200);
  });

  it('a request without a valid token gets 401', async () => {
    expect((await get('roles/x')).status).toBe(401);
    expect((await get('roles')).status).toBe(401);
    expect((await get('roles/x/latest', 'nonsense')).status).toBe(401);
    expect((await call(urlOf('roles/x'), { method: 'PATCH', body: {} })).status).toBe(401);
    expect((await call(urlOf('roles/x'), { method: 'DELETE' })).status).toBe(401);
  });
});

describe('anonymous read', () => {
  beforeAll(async () => {
    await define('open:list', { configurationSchema: {}, anonymousRead: true });
    await define('closed:list', { configurationSchema: {} });
    for (const path of ['open/list', 'open/other', 'closed/list']) await replace(path, ['x']);
    await replace('open/list', ['of core'], service);
  });

  it('returns latest and active if the definition has anonymousRead, for the tenant that tenant or tenantId names', async () => {
    for (const query of [{ tenantId: platform.tenant.id }, { tenant: platform.tenant.id }, { tenant: 'demo' }]) {
      expect((await get('open/list/latest', undefined, query)).body).toEqual(['x']);
      expect((await get('open/list/active', undefined, { ...query, orLatest: 'true' })).body).toMatchObject({
        configuration: ['x'],
      });
    }
  });

  it('gets 401 without the flag, without a definition, for another tenant, and without a tenant', async () => {
    const id = { tenantId: platform.tenant.id };
    expect((await get('closed/list/latest', undefined, id)).status).toBe(401);
    expect((await get('open/other/latest', undefined, id)).status).toBe(401);
    expect((await get('open/list/latest', undefined, { tenantId: platform.otherTenant.id })).status).toBe(401);
    expect((await get('open/list/latest', undefined, { tenantId: 'nobody' })).status).toBe(401);
    expect((await get('open/list/latest')).status).toBe(401);
  });

  it("a tenant's flag never opens core's configuration of the same name", async () => {
    expect((await get('open/list/latest', undefined, { tenantId: platform.tenant.id, core: '' })).status).toBe(401);
  });

  it('core’s flag opens the configuration of a named tenant and, with the parameter core, that of core; without a tenant, it is 401', async () => {
    await define('flagged:list', { configurationSchema: {}, anonymousRead: true }, service);
    await replace('flagged/list', ['core'], service);
    await replace('flagged/list', ['tenant']);
    const query = { tenantId: platform.tenant.id };
    expect((await get('flagged/list/latest', undefined, query)).body).toEqual(['tenant']);
    expect((await get('flagged/list/latest', undefined, { ...query, core: '' })).body).toEqual(['core']);
    expect((await get('flagged/list/latest')).status).toBe(401);
    expect((await get('flagged/list/latest', undefined, { core: '' })).status).toBe(401);
  });

  it('gets 401 everywhere else', async () => {
    for (const path of ['open/list', 'open', 'open/list/revisions', 'open/list/revisions/0'])
      expect((await get(path, undefined, { tenantId: platform.tenant.id })).status).toBe(401);
  });
});

describe('names', () => {
  it('have 1 to 50 letters, digits, spaces, hyphens and underscores', async () => {
    for (const name of ['a', 'A b-c_9', 'x'.repeat(50), ' lead'])
      expect((await get(`names/${encodeURIComponent(name)}`, reader)).status).toBe(200);
  });

  it('of any other form get 400 or 404, and never lead to another resource', async () => {
    for (const name of ['a:b', 'x'.repeat(51), 'é', '😀', 'a\u00a0', 'a.b', '../x', '%2e%2e', 'a/b', "a'b", 'a\0b'])
      expect([400, 404]).toContain((await get(`names/${encodeURIComponent(name)}`, reader)).status);
  });
});
