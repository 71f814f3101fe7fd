// Tests rules that concern several form endpoints: locked forms, page sizes, addresses in responses, the scope of
// idempotency keys, and which revision of a definition applies.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anonymous, configure, permit, startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { call, roleToken } from '../../../test/support/platform.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

const minute = 60_000;
const named = (tenant: { id: string }) => `?tenantId=${encodeURIComponent(tenant.id)}`;
const idOf = ({ body }: { body: unknown }) => (body as { id: string }).id;

describe('a locked form', () => {
  it.each([
    ['an intake application', 'intake', 'intake'],
    ['the applicant', 'alice', 'alice'],
  ] as const)(
    'is 409 form-locked for %s who reads, updates or submits, with or without a code',
    async (_, creator, as) => {
      const id = await forms.draft({ as: creator });
      await forms.setStatus(id, 'Locked');
      const asks = [
        forms.ask('GET', `/${id}/data`, { as }),
        forms.ask('GET', `/${id}/data?code=ABCDEF`, { as }),
        forms.ask('PUT', `/${id}/data`, { as, body: { data: {}, files: {} } }),
        forms.ask('POST', `/${id}`, { as, body: { operation: 'submit' } }),
        forms.ask('DELETE', `/${id}?code=ABCDEF`, { as }),
      ];
      for (const response of await Promise.all(asks))
        expect(response).toMatchObject({ status: 409, body: { type: 'urn:formgate:problem:form-locked' } });
      const { rowCount } = await forms.pool.query('SELECT FROM code_attempts WHERE form_id = $1', [id]);
      expect(rowCount).toBe(0);
    },
  );

  it('can be read by form-admin, with its form data', async () => {
    const id = await forms.draft();
    await forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'Ana' }, files: {} } });
    await forms.setStatus(id, 'Locked');
    expect((await forms.ask('GET', `/${id}`, { as: 'admin' })).body).toMatchObject({ status: 'Locked' });
    expect((await forms.ask('GET', `/${id}/data`, { as: 'admin' })).body).toMatchObject({ data: { name: 'Ana' } });
  });
});

describe('a page of forms', () => {
  it('has 25 forms by default, and 1 to 100 on request', async () => {
    await Promise.all(Array.from({ length: 30 }, () => forms.draft()));
    const sizeOf = async (query: string) =>
      ((await forms.ask('GET', query, { as: 'admin' })).body as { page: { size: number } }).page.size;
    expect(await sizeOf('')).toBe(25);
    expect(await sizeOf('?top=1')).toBe(1);
    expect(await sizeOf('?top=100')).toBeGreaterThanOrEqual(30);
  });
});

describe('the applicant’s addresses', () => {
  it('are in no response to the creator, to an assessor’s to-draft or to a save', async () => {
    const id = await forms.draft({ as: 'alice', applicant: anonymous('unseen@example.org') });
    const body = { data: { name: 'Alice' }, files: {} };
    const saved = await forms.ask('PUT', `/${id}/data`, { as: 'alice', body });
    const seen = await forms.ask('GET', `/${id}`, { as: 'alice' });
    const submitted = await forms.ask('POST', `/${id}`, { as: 'alice', body: { operation: 'submit' } });
    const back = await forms.ask('POST', `/${id}`, { as: 'assessor', body: { operation: 'to-draft' } });
    for (const response of [saved, seen, submitted, back]) {
      expect(response.status).toBe(200);
      expect(response.text).not.toMatch(/example\.org|channels/);
    }
  });
});

describe('an Idempotency-Key', () => {
  const tenantIds = () => [forms.platform.tenant, forms.platform.otherTenant] as const;

  it('belongs to one tenant: a core account’s same key in another tenant is another key', async () => {
    const [demo, other] = tenantIds();
    await configure({ ...forms.platform, tenant: other }, 'platform', 'form-service', { permit });
    forms.advance(6 * minute);
    const token = await forms.tokenWith({ realm: 'core', roles: ['intake-application'] });
    const headers = { 'idempotency-key': randomUUID() };
    const body = { definitionId: 'permit', applicant: anonymous() };
    const first = await forms.ask('POST', named(demo), { token, body, headers });
    const second = await forms.ask('POST', named(other), { token, body: { ...body, applicant: anonymous() }, headers });
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(idOf(second)).not.toBe(idOf(first));
  });

  it('belongs to one issuer: the same subject of another issuer has other keys', async () => {
    const [demo] = tenantIds();
    const subject = randomUUID();
    const roles = ['intake-application'];
    const own = await forms.tokenWith({ roles, subject });
    const core = await forms.tokenWith({ roles, subject, realm: 'core' });
    const headers = { 'idempotency-key': randomUUID() };
    const body = { definitionId: 'permit', applicant: anonymous() };
    const first = await forms.ask('POST', '', { token: own, body, headers });
    const second = await forms.ask('POST', named(demo), { token: core, body, headers });
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(idOf(second)).not.toBe(idOf(first));
  });

  it('belongs to one route: the key of a create submits, and one form’s key submits another form', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { definitionId: 'permit', applicant: anonymous() };
    const one = idOf(await forms.ask('POST', '', { as: 'intake', body, headers }));
    const other = await forms.draft();
    for (const id of [one, other]) {
      await forms.ask('PUT', `/${id}/data`, { as: 'intake', body: { data: { name: 'Ana' }, files: {} } });
      const submitted = await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'submit' }, headers });
      expect(submitted).toMatchObject({ status: 200, body: { id } });
    }
  });
});

describe('a definition', () => {
  const definitionsUrl = () =>
    `${forms.platform.url}/configuration/v2/configuration/platform/form-service${named(forms.platform.tenant)}`;

  it('is read from its active revision or, without one, from its latest', async () => {
    const token = await roleToken(
      forms.platform.access,
      { 'configuration-service': ['configuration-admin'] },
      { realm: 'core' },
    );
    const change = async (body: object) =>
      ((await call(definitionsUrl(), { method: 'POST', token, body })).body as { latest?: { revision: number } }).latest
        ?.revision;
    const ask = async () => (await forms.ask('POST', '', { as: 'intake', body: request })).status;
    const request = { definitionId: 'pinned', applicant: anonymous() };

    await forms.define({ ...permit, id: 'pinned' });
    expect(await ask()).toBe(201);
    const revision = ((await change({ operation: 'CREATE-REVISION' })) ?? 0) - 1;
    await change({ operation: 'SET-ACTIVE-REVISION', revision });
    await forms.define({ ...permit, id: 'pinned', anonymousApply: false });
    expect(await ask()).toBe(201);
    await change({ operation: 'SET-ACTIVE-REVISION', revision: revision + 1 });
    forms.advance(6 * minute);
    expect(await ask()).toBe(403);
  });

  it('that no longer permits anonymous applicants refuses a create after at most five minutes', async () => {
    await forms.define({ ...permit, id: 'closing' });
    const body = { definitionId: 'closing', applicant: anonymous() };
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(201);
    await configure(forms.platform, 'platform', 'form-service', {
      closing: { ...permit, id: 'closing', anonymousApply: false },
    });
    forms.advance(5 * minute);
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(403);
  });
});

describe('the audience of a token', () => {
  it('may be the configuration service only on register routes: every form route returns 401', async () => {
    const { access } = forms.platform;
    const claims = { exp: Math.floor(Date.now() / 1000) + 86_400 };
    const token = await roleToken(
      access,
      { 'configuration-service': ['configuration-admin'] },
      { realm: 'demo', realmRoles: ['form-admin', 'intake-application'], claims },
    );
    expect((await call(`${forms.url}/form/v1/registers`, { token })).status).toBe(200);
    const id = randomUUID();
    for (const [method, path] of [
      ['POST', ''],
      ['GET', ''],
      ['GET', `/${id}`],
      ['POST', `/${id}`],
      ['DELETE', `/${id}`],
      ['GET', `/${id}/data`],
      ['PUT', `/${id}/data`],
    ] as const)
      expect([method, path, (await forms.ask(method, path, { token })).status]).toEqual([method, path, 401]);
  });
});
