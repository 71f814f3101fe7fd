// Tests the routes that list form definitions and read one: what they return, and who may call them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configure, permit, startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { type Answered, call, roleToken } from '../../../test/support/platform.ts';
import { parseDefinition } from './definition.ts';
import { createDefinitionTexts } from './definition-texts.ts';
import { definitionList, definitionResponse } from './schema.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
  const broken = { id: 'broken', name: 'A broken one', dataSchema: { type: 'nonsense' } };
  await configure(forms.platform, 'form-service', 'broken', broken);
  const own = {
    id: 'own',
    name: `Own ${'x'.repeat(1_000)}`,
    anonymousApply: false,
    dataSchema: { type: 'object' },
    other: 1,
  };
  await configure(forms.platform, 'form-service', 'own', own);
  // The collection `platform:form-service` also contains a definition `permit`, which takes precedence over this one.
  await configure(forms.platform, 'form-service', 'permit', { ...permit, name: 'Hidden' });
});
afterAll(() => forms.close());

const ask = (path = '', token = forms.token('admin')): Promise<Answered> =>
  call(`${forms.url}/form/v1/definitions${path}`, { token });

describe('GET /form/v1/definitions', () => {
  it('lists the definitions of both places by name, also those that cannot be used', async () => {
    expect(definitionList.parse((await ask()).body)).toEqual({
      results: [
        { id: 'broken', name: 'A broken one', source: 'document', anonymousApply: false },
        { id: 'own', name: `Own ${'x'.repeat(196)}`, source: 'document', anonymousApply: false },
        { id: 'permit', name: 'Permit', source: 'collection', anonymousApply: true },
      ],
      truncated: false,
    });
  });

  it('lists a new definition within ten seconds', async () => {
    await ask();
    await configure(forms.platform, 'form-service', 'fresh', { id: 'fresh', name: 'Fresh' });
    forms.advance(10_000);
    expect(definitionList.parse((await ask()).body).results.map(({ id }) => id)).toContain('fresh');
  });
});

describe('GET /form/v1/definitions/{definitionId}', () => {
  it('returns the definition as forms use it, from both places', async () => {
    const used = definitionResponse.parse((await ask('/permit')).body);
    expect(used).toEqual({ ...permit, oneFormPerApplicant: false });
    expect((await ask('/own')).body).toMatchObject({
      id: 'own',
      dataSchema: { type: 'object' },
      clerkRoles: [],
      other: 1,
    });
  });

  it('is shown to an intake application as to people without an account, even if it is also form-admin', async () => {
    const token = await forms.tokenWith({ roles: ['form-admin', 'intake-application'] });
    const { body } = await ask('/permit', token);
    expect(body).toEqual((await ask('/permit', forms.token('intake'))).body);
    expect(body).not.toHaveProperty('clerkRoles');
    expect((await ask('/own', token)).status).toBe(403);
  });

  it('is 404 for an unknown one, and 400 for an invalid id', async () => {
    expect((await ask('/nothing')).status).toBe(404);
    expect((await ask('/a%2Fb')).status).toBe(400);
  });
});

it.each(['', '/permit'])(
  'GET /form/v1/definitions%s is for form-admin and configuration-admin of the tenant, and not for callers without a role',
  async (path) => {
    const access = forms.platform.access;
    const configurationAdmin = await roleToken(
      access,
      { 'configuration-service': ['configuration-admin'] },
      { realm: 'demo', claims: { exp: Math.floor(forms.now().getTime() / 1000) + 3_600 } },
    );
    expect((await ask(path, configurationAdmin)).status).toBe(200);
    const others: Who[] = path === '' ? ['intake', 'alice', 'clerk', 'assessor', 'nobody'] : ['nobody'];
    for (const who of others) expect([who, (await ask(path, forms.token(who))).status]).toEqual([who, 403]);
    expect((await ask(path, 'nonsense')).status).toBe(401);
    const core = await forms.tokenWith({ realm: 'core', roles: ['form-admin'] });
    expect((await ask(path, core)).status).toBe(400);
    const own = `?tenantId=${encodeURIComponent(forms.platform.tenant.id)}`;
    expect((await ask(`${path}${own}`, core)).status).toBe(200);
    const other = await forms.tokenWith({ realm: 'other', roles: ['form-admin'] });
    expect((await ask(`${path}${own}`, other)).status).toBe(403);
  },
);

it.each<Who>(['intake', 'alice', 'clerk', 'assessor'])(
  'GET /form/v1/definitions/permit gives %s what is needed to show the form, and nothing about roles',
  async (who) => {
    const { status, body } = await ask('/permit', forms.token(who));
    expect(status).toBe(200);
    const { id, name, description, anonymousApply, dataSchema, uiSchema } = {
      description: undefined,
      uiSchema: undefined,
      ...permit,
    };
    expect(body).toEqual(JSON.parse(JSON.stringify({ id, name, description, anonymousApply, dataSchema, uiSchema })));
    // The definition `own` allows no anonymous applicants, and names none of the callers' roles.
    expect((await ask('/own', forms.token(who))).status).toBe(403);
  },
);

it('a definition that says the language of its texts says it to everyone who may read it', () => {
  const textOf = createDefinitionTexts(() => new Date());
  const languageOf = (language: unknown, isManager: boolean) =>
    JSON.parse(textOf('demo', parseDefinition('permit', { ...permit, language }), isManager).toString()).language;
  expect([languageOf('fr', false), languageOf('fr', true), languageOf(1, false)]).toEqual(['fr', 'fr', undefined]);
});
