// Schemas and form data, in addition to the corpus of test/fixtures/definitions, on which two validators are likely to
// differ.

export interface Example {
  schema: unknown;
  data: readonly unknown[];
  /**
   * True if the validators are compared only by whether the data is valid, because the form service reports more
   * findings about the same fault.
   */
  comparesValidity?: boolean;
}

const text = (more: object, values: readonly unknown[]): Example => ({
  schema: { type: 'object', properties: { a: { type: 'string', ...more } } },
  data: values.map((a) => ({ a })),
});
const number = (more: object, values: readonly unknown[]): Example => ({
  schema: { properties: { a: { type: 'number', ...more } } },
  data: values.map((a) => ({ a })),
});
const file = 'urn:example:platform:file-service:v1:/files/f6de737e';

export const furtherExamples: Record<string, Example> = {
  'times of day': text({ format: 'time' }, ['14:30', '14:30:05', '14:30:05Z', '14:30:05+05:00', '24:00', '9:00', '']),
  moments: text({ format: 'date-time' }, [
    '2026-08-20T17:00:00Z',
    '2026-08-20T17:00:00',
    '2026-08-20 17:00:00+0200',
    'x',
  ]),
  dates: text({ format: 'date' }, ['2024-02-29', '2023-02-29', '2026-1-5', '--', '2026-13-01']),
  'email addresses': text({ format: 'email' }, [
    'a@b.org',
    'a@b',
    '"a b"@c.org',
    'é@b.org',
    'a@b.org ',
    'a..b@c.org',
    '',
  ]),
  telephones: text({ format: 'phone' }, ['780 555 0100', '+49 30 123456', '+1 (780) 555-0100', '12', '']),
  'web addresses': text({ format: 'uri' }, ['https://example.org', 'example.org', '//x', 'mailto:a@b.org', 'a b']),
  identifiers: text({ format: 'uuid' }, ['urn:uuid:f6de737e-c5fc-42fe-963b-28bfe14597c4', 'x']),
  hosts: text({ format: 'hostname' }, ['example.org', 'example.org.', '-x', '']),
  durations: text({ format: 'duration' }, ['P1D', 'P1Y2M', 'PT', 'P1W', 'P1Y1D']),
  'numbers of insurance': text({ format: 'sin' }, ['046 454 286', '046-454-286', '046 454-286', '1']),
  'postal codes': text({ format: 'postal-code' }, ['T5K 2M5', 't5k2m5', 'T5K--2M5', '']),
  files: text({ format: 'file-urn' }, [file, `${file};${file}`, `${file};`, 'licence.pdf', '']),
  'unknown formats': text({ format: 'shoe-size' }, ['42', '']),
  'formats that choose an input': text({ format: 'computed' }, ['x', '']),
  'older pattern syntax': text({ pattern: '^[a-z\\_]+\\-\\d$' }, ['a_-1', 'a-1', 'A-1']),
  'patterns of code points': text({ pattern: '^.$' }, ['😀', 'ab', 'é']),
  'patterns of properties': text({ pattern: '^\\p{L}+$' }, ['Ünal', '1']),
  'lengths in code points': text({ minLength: 2, maxLength: 2 }, ['😀😀', '😀', 'é', 'abc', 'ab']),
  'null that is allowed': text({ nullable: true }, [null, 'x', 1]),
  bounds: number({ minimum: 0, exclusiveMaximum: 10 }, [0, 9.99, 10, -0.1, '1', null]),
  steps: number({ multipleOf: 0.01 }, [19.99, 0.3, 1, 0.005, 1e20]),
  'a type or another': {
    schema: { properties: { a: { type: ['string', 'integer'] } } },
    data: [{ a: 1 }, { a: 1.5 }, { a: '' }],
  },
  constants: {
    schema: { properties: { a: { const: null }, b: { const: [1] } } },
    data: [{ a: null }, { a: 0, b: [1] }, { b: [2] }],
  },
  'members that are not expected': {
    schema: { properties: { a: {} }, additionalProperties: false },
    data: [{}, { a: 1 }, { b: 1 }, { 'x/y': 1 }],
  },
  'members by pattern': {
    schema: { patternProperties: { '^n': { type: 'number' } }, additionalProperties: { type: 'string' } },
    data: [{ n1: 1 }, { n1: 'x' }, { m: 1 }, { m: '' }],
  },
  'names of members': { schema: { propertyNames: { maxLength: 2 } }, data: [{ ab: 1 }, { abc: 1 }] },
  lists: {
    schema: { properties: { a: { items: { type: 'object', required: ['b'] }, minItems: 1, uniqueItems: true } } },
    data: [{ a: [] }, { a: [{}] }, { a: [{ b: 1 }, { b: 1 }] }, { a: [{ b: 1 }, { b: 2 }] }],
  },
  'lists of fixed length': {
    schema: { properties: { a: { items: [{ type: 'string' }], additionalItems: false } } },
    data: [{ a: ['x'] }, { a: [1] }, { a: ['x', 1] }],
  },
  'lists that contain': {
    comparesValidity: true,
    schema: { properties: { a: { contains: { const: 1 } } } },
    data: [{ a: [1] }, { a: [2] }, { a: [] }],
  },
  'exactly one of two': {
    schema: {
      properties: {
        a: {
          oneOf: [
            { type: 'number', minimum: 5 },
            { type: 'number', maximum: 7 },
          ],
        },
      },
    },
    data: [{ a: 1 }, { a: 6 }, { a: 9 }, { a: 'x' }],
  },
  'not this': { schema: { properties: { a: { not: { const: 'x' } } } }, data: [{ a: 'x' }, { a: 'y' }, {}] },
  otherwise: {
    schema: JSON.parse('{"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}'),
    data: [{ a: 1 }, { a: 1, b: 1 }, {}, { c: 1 }],
  },
  'schemas beside a reference': {
    schema: { definitions: { s: { type: 'string' } }, properties: { a: { $ref: '#/definitions/s', maxLength: 1 } } },
    data: [{ a: 'x' }, { a: 'xy' }, { a: 1 }],
  },
  'a schema with an address': {
    schema: {
      $id: 'https://example.org/form',
      definitions: { s: { minLength: 1 } },
      properties: { a: { $ref: '#/definitions/s' } },
    },
    data: [{ a: 'x' }, { a: '' }],
  },
  'keywords of a later draft': {
    schema: { dependentRequired: { a: ['b'] }, unevaluatedProperties: false, properties: { a: {} } },
    data: [{ a: 1 }, { c: 1 }],
  },
  'keywords of draft 2019-09': {
    schema: {
      $schema: 'https://json-schema.org/draft/2019-09/schema',
      dependentRequired: { a: ['b'] },
      dependentSchemas: { c: { required: ['d'] } },
      unevaluatedProperties: false,
      properties: { a: {}, b: {}, c: {}, d: {} },
    },
    data: [{ a: 1 }, { a: 1, b: 1 }, { c: 1 }, { e: 1 }],
  },
  'keywords of draft 2020-12': {
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      properties: { a: { prefixItems: [{ type: 'string' }], items: false } },
    },
    data: [{ a: ['x'] }, { a: [1] }, { a: ['x', 1] }],
  },
  'draft 4': {
    schema: {
      $schema: 'http://json-schema.org/draft-04/schema#',
      properties: { a: { type: 'integer', minimum: 18, exclusiveMinimum: true }, b: { id: '#b', maximum: 3 } },
    },
    data: [{ a: 18 }, { a: 19 }, { b: 4 }],
  },
  'everything and nothing': { schema: { properties: { a: true, b: false } }, data: [{ a: 1 }, { b: 1 }] },
  'a schema that is true': { schema: true, data: [{}, { a: 1 }] },
  'hostile names': {
    schema: { properties: { a: { type: 'string' } } },
    data: [JSON.parse('{"__proto__": 1, "a": 2}')],
  },
};
