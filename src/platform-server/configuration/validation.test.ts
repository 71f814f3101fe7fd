import { describe, expect, it } from 'vitest';
import { createValidate } from './validation.ts';

const validate = createValidate();

describe('validation against a definition', () => {
  it('returns a copy with the defaults of the schema, and does not modify the given value', () => {
    const value = { list: [{}] };
    const schema = {
      properties: { on: { default: true }, list: { items: { type: 'object', properties: { n: { default: 1 } } } } },
    };
    expect(validate(schema, value)).toEqual({ valid: true, value: { on: true, list: [{ n: 1 }] } });
    expect(value).toEqual({ list: [{}] });
  });

  it('gives a pointer to the invalid member', () => {
    expect(validate({ type: 'array', items: { type: 'string' } }, ['a', 5])).toEqual({
      valid: false,
      pointer: '/1',
      detail: 'must be string',
    });
  });

  it.each([
    { title: 'a reference to elsewhere', schema: { $ref: 'https://example.org/x.json' } },
    { title: 'a meta-schema of another draft', schema: { $schema: 'https://json-schema.org/draft/2020-12/schema' } },
    { title: 'a malformed keyword', schema: { type: 'list' } },
    { title: 'a malformed pattern', schema: { pattern: '(' } },
    { title: 'no schema at all', schema: 'x' },
    { title: 'null', schema: null },
  ])('with $title, anything is valid', ({ schema }) => {
    expect(validate(schema, { any: 'thing' })).toMatchObject({ valid: true });
  });

  it('knows the formats file-urn and phone, those of JSON Schema, and ignores unknown ones', () => {
    const check = (format: string, value: string) => validate({ format }, value).valid;
    const urn = 'urn:example:platform:file-service:v1:/files/8a1c';
    expect(check('file-urn', urn)).toBe(true);
    expect(check('file-urn', `${urn};${urn}`)).toBe(true);
    expect(check('file-urn', 'file.pdf')).toBe(false);
    expect(check('phone', '+1 780 555 0100')).toBe(true);
    expect(check('phone', 'call me')).toBe(false);
    expect(check('date', '2026-02-30')).toBe(false);
    expect(check('made-up', 'x')).toBe(true);
  });

  it('keeps schemas with the same $id apart', () => {
    const $id = 'https://example.org/same';
    expect(validate({ $id, type: 'string' }, 5).valid).toBe(false);
    expect(validate({ $id, type: 'number' }, 5).valid).toBe(true);
  });
});
