import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalJson } from './json-value.ts';

const reverse = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reverse);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reverse(member)]),
  );
};

it('writes the same canonical JSON whatever the order of members, and another for another value', () => {
  expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}');
  expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
  fc.assert(fc.property(fc.jsonValue(), (value) => canonicalJson(reverse(value)) === canonicalJson(value)));
});
