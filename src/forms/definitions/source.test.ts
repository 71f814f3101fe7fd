// Tests where definitions are read from, and how they are parsed.
import { describe, expect, it } from 'vitest';
import { parseDefinition } from './definition.ts';
import { createDefinitionSource } from './source.ts';

/** Creates a source that reads the given configurations, which are keyed by `namespace:name`. */
function sourceOf(configurations: Record<string, unknown>) {
  const asked: string[] = [];
  const source = createDefinitionSource({
    async activeOrLatest(namespace, name, place, read) {
      const flags = [read?.permission && 'permission', read?.isChosen && 'chosen', read?.lacks && 'lacks'];
      asked.push([`${namespace}:${name} of ${place.tenantId}`, ...flags.filter(Boolean)].join(', '));
      const configuration = configurations[`${namespace}:${name}`];
      return configuration === undefined ? undefined : { revision: 3, configuration };
    },
  });
  return { source, asked };
}

const permission = { permission: true };

describe('a definition', () => {
  it('is found in platform:form-service before form-service:<id>', async () => {
    const { source, asked } = sourceOf({
      'platform:form-service': { permit: { name: 'First home' } },
      'form-service:permit': { name: 'Second home' },
    });
    expect(await source.find('tenant', 'permit', permission)).toMatchObject({ id: 'permit', name: 'First home' });
    expect(asked).toEqual(['platform:form-service of tenant, permission']);
  });

  it('is found in form-service:<id> if platform:form-service has none', async () => {
    const { source } = sourceOf({ 'platform:form-service': {}, 'form-service:permit': { name: 'Second home' } });
    expect(await source.find('tenant', 'permit', permission)).toMatchObject({ id: 'permit', name: 'Second home' });
  });

  it('that is in no cached document is looked up again; only an id of the caller counts as made up', async () => {
    const { source, asked } = sourceOf({});
    await source.find('tenant', 'permit', { permission: false });
    expect(asked).toEqual([
      'platform:form-service of tenant',
      'form-service:permit of tenant, lacks',
      'platform:form-service of tenant, lacks',
    ]);
    await source.find('tenant', 'permit', { permission: true, isChosen: true });
    expect(asked[4]).toBe('form-service:permit of tenant, permission, chosen, lacks');
  });

  it.each(['constructor', 'toString', 'hasOwnProperty', 'a:b', ''])('named %j is not found by accident', async (id) => {
    const { source } = sourceOf({ 'platform:form-service': {}, 'form-service:x': {} });
    expect(await source.find('tenant', id, permission)).toBeUndefined();
  });

  it('that is empty does not exist', async () => {
    const { source } = sourceOf({ 'form-service:permit': {} });
    expect(await source.find('tenant', 'permit', permission)).toBeUndefined();
  });

  it('is parsed once while its configuration is unchanged', async () => {
    const { source } = sourceOf({ 'form-service:permit': { name: 'Permit' } });
    const first = await source.find('tenant', 'permit', permission);
    expect(await source.find('tenant', 'permit', permission)).toBe(first);
  });

  it('that is not valid is also parsed once, and each lookup throws its problem', async () => {
    let reads = 0;
    const configured = {
      get name() {
        reads += 1;
        return 5;
      },
    };
    const { source } = sourceOf({ 'form-service:permit': configured });
    const find = () => source.find('tenant', 'permit', permission);
    const problem = { slug: 'definition-invalid', errors: [{ pointer: '/name' }] };
    await expect(find()).rejects.toMatchObject(problem);
    const before = reads;
    await expect(find()).rejects.toMatchObject(problem);
    expect([before > 0, reads - before]).toEqual([true, 0]);
  });
});

describe('parseDefinition', () => {
  it('has defaults as the older platform has them', () => {
    expect(parseDefinition('permit', {})).toMatchObject({
      id: 'permit',
      name: 'permit',
      anonymousApply: false,
      applicantRoles: [],
      assessorRoles: [],
      clerkRoles: [],
      oneFormPerApplicant: true,
      dataSchema: {},
    });
  });

  it('keeps unknown fields', () => {
    expect(parseDefinition('permit', { ministry: 'Tests' })).toMatchObject({ configured: { ministry: 'Tests' } });
  });

  it.each([
    [null, ''],
    ['text', ''],
    [[], ''],
    [{ anonymousApply: 'yes' }, '/anonymousApply'],
    [{ applicantRoles: 'applicant' }, '/applicantRoles'],
    [{ clerkRoles: [1] }, '/clerkRoles/0'],
    [{ dataSchema: 'x' }, '/dataSchema'],
    [{ retention: { lockAfter: '15 days' } }, '/retention/lockAfter'],
    [{ retention: { lockAfter: 'P1M' } }, '/retention/lockAfter'],
  ])('calls %j unusable, with a pointer', (configured, pointer) => {
    let problem: unknown;
    try {
      parseDefinition('permit', configured);
    } catch (error) {
      problem = error;
    }
    expect(problem).toMatchObject({
      slug: 'definition-invalid',
      status: 409,
      errors: expect.arrayContaining([expect.objectContaining({ pointer })]),
    });
  });

  it('identifies the schema by its content', () => {
    const key = (dataSchema: object) => parseDefinition('permit', { dataSchema }).schemaKey;
    expect(key({ type: 'object' })).toBe(key({ type: 'object' }));
    expect(key({ type: 'object' })).not.toBe(key({ type: 'array' }));
  });
});
