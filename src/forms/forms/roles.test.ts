// Tests every action with every kind of caller in every form status, over HTTP. The tables contain the expected HTTP
// statuses.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anonymous, startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { roleToken } from '../../../test/support/platform.ts';
import { type Action, actions } from './catalogue.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

type Kind = 'anonymous' | 'alice';
type Status = 'Draft' | 'Locked' | 'Submitted' | 'Archived';
const statuses: Status[] = ['Draft', 'Locked', 'Submitted', 'Archived'];
const everybody: Who[] = ['intake', 'admin', 'alice', 'bob', 'clerk', 'assessor', 'nobody'];

/** A request for each action, without a code. */
const requests: Record<Action, (id: string, as: Who) => Promise<{ status: number; body: unknown }>> = {
  read: (id, as) => forms.ask('GET', `/${id}`, { as }),
  'read-history': (id, as) => forms.ask('GET', `/${id}/history`, { as }),
  'read-data': (id, as) => forms.ask('GET', `/${id}/data`, { as }),
  'update-data': (id, as) => forms.ask('PUT', `/${id}/data`, { as, body: { data: { name: 'Ana' }, files: {} } }),
  submit: (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'submit' } }),
  keep: (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'keep' } }),
  'send-code': (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'send-code' } }),
  unlock: (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'unlock' } }),
  archive: (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'archive' } }),
  'to-draft': (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'to-draft' } }),
  hold: (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'hold' } }),
  release: (id, as) => forms.ask('POST', `/${id}`, { as, body: { operation: 'release' } }),
  delete: (id, as) => forms.ask('DELETE', `/${id}`, { as }),
};

/**
 * The expected HTTP statuses for forms in the statuses Draft, Locked, Submitted and Archived. Callers that are not
 * listed get 403.
 */
const expected: Record<Action, Partial<Record<`${Kind} ${Who}`, number[]>>> = {
  read: {
    'anonymous intake': [200, 200, 200, 200],
    'anonymous admin': [200, 200, 200, 200],
    'anonymous clerk': [200, 200, 200, 200],
    'anonymous assessor': [200, 200, 200, 200],
    'alice admin': [200, 200, 200, 200],
    'alice alice': [200, 200, 200, 200],
    'alice clerk': [200, 200, 200, 200],
    'alice assessor': [200, 200, 200, 200],
  },
  'read-history': { 'anonymous admin': [200, 200, 200, 200], 'alice admin': [200, 200, 200, 200] },
  'read-data': {
    'anonymous intake': [400, 409, 400, 400],
    'anonymous admin': [200, 200, 200, 200],
    'anonymous clerk': [200, 409, 403, 403],
    'anonymous assessor': [403, 403, 200, 200],
    'alice admin': [200, 200, 200, 200],
    'alice alice': [200, 409, 200, 200],
    'alice clerk': [200, 409, 403, 403],
    'alice assessor': [403, 403, 200, 200],
  },
  'update-data': {
    'anonymous intake': [200, 409, 409, 409],
    'anonymous clerk': [200, 409, 409, 409],
    'alice alice': [200, 409, 409, 409],
    'alice clerk': [200, 409, 409, 409],
  },
  submit: {
    'anonymous intake': [200, 409, 409, 409],
    'anonymous clerk': [200, 409, 409, 409],
    'alice alice': [200, 409, 409, 409],
    'alice clerk': [200, 409, 409, 409],
  },
  keep: {
    'anonymous intake': [200, 409, 409, 409],
    'anonymous clerk': [200, 409, 409, 409],
    'alice alice': [200, 409, 409, 409],
    'alice clerk': [200, 409, 409, 409],
  },
  'send-code': { 'anonymous intake': [202, 409, 409, 409] },
  unlock: { 'anonymous admin': [409, 200, 409, 409], 'alice admin': [409, 200, 409, 409] },
  archive: { 'anonymous admin': [409, 409, 200, 409], 'alice admin': [409, 409, 200, 409] },
  'to-draft': {
    'anonymous admin': [409, 409, 200, 409],
    'anonymous assessor': [409, 409, 200, 409],
    'alice admin': [409, 409, 200, 409],
    'alice assessor': [409, 409, 200, 409],
  },
  hold: { 'anonymous admin': [200, 200, 200, 200], 'alice admin': [200, 200, 200, 200] },
  release: { 'anonymous admin': [200, 200, 200, 200], 'alice admin': [200, 200, 200, 200] },
  delete: {
    'anonymous intake': [400, 409, 409, 409],
    'anonymous admin': [204, 204, 204, 204],
    'alice admin': [204, 204, 204, 204],
    'alice alice': [204, 409, 409, 409],
  },
};

const made = new Map<string, Promise<string>>();

async function makeForm(kind: Kind, status: Status): Promise<string> {
  const id = await forms.draft({ as: kind === 'anonymous' ? 'intake' : 'alice' });
  await forms.pool.query(`UPDATE forms SET data = '{"name":"Ana"}' WHERE id = $1`, [id]);
  if (status !== 'Draft') await forms.setStatus(id, status);
  return id;
}

/** Returns the form of a kind and a status. Requests that change neither its data nor its status share this form. */
function sameForm(kind: Kind, status: Status): Promise<string> {
  const key = `${kind} ${status}`;
  const form = made.get(key) ?? makeForm(kind, status);
  made.set(key, form);
  return form;
}

it('tries every action of the catalogue', () => {
  expect(Object.keys(requests).sort()).toEqual(Object.keys(actions).sort());
});

describe.each(Object.keys(requests) as Action[])('%s', (action) => {
  describe.each(['anonymous', 'alice'] as Kind[])('of a form of %s', (kind) => {
    it.each(everybody)('admits %s as the table says, in every status', async (who) => {
      const allowed = expected[action][`${kind} ${who}`];
      const isChange = allowed && !action.startsWith('read') && action !== 'keep';
      const form = isChange ? makeForm : sameForm;
      const responses = statuses.map(async (status) => (await requests[action](await form(kind, status), who)).status);
      expect(await Promise.all(responses)).toEqual(allowed ?? [403, 403, 403, 403]);
    });
  });
});

describe('an intake application', () => {
  it('gets 403 on every row for a form that no intake application created for an anonymous applicant', async () => {
    const id = await forms.draft({ as: 'alice' });
    for (const [name, act] of Object.entries(requests)) {
      const response = await act(id, 'intake');
      expect([name, response.status]).toEqual([name, 403]);
      expect(response.body).toMatchObject({ detail: expect.stringMatching(/intake|may not/i) });
    }
    const coded = await forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': 'ABCDEF' } });
    expect(coded.status).toBe(403);
  });

  it('gets 403 on every row for the form of a person, whatever other roles its account has', async () => {
    const token = await forms.tokenWith({
      roles: ['intake-application', 'form-admin'],
      realmRoles: ['applicant', 'clerk', 'assessor'],
      subject: 'alice',
    });
    const id = await forms.draft({ as: 'alice' });
    const body = { data: { name: 'Ana' }, files: {} };
    for (const [method, path, sent] of [
      ['GET', '', undefined],
      ['GET', '/data', undefined],
      ['PUT', '/data', body],
      ['POST', '', { operation: 'submit' }],
      ['DELETE', '', undefined],
    ] as const) {
      expect([method, (await forms.ask(method, `/${id}${path}`, { token, body: sent })).status]).toEqual([method, 403]);
    }
    for (const query of ['', '?includeData=true']) expect((await forms.ask('GET', query, { token })).status).toBe(403);
    await forms.ask('DELETE', `/${id}`, { as: 'alice' });
    expect((await forms.ask('DELETE', `/${id}`, { token })).status).toBe(403);
  });

  it('may use forms that another intake application created', async () => {
    const id = await forms.draft();
    expect((await requests.read(id, 'otherIntake')).status).toBe(200);
    expect((await requests['update-data'](id, 'otherIntake')).status).toBe(200);
  });

  it('needs the code even if its account created the form and has an applicant role', async () => {
    const token = await forms.tokenWith({
      roles: ['intake-application'],
      realmRoles: ['applicant'],
      subject: 'intake',
    });
    const id = await forms.draft();
    expect((await forms.ask('GET', `/${id}/data`, { token })).status).toBe(400);
    expect((await forms.ask('DELETE', `/${id}`, { token })).status).toBe(400);
  });
});

describe('the creator', () => {
  it('who no longer has a role that may apply is 403', async () => {
    const subject = randomUUID();
    const token = await forms.tokenWith({ realmRoles: ['applicant'], subject });
    const { body } = await forms.ask('POST', '', { token, body: { definitionId: 'permit' } });
    const { id } = body as { id: string };
    const without = await forms.tokenWith({ subject });
    expect((await forms.ask('GET', `/${id}`, { token: without })).status).toBe(403);
    expect((await forms.ask('GET', `/${id}/data`, { token: without })).status).toBe(403);
    expect((await forms.ask('GET', `/${id}`, { token })).status).toBe(200);
  });

  it('is identified by issuer and subject: the same subject of another issuer is not the creator', async () => {
    const id = await forms.draft({ as: 'alice' });
    const { id: tenantId } = forms.platform.tenant;
    const token = await forms.tokenWith({ realm: 'core', realmRoles: ['applicant'], subject: 'alice' });
    const response = await forms.ask('GET', `/${id}?tenantId=${encodeURIComponent(tenantId)}`, { token });
    expect(response.status).toBe(403);
  });
});

describe('roles', () => {
  it('of the form service count as client roles, and as realm roles of the same name', async () => {
    const id = await forms.draft();
    const token = await forms.tokenWith({ realmRoles: ['form-admin'] });
    expect((await forms.ask('GET', `/${id}`, { token })).status).toBe(200);
  });

  it('of another service do not count', async () => {
    const { access } = forms.platform;
    const claims = { exp: Math.floor(Date.now() / 1000) + 86_400 };
    const roles = { 'form-service': [], 'other-service': ['form-admin', 'intake-application'] };
    const token = await roleToken(access, roles, { realm: 'demo', claims });
    const id = await forms.draft();
    for (const path of ['', `/${id}`, `/${id}/data`])
      expect((await forms.ask('GET', path, { token })).status).toBe(403);
  });

  it('in a definition may name another service’s role by its full name', async () => {
    const role = 'urn:example:platform:benefits:caseworker';
    await forms.define({
      id: 'benefit',
      name: 'Benefit',
      anonymousApply: false,
      applicantRoles: [],
      assessorRoles: [],
      clerkRoles: [role],
    });
    const claims = { exp: Math.floor(Date.now() / 1000) + 86_400 };
    const token = await roleToken(
      forms.platform.access,
      { 'form-service': [], benefits: ['caseworker'] },
      { realm: 'demo', claims },
    );
    expect((await forms.ask('POST', '', { token, body: { definitionId: 'benefit' } })).status).toBe(201);
  });
});

describe('tenants', () => {
  const core = (options: { roles?: string[] } = { roles: ['form-admin'] }) =>
    forms.tokenWith({ realm: 'core', ...options });
  const named = () => `tenantId=${encodeURIComponent(forms.platform.tenant.id)}`;

  it('another tenant’s form is 404, for every action and every role', async () => {
    const id = await forms.draft();
    for (const roles of [['form-admin'], ['intake-application']]) {
      const token = await forms.tokenWith({ realm: 'other', roles });
      for (const [method, path, body] of [
        ['GET', `/${id}`, undefined],
        ['GET', `/${id}/data`, undefined],
        ['PUT', `/${id}/data`, { data: {}, files: {} }],
        ['POST', `/${id}`, { operation: 'submit' }],
        ['POST', `/${id}`, { operation: 'unlock' }],
        ['DELETE', `/${id}`, undefined],
      ] as const) {
        const response = await forms.ask(method, path, { token, body });
        expect([method, path, response.status]).toEqual([method, path, 404]);
      }
    }
  });

  it('a core user names the tenant with tenantId', async () => {
    const id = await forms.draft();
    expect((await forms.ask('GET', `/${id}?${named()}`, { token: await core() })).status).toBe(200);
    expect((await forms.ask('GET', `?${named()}`, { token: await core() })).status).toBe(200);
  });

  it('a core intake application creates in the tenant that it names', async () => {
    const token = await core({ roles: ['intake-application'] });
    const body = { definitionId: 'permit', applicant: anonymous() };
    expect((await forms.ask('POST', `?${named()}`, { token, body })).status).toBe(201);
  });

  it('a core user without tenantId, or with an unknown one, is 400', async () => {
    const id = await forms.draft();
    const unknown = 'tenantId=urn:example:platform:tenant-service:v2:/tenants/nobody';
    for (const query of ['', `?${unknown}`]) {
      const response = await forms.ask('GET', `/${id}${query}`, { token: await core() });
      expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/tenantId' }] } });
    }
  });

  it('a tenant’s user may name its own tenant; another is 403', async () => {
    const id = await forms.draft();
    expect((await forms.ask('GET', `/${id}?${named()}`, { as: 'admin' })).status).toBe(200);
    const other = `tenantId=${encodeURIComponent(forms.platform.otherTenant.id)}`;
    expect((await forms.ask('GET', `/${id}?${other}`, { as: 'admin' })).status).toBe(403);
  });
});
