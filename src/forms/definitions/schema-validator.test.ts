// Validation in worker threads: what is answered, and what a hostile or broken schema may not do.
import { afterAll, describe, expect, it } from 'vitest';
import { parseDefinition } from './definition.ts';
import { createSchemaValidator } from './schema-validator.ts';

const validator = createSchemaValidator({ timeout: 1_000 });
afterAll(() => validator.close());

const validate = (dataSchema: unknown, data: unknown, id = 'permit') =>
  validator.validate('tenant', parseDefinition(id, { name: 'Permit', dataSchema }), JSON.stringify(data));

describe('validate', () => {
  it('lists every failing place with a pointer', async () => {
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

  it.each([[{}], [true], [undefined]])('takes anything for the schema %j', async (schema) => {
    expect(await validate(schema, { any: 'thing' })).toEqual([]);
  });

  it('takes nothing for the schema false', async () => {
    expect(await validate(false, {})).toHaveLength(1);
  });

  it('changes no answers: defaults of a schema are not written', async () => {
    const data = {};
    await validate({ properties: { a: { default: 1 } } }, data);
    expect(data).toEqual({});
  });

  it.each([
    ['http://json-schema.org/draft-07/schema#'],
    ['http://json-schema.org/draft-07/schema'],
    ['https://json-schema.org/draft/2019-09/schema'],
    ['https://json-schema.org/draft/2020-12/schema'],
  ])('knows the dialect %s', async ($schema) => {
    expect(await validate({ $schema, type: 'object', required: ['a'] }, {})).toHaveLength(1);
  });

  it('keeps definitions apart, even where their schemas have the same $id', async () => {
    const of = (required: string) => ({ $id: 'https://example.org/same', required: [required] });
    expect(await validate(of('a'), { a: 1 }, 'one')).toEqual([]);
    expect(await validate(of('b'), { a: 1 }, 'two')).toHaveLength(1);
    expect(await validate(of('a'), { a: 1 }, 'one')).toEqual([]);
  });

  it.each([
    ['no schema', { type: 'nonsense' }],
    ['an unknown dialect', { $schema: 'http://json-schema.org/draft-04/schema#' }],
    ['a reference that leads out', { $ref: 'https://example.org/x' }],
    ['a reference that leads nowhere', { $ref: '#/definitions/none' }],
    ['a pattern that is none', { properties: { a: { pattern: '(' } } }],
  ])('calls a definition with %s unusable', async (_name, schema) => {
    await expect(validate(schema, { a: 'x' })).rejects.toMatchObject({ slug: 'definition-invalid', status: 502 });
  });
});

describe('a hostile schema', () => {
  const evil = { properties: { a: { pattern: '^(a+)+$' } } };
  const answer = { a: `${'a'.repeat(40)}!` };

  it('that backtracks is cut off, and others are answered meanwhile and after', async () => {
    const started = performance.now();
    const hostile = validate(evil, answer, 'evil');
    hostile.catch(() => undefined);
    expect(await validate({ required: ['a'] }, {})).toHaveLength(1);
    await expect(hostile).rejects.toMatchObject({ slug: 'definition-invalid' });
    expect(performance.now() - started).toBeLessThan(8_000);
    expect(await validate({ required: ['a'] }, {})).toHaveLength(1);
  });

  it('does not hold up the event loop', async () => {
    let longest = 0;
    let last = performance.now();
    const timer = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 5);
    await expect(validate(evil, answer, 'evil')).rejects.toThrow();
    clearInterval(timer);
    expect(longest).toBeLessThan(500);
  });

  it('that refers to itself without end costs only its own request', async () => {
    const endless = { $ref: '#/definitions/a', definitions: { a: { allOf: [{ $ref: '#/definitions/a' }] } } };
    await expect(validate(endless, {}, 'endless')).rejects.toMatchObject({ slug: 'definition-invalid' });
    expect(await validate({ required: ['a'] }, {})).toHaveLength(1);
  });

  it('that finds a million faults lists a thousand', async () => {
    const data = { list: Array.from({ length: 20_000 }, () => 'x') };
    const faults = await validate({ properties: { list: { items: { type: 'number', enum: [1] } } } }, data);
    expect(faults).toHaveLength(1_000);
  });
});

describe('many at once', () => {
  it('are all answered', async () => {
    const all = await Promise.all(
      Array.from({ length: 150 }, (_, nth) => validate({ required: [`a${nth % 20}`] }, {}, `many-${nth % 20}`)),
    );
    expect(all.every((errors) => errors.length === 1)).toBe(true);
  });

  it('beyond what can wait are 503 with Retry-After', async () => {
    const all = await Promise.allSettled(Array.from({ length: 260 }, () => validate({ required: ['a'] }, {})));
    const refused = all.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
    expect(refused.length).toBeGreaterThan(0);
    for (const reason of refused) expect(reason).toMatchObject({ status: 503, headers: { 'Retry-After': '2' } });
  });
});

describe('an idle worker', () => {
  it('ends, and a new one is started when needed', async () => {
    const brief = createSchemaValidator({ idle: 50 });
    const definition = parseDefinition('permit', { dataSchema: { required: ['a'] } });
    expect(await brief.validate('tenant', definition, '{}')).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await brief.validate('tenant', definition, '{}')).toHaveLength(1);
    await brief.close();
  });
});
