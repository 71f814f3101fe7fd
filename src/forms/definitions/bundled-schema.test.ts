import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { bundledSchema } from './bundled-schema.ts';

/** Returns the values of all `$ref` members of a schema. */
function references(schema: unknown): string[] {
  return [...JSON.stringify(schema).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference ?? '');
}

describe('a data schema for a page', () => {
  it.each(['common.v1.schema.json', 'https://adsp.alberta.ca/common.v1.schema.json'])(
    'contains the shared schema %s that it refers to, and validates alone as before',
    (document) => {
      const schema = {
        type: 'object',
        definitions: { name: { type: 'string' } },
        properties: { name: { $ref: '#/definitions/name' }, who: { $ref: `${document}#/definitions/personFullName` } },
      };
      const bundled = bundledSchema(schema);
      expect(references(bundled).every((reference) => reference.startsWith('#/'))).toBe(true);
      const validate = new Ajv({ strict: false, validateFormats: false }).compile(bundled as object);
      expect(validate({ name: 'Ana', who: { firstName: 'Ana', lastName: 'Okafor' } })).toBe(true);
      expect(validate({ name: 'Ana', who: 1 })).toBe(false);
    },
  );

  it('stays as it is without shared schemas', () => {
    for (const schema of [
      { type: 'object', properties: { a: { $ref: '#/$defs/b' } }, $defs: { b: {} } },
      true,
      { $ref: 'https://other.example/x.json' },
    ])
      expect(bundledSchema(schema)).toEqual(schema);
  });
});
