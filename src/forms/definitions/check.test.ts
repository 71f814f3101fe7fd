// Tests POST /form/v1/definitions/check: which problems it reports, with which pointers, and who may call it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { configure, permit, startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { type Answered, call, roleToken } from '../../../test/support/platform.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createSchemaValidator } from './schema-validator.ts';

interface Checked {
  problems: { pointer: string; detail: string; severity: string }[];
  truncated: boolean;
}

const register = (name: string) => `urn:example:platform:configuration:v2:/configuration/data-register/${name}`;
let forms: TestForms;

beforeAll(async () => {
  forms = await startTestForms();
  for (const name of ['open', 'closed']) await create(name, name === 'open');
  const definition = { configurationSchema: { type: 'array' }, anonymousRead: true };
  await configure(forms.platform, 'platform', 'configuration-service', { 'data-register:empty': definition });
});
afterAll(() => forms.close());

async function create(name: string, anonymousRead: boolean): Promise<void> {
  const body = { name, entries: ['one'] };
  const { status } = await call(`${forms.url}/form/v1/registers`, {
    method: 'POST',
    token: forms.token('admin'),
    body,
  });
  expect(status).toBe(201);
  await configure(forms.platform, 'platform', 'configuration-service', {
    [`data-register:${name}`]: { anonymousRead },
  });
}

const ask = (body: unknown, as: Who | string = 'admin', query = ''): Promise<Answered> =>
  call(`${forms.url}/form/v1/definitions/check${query}`, {
    method: 'POST',
    token: as.length > 20 ? as : forms.token(as as Who),
    body,
  });

async function problems(definition: unknown): Promise<Checked['problems']> {
  // Each check has its own caller, because a caller may check only 60 definitions a minute.
  const { status, body, text } = await ask(definition, await forms.tokenWith({ roles: ['form-admin'] }));
  expect(status, text).toBe(200);
  return (body as Checked).problems;
}

const control = (scope: string, more: object = {}) => ({ type: 'Control', scope: `#/properties/${scope}`, ...more });
const ui = (...elements: unknown[]) => ({ type: 'VerticalLayout', elements });
const withRegister = (name: string) => ({
  ...permit,
  uiSchema: ui(control('name', { options: { register: { urn: register(name) } } })),
});

describe('POST /form/v1/definitions/check', () => {
  it('finds nothing in a definition that works', async () => {
    const { status, body } = await ask({ ...permit, uiSchema: ui(control('name'), control('age')) });
    expect({ status, body }).toEqual({ status: 200, body: { problems: [], truncated: false } });
  });

  it('finds nothing but missing registers in the corpus of definitions', async () => {
    const folder = join(import.meta.dirname, '../../../test/fixtures/definitions');
    for (const name of readdirSync(folder)) {
      const { definition } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { definition: object };
      const found = (await problems(definition)).filter(
        ({ detail }) => detail !== 'names a register that does not exist',
      );
      expect(found, name).toEqual([]);
    }
  });

  it.each([
    ['a wrong field', { clerkRoles: 'clerk' }, '/clerkRoles', 'must be an array'],
    [
      'an id that is never found',
      { id: 'a:b' },
      '/id',
      'must be 1 to 50 letters, digits, spaces, hyphens and underscores',
    ],
    [
      'a schema that does not compile',
      { dataSchema: { type: 'text' } },
      '/dataSchema/type',
      expect.stringMatching(/^must be equal/),
    ],
    [
      'an unknown reference',
      { dataSchema: { $ref: '#/x' } },
      '/dataSchema/$ref',
      'refers to a part of the schema that does not exist',
    ],
    ['a broken pattern', { dataSchema: { pattern: '[' } }, '/dataSchema/pattern', 'is not a valid regular expression'],
  ])('reports %s as an error', async (_name, change, pointer, detail) => {
    expect(await problems({ ...permit, ...change })).toEqual([{ pointer, detail, severity: 'error' }]);
  });

  it.each([
    ['a dangerous pattern', { dataSchema: { pattern: '^(?=a)(a+)+$' } }, '/dataSchema/pattern', /^may take very long/],
    ['an unknown format', { dataSchema: { format: 'shoe-size' } }, '/dataSchema/format', /^is not a known format/],
    [
      'a property that is required and not allowed',
      { dataSchema: { properties: { a: {} }, additionalProperties: false, required: ['a', 'b'] } },
      '/dataSchema/required/1',
      /^is required and not allowed/,
    ],
    ['an empty role', { clerkRoles: ['clerk', ' '] }, '/clerkRoles/1', /^is empty/],
    [
      'an unknown role',
      { assessorRoles: ['urn:example:platform:form-service:form-admim'] },
      '/assessorRoles/0',
      /^is not a role/,
    ],
    [
      'an unknown service',
      { assessorRoles: ['urn:example:platform:none:admin'] },
      '/assessorRoles/0',
      /registered no roles$/,
    ],
    [
      'a warning before the draft exists',
      { retention: { warnBefore: 'P20D', lockAfter: 'P15D' } },
      '/retention/warnBefore',
      /^warns before/,
    ],
    ['a lock before the default warning', { retention: { lockAfter: 'P2D' } }, '/retention/lockAfter', /^warns before/],
    [
      'a period beyond a century',
      { retention: { deleteAfter: 'P999999D' } },
      '/retention/deleteAfter',
      /never expire$/,
    ],
    ['a lock at once', { retention: { lockAfter: 'PT0S' } }, '/retention/lockAfter', /^locks drafts as soon/],
    [
      'nobody who may apply',
      { anonymousApply: false, applicantRoles: [], clerkRoles: [] },
      '/applicantRoles',
      /nobody can create/,
    ],
    [
      'a link without the form',
      { formDraftUrlTemplate: 'https://example.org/' },
      '/formDraftUrlTemplate',
      /^does not contain/,
    ],
    [
      'a link that is none',
      { formDraftUrlTemplate: 'example.org/{{id}}' },
      '/formDraftUrlTemplate',
      /^must be an http/,
    ],
  ])('reports %s as a warning', async (_name, change, pointer, detail) => {
    const expected = { pointer, detail: expect.stringMatching(detail), severity: 'warning' };
    expect(await problems({ ...permit, ...change })).toEqual([expected]);
  });

  it('accepts roles that are registered, realm roles and roles of other clients', async () => {
    const clerkRoles = ['urn:example:platform:form-service:form-admin', 'anything', 'my-app:clerk'];
    expect(await problems({ ...permit, clerkRoles })).toEqual([]);
  });

  it.each([
    ['missing', 'missing', /does not exist$/],
    ['without entries', 'empty', /does not exist$/],
    ['closed to applicants without an account', 'closed', /anonymousRead/],
  ])('reports a register that is %s', async (_name, name, detail) => {
    const pointer = '/uiSchema/elements/0/options/register/urn';
    expect(await problems(withRegister(name))).toEqual([
      { pointer, detail: expect.stringMatching(detail), severity: 'warning' },
    ]);
    expect(await problems(withRegister('open'))).toEqual([]);
    expect(await problems({ ...withRegister('closed'), anonymousApply: false })).toEqual([]);
  });

  it('finds a register as soon as it is created', async () => {
    expect(await problems(withRegister('later'))).toHaveLength(1);
    await create('later', true);
    expect(await problems(withRegister('later'))).toEqual([]);
  });
});

describe('the UI schema', () => {
  const dataSchema = {
    type: 'object',
    properties: {
      kind: { enum: ['a', 'b'] },
      list: {
        type: 'array',
        items: {
          type: 'object',
          properties: { first: {}, inner: { type: 'array', items: { properties: { last: {} } } } },
        },
      },
      shared: { $ref: 'https://adsp.alberta.ca/common.v1.schema.json#/definitions/personFullName' },
      local: { $ref: '#/definitions/local' },
      free: {},
    },
    definitions: { local: { properties: { a: {}, self: { $ref: '#/definitions/local' } } } },
    allOf: [{ anyOf: [{ properties: { conditional: {} } }] }],
  };
  const check = (...elements: unknown[]) => problems({ ...permit, dataSchema, uiSchema: ui(...elements) });

  it('may name what the data schema describes anywhere', async () => {
    const rule = { effect: 'SHOW', condition: { type: 'AND', conditions: [{ scope: '#/properties/kind' }] } };
    expect(
      await check(
        control('kind', { rule }),
        control('conditional'),
        control('shared/properties/firstName'),
        control('local/properties/self/properties/a'),
        control('free/properties/anything'),
        { type: 'ListWithDetail', scope: '#/properties/list', options: { detail: { elements: [control('first')] } } },
        {
          type: 'ListWithDetail',
          scope: '#/properties/list',
          elements: [control('inner', { options: { detail: ui(control('last')) } })],
        },
        { type: 'HelpContent', options: { help: 'x' } },
        { type: 'Control', scope: '#' },
      ),
    ).toEqual([]);
  });

  it.each([
    ['an unknown property', control('none'), '/scope', /^names a property/],
    ['an unknown property of a shared schema', control('shared/properties/name'), '/scope', /^names a property/],
    ['an inherited name', control('toString'), '/scope', /^names a property/],
    ['a scope that is no path', { type: 'Control', scope: 'kind' }, '/scope', /^must be a path/],
    ['a control without a scope', { type: 'Control' }, '', /without a scope$/],
    [
      'an unknown property in a condition',
      control('kind', { rule: { condition: { scope: '#/properties/x' } } }),
      '/rule/condition/scope',
      /^names/,
    ],
    [
      'an unknown property of an item',
      control('list', { options: { detail: ui(control('second')) } }),
      '/options/detail/elements/0/scope',
      /^names/,
    ],
  ])('with %s is a warning', async (_name, element, pointer, detail) => {
    expect(await check(control('kind'), element)).toEqual([
      { pointer: `/uiSchema/elements/1${pointer}`, detail: expect.stringMatching(detail), severity: 'warning' },
    ]);
  });
});

describe('the limits of a check', () => {
  it('list at most a hundred problems', async () => {
    const many = { ...permit, uiSchema: ui(...Array.from({ length: 5_000 }, () => control('none'))) };
    expect(await ask(many)).toMatchObject({ status: 200, body: { problems: { length: 100 }, truncated: true } });
    const exact = { ...permit, uiSchema: ui(...Array.from({ length: 100 }, () => control('none'))) };
    expect(await ask(exact)).toMatchObject({ body: { problems: { length: 100 }, truncated: false } });
  });

  it('end a schema that takes too long, with a problem', async () => {
    const parts = { metrics: createMetrics(), log: captureLog().log, clock: systemClock, urnPrefix: 'urn:example' };
    const validator = createSchemaValidator({ ...parts, jobMs: 100 });
    onTestFinished(() => validator.close());
    const properties = Object.fromEntries(
      Array.from({ length: 500 }, (_, nth) => [nth, { pattern: `${nth}x{1,900}`.repeat(9) }]),
    );
    const { errors } = await validator.inspect('tenant', { dataSchema: { properties } });
    expect(errors).toEqual([{ pointer: '/dataSchema', detail: 'takes too much time or memory' }]);
  });

  it('refuse deep nesting, and a body that is no object', async () => {
    const deep = `${'{"elements":['.repeat(5_000)}${']}'.repeat(5_000)}`;
    expect((await ask(JSON.parse(`{"uiSchema":${deep}}`))).status).toBe(400);
    for (const body of [[], 'x', 1, null]) expect((await ask(body)).status).toBe(400);
  });

  it('are 60 checks a minute for each caller', async () => {
    const token = await forms.tokenWith({ roles: ['form-admin'], subject: 'eager' });
    const statuses: number[] = [];
    // If the minute ends during the loop, the rate limit's count starts again, and the limit is reached in the next
    // minute.
    while (statuses.length < 122 && statuses.at(-1) !== 429) statuses.push((await ask([], token)).status);
    expect(statuses.length).toBeGreaterThan(60);
    expect([...new Set(statuses)]).toEqual([400, 429]);
  });
});

describe('a check is allowed', () => {
  const claims = { sub: 'somebody', exp: Math.floor(Date.now() / 1000) + 3_600 };

  it.each(['nobody', 'intake', 'alice', 'clerk'] as const)('not to %s', async (who) => {
    expect((await ask(permit, who)).status).toBe(403);
  });

  it('to configuration-admin with a token for the configuration service, and to nobody without a token', async () => {
    const { access } = forms.platform;
    const token = await roleToken(
      access,
      { 'configuration-service': ['configuration-admin'] },
      { realm: 'demo', claims },
    );
    expect((await ask(permit, token)).status).toBe(200);
    expect((await call(`${forms.url}/form/v1/definitions/check`, { method: 'POST', body: permit })).status).toBe(401);
  });

  it('to core users who name the tenant', async () => {
    const token = await roleToken(forms.platform.access, { 'form-service': ['form-admin'] }, { realm: 'core', claims });
    expect((await ask(permit, token)).status).toBe(400);
    const query = `?tenantId=${encodeURIComponent(forms.platform.tenant.id)}`;
    expect((await ask(permit, token, query)).status).toBe(200);
  });
});
