// Tests who may list and release quarantined items over the API.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { call } from '../../../test/support/platform.ts';
import { putInQuarantine } from '../../service/quarantine/quarantine-store.ts';
import { quarantineItem, quarantineList } from './schema.ts';

let forms: TestForms;
let core: string;
let other: string;
beforeAll(async () => {
  forms = await startTestForms();
  core = await forms.tokenWith({ realm: 'core', roles: ['form-admin'] });
  other = await forms.tokenWith({ realm: 'other', roles: ['form-admin'] });
});
afterAll(() => forms.close());
beforeEach(() => forms.pool.query('TRUNCATE quarantine'));

const ask = (method: string, path = '', token = forms.token('admin'), body?: unknown) =>
  call(`${forms.url}/form/v1/quarantine${path}`, { method, token, body });

interface ItemPage {
  results: { id: string; kind: string; tenantId: string | null; released: boolean }[];
  page: { next: string | null; size: number };
}
const list = async (query = '', token?: string) => (await ask('GET', query, token)).body as ItemPage;

async function add(count: number, changes: { tenantId?: string | null; kind?: string } = {}): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const formId = randomUUID();
    const { tenantId = forms.platform.tenant.id, kind = 'lock' } = changes;
    const about = { formId, definitionId: 'permit' };
    const item = { kind, item: formId, tenantId, about, reason: 'database-refused', detail: 'SQLSTATE 22P05' } as const;
    await putInQuarantine(forms.pool, [item], new Date(Date.now() + at));
  }
}

describe('GET /form/v1/quarantine', () => {
  it('shows an administrator the items of their tenant, and a core user those of all tenants or of one', async () => {
    await add(2);
    await add(1, { tenantId: forms.platform.otherTenant.id });
    await add(1, { tenantId: null, kind: 'core-client' });
    const tenantsIn = async (query: string, token?: string) =>
      (await list(query, token)).results.map(({ tenantId }) => tenantId);
    const [own, foreign] = [forms.platform.tenant.id, forms.platform.otherTenant.id];
    expect(await tenantsIn('')).toEqual([own, own]);
    expect(await tenantsIn('', other)).toEqual([foreign]);
    expect(new Set(await tenantsIn('', core))).toEqual(new Set([null, own, foreign]));
    expect(await tenantsIn(`?tenantId=${encodeURIComponent(own)}`, core)).toEqual([own, own]);
    expect((await ask('GET', `?tenantId=${encodeURIComponent(foreign)}`)).status).toBe(403);
    expect((await ask('GET', '?tenantId=urn:nobody', core)).status).toBe(400);
  });

  it('requires the role form-admin', async () => {
    for (const who of ['intake', 'alice', 'clerk', 'assessor', 'nobody'] as const)
      expect([who, (await ask('GET', '', forms.token(who))).status]).toEqual([who, 403]);
    expect((await ask('GET', '', 'nonsense')).status).toBe(401);
  });

  it('responds with filtered pages, newest first, according to its schema', async () => {
    await add(5);
    await add(1, { kind: 'delete' });
    expect(quarantineList.parse(await list())).toMatchObject({ page: { after: null, next: null, size: 6 } });
    expect((await list('?kind=delete')).results.map(({ kind }) => kind)).toEqual(['delete']);
    expect((await list('?reason=service-refused')).results).toEqual([]);
    const seen: string[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const { results, page }: ItemPage = await list(`?top=2&after=${after}`);
      seen.push(...results.map(({ id }) => id));
      after = page.next;
    }
    expect(seen).toHaveLength(6);
    expect(new Set(seen).size).toBe(6);
    expect((await ask('GET', '?after=nonsense')).status).toBe(400);
  });
});

describe('POST /form/v1/quarantine/{itemId}', () => {
  const release = { operation: 'release' };

  it('releases an item of the caller’s tenant once; an item of another tenant is 404', async () => {
    await add(1);
    const [item] = (await list()).results;
    expect(quarantineItem.parse(item)).toMatchObject({ released: false });
    expect((await ask('POST', `/${item?.id}`, other, release)).status).toBe(404);
    expect(await ask('POST', `/${item?.id}`, undefined, release)).toMatchObject({
      status: 200,
      body: { id: item?.id, released: true },
    });
    expect((await list()).results).toMatchObject([{ released: true }]);
    expect((await ask('POST', `/${item?.id}`, undefined, release)).status).toBe(404);
  });

  it('lets a core user release every item', async () => {
    await add(1);
    const [item] = (await list()).results;
    expect((await ask('POST', `/${item?.id}`, core, release)).status).toBe(200);
    // The administrators of the tenant find the release in their audit trail.
    const audits = () => forms.log.lines().flatMap(({ audit }) => (audit ? [audit as object] : []));
    const event = { action: 'quarantine.release', object: { id: item?.id }, tenant: item?.tenantId };
    await expect.poll(() => audits().at(-1)).toMatchObject(event);
  });

  it('refuses other operations and other callers', async () => {
    expect((await ask('POST', `/${randomUUID()}`, undefined, { operation: 'delete' })).status).toBe(400);
    expect((await ask('POST', '/1', undefined, release)).status).toBe(400);
    expect((await ask('POST', `/${randomUUID()}`, forms.token('clerk'), release)).status).toBe(403);
  });
});

it('the metrics count quarantined items by kind and reason', async () => {
  await add(2);
  const text = (await call(`${forms.metricsUrl}/metrics`)).text;
  expect(text).toContain('formgate_quarantined_items{kind="lock",reason="database-refused"} 2');
});
