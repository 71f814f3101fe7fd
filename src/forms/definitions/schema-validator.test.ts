// Tests the validation of form data in worker processes with limits on time and memory: the results for valid and
// broken schemas. The tests of hostile schemas are in schema-validator-hostile.test.ts.
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { parseDefinition } from './definition.ts';
import { createSchemaValidator } from './schema-validator.ts';

const parts = { metrics: createMetrics(), log: captureLog().log, clock: systemClock, urnPrefix: 'urn:example' };
// The time limits are long, because other tests may keep the machine busy.
const validator = createSchemaValidator({ ...parts, jobMs: 10_000, waitMs: 60_000 });
afterAll(() => validator.close());

const shared = 'https://adsp.alberta.ca/common.v1.schema.json';
const form = { tenantId: 'tenant', formId: 'form' };
const find = (dataSchema: unknown, data: unknown, id = 'permit') =>
  validator.validate(form, parseDefinition(id, { name: 'Permit', dataSchema }), JSON.stringify(data));
const validate = async (...given: Parameters<typeof find>) => (await find(...given)).errors;

describe('validate', () => {
  it('lists every problem with a pointer', async () => {
    const schema = {
      type: 'object',
      required: ['name', 'a/b'],
      additionalProperties: false,
      properties: {
        name: { type: 'string' },
        'a/b': {},
        email: { type: 'string', format: 'email' },
        kind: { enum: ['one', 'two'] },
        list: { items: { type: 'number' } },
      },
    };
    const data = { email: 'x', kind: 'three', list: [1, 'two', null], more: 1 };
    expect(await validate(schema, data)).toEqual([
      { pointer: '/data/name', detail: 'is required' },
      { pointer: '/data/a~1b', detail: 'is required' },
      { pointer: '/data/more', detail: 'is not expected' },
      { pointer: '/data/email', detail: 'must match format "email"' },
      { pointer: '/data/kind', detail: 'must be equal to one of the allowed values: "one", "two"' },
      { pointer: '/data/list/1', detail: 'must be number' },
      { pointer: '/data/list/2', detail: 'must be number' },
    ]);
  });

  it.each([[{}], [true], [undefined]])('accepts anything for the schema %j', async (schema) => {
    expect(await validate(schema, { any: 'thing' })).toEqual([]);
  });

  it('accepts nothing for the schema false', async () => {
    expect(await validate(false, {})).toHaveLength(1);
  });

  it('does not change form data: defaults of a schema are not written', async () => {
    const data = {};
    await validate({ properties: { a: { default: 1 } } }, data);
    expect(data).toEqual({});
  });

  it.each([
    ['http://json-schema.org/draft-04/schema#'],
    ['http://json-schema.org/draft-06/schema#'],
    ['http://json-schema.org/draft-07/schema#'],
    ['http://json-schema.org/draft-07/schema'],
    ['https://json-schema.org/draft/2019-09/schema'],
    ['https://json-schema.org/draft/2020-12/schema'],
  ])('supports the dialect %s', async ($schema) => {
    expect(await validate({ $schema, type: 'object', required: ['a'] }, {})).toHaveLength(1);
  });

  it('keeps definitions apart, even if their schemas have the same $id', async () => {
    const of = (required: string) => ({ $id: 'https://example.org/same', required: [required] });
    expect(await validate(of('a'), { a: 1 }, 'one')).toEqual([]);
    expect(await validate(of('b'), { a: 1 }, 'two')).toHaveLength(1);
    expect(await validate(of('a'), { a: 1 }, 'one')).toEqual([]);
  });

  it.each([
    ['no schema', { type: 'nonsense' }, '/type', /^must be equal to one of the allowed values: "array"/],
    ['an unknown dialect', { $schema: 'http://json-schema.org/draft-03/schema#' }, '/$schema', /^must be draft 4/],
    ['an asynchronous schema', { $async: true, type: 'object' }, '/$async', /^is not supported/],
    ['a reference that leads out', { $ref: 'https://example.org/x' }, '/$ref', /^refers to another document/],
    ['a part that is not shared', { items: { $ref: `${shared}#/definitions/none` } }, '/items/$ref', /^names a part/],
    [
      'a definition of the public platform that is not shipped',
      { properties: { home: { $ref: `${shared}#/definitions/personLivingInAlbertaHousehold` } } },
      '/properties/home/$ref',
      /^names a part that the shared schema does not have/,
    ],
    [
      'a shared schema that is named relative to its $id',
      { $id: 'https://example.org/a.json', items: { $ref: 'standard.v1.schema.json#/definitions/postalCode' } },
      '/items/$ref',
      /^is resolved against the \$id of the schema/,
    ],
    ['a reference that leads nowhere', { $ref: '#/definitions/none' }, '/$ref', /does not exist$/],
    ['a pattern that is none', { properties: { a: { pattern: '(' } } }, '/properties/a/pattern', /regular expression$/],
    [
      'a wrong name pattern',
      { patternProperties: { '(': { minLength: 1 } } },
      '/patternProperties/(',
      /regular expression$/,
    ],
    ['the same $id twice', { items: [{ $id: '/a' }, { $id: '/a' }] }, '', /^contradicts itself/],
  ])('calls a definition with %s unusable, with a pointer', async (_name, schema, pointer, detail) => {
    await expect(validate(schema, { a: 'x' })).rejects.toMatchObject({
      slug: 'definition-invalid',
      status: 409,
      errors: [{ pointer: `/dataSchema${pointer}`, detail: expect.stringMatching(detail) }],
    });
  });
});

describe('requireUsable', () => {
  const require = (dataSchema: unknown, id = 'permit') =>
    validator.requireUsable('tenant', parseDefinition(id, { dataSchema }));

  it('accepts a schema that compiles, and refuses another with pointers, however often it is asked', async () => {
    for (let time = 0; time < 3; time += 1) {
      await require({ required: ['a'] });
      await expect(require({ required: 'a' }, 'broken')).rejects.toMatchObject({
        slug: 'definition-invalid',
        errors: [{ pointer: '/dataSchema/required', detail: 'must be array' }],
      });
    }
  });

  it('compiles a schema once', async () => {
    const metrics = createMetrics();
    const counted = createSchemaValidator({ ...parts, metrics });
    onTestFinished(() => counted.close());
    const definition = parseDefinition('permit', { dataSchema: { required: ['a'] } });
    await Promise.all(Array.from({ length: 20 }, () => counted.requireUsable('tenant', definition)));
    await counted.requireUsable('tenant', definition);
    expect(await metrics.registry.metrics()).toContain('formgate_worker_jobs_total{worker="schema",outcome="done"} 1');
  });
});

describe('many errors', () => {
  it('are listed up to 20, and the findings are marked as truncated', async () => {
    const schema = { properties: { list: { items: { type: 'number' } } } };
    const wrong = (count: number) => ({ list: Array.from({ length: count }, () => 'x') });
    expect(await find(schema, wrong(20))).toMatchObject({ errors: { length: 20 }, truncated: false });
    const more = await find(schema, wrong(20_000));
    expect(more).toMatchObject({ errors: { length: 20 }, truncated: true });
    expect(more.errors[19]).toEqual({ pointer: '/data/list/19', detail: 'must be number' });
  });

  it('exceed no limit, even half a million: at least the first is listed', async () => {
    const schema = { properties: { list: { items: { type: 'number', enum: [1], not: { const: '' } } } } };
    const findings = await find(schema, { list: Array.from({ length: 500_000 }, () => '') });
    expect(findings.truncated).toBe(true);
    expect(findings.errors.length).toBeGreaterThan(0);
    expect(findings.errors.length).toBeLessThanOrEqual(20);
    expect(findings.errors[0]?.pointer).toBe('/data/list/0');
  });
});

describe('concurrent validations', () => {
  it('all succeed', async () => {
    const all = await Promise.all(
      Array.from({ length: 150 }, (_, nth) => validate({ required: [`a${nth % 20}`] }, {}, `many-${nth % 20}`)),
    );
    expect(all.every((errors) => errors.length === 1)).toBe(true);
  });

  it('that exceed the queue are 503 with Retry-After', async () => {
    const all = await Promise.allSettled(Array.from({ length: 260 }, () => validate({ required: ['a'] }, {})));
    const refused = all.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
    expect(refused.length).toBeGreaterThan(0);
    for (const reason of refused) expect(reason).toMatchObject({ slug: 'busy', headers: { 'Retry-After': '70' } });
  });
});
