import { expect, it } from 'vitest';
import { hasMoreValues } from './json-size.ts';

it.each<[string, string, number]>([
  ['the items of an array', '[1,2,3]', 3],
  ['the members of an object', '{"a":1,"b":"x","c":null}', 3],
  ['empty objects and arrays', '[{},[]]', 4],
  ['nested values', '{"a":[1,2],"b":{"c":3}}', 5],
  ['no commas and brackets in texts', '["a,b,[{","\\",[","\\\\"]', 3],
  ['a single value', '"a long text without any"', 0],
])('counts %s', (_name, text, values) => {
  expect(hasMoreValues(text, values)).toBe(false);
  if (values > 0) expect(hasMoreValues(text, values - 1)).toBe(true);
});
