import { expect, it } from 'vitest';

it.each([
  { actual: { value: 'text' }, expected: { value: /text/ } },
  { actual: { value: 'text' }, expected: { value: {} } },
  { actual: { value: 1 }, expected: { value: {} } },
  { actual: { value: null }, expected: { value: {} } },
  { actual: { value: { a: 1 } }, expected: { value: {} } },
  { actual: { list: [{ a: 1 }] }, expected: { list: [{}] } },
  { actual: { a: 1 }, expected: {} },
])('toMatchObject rejects $actual beside $expected', ({ actual, expected }) => {
  expect(actual).not.toMatchObject(expected);
});

it.each([
  { actual: { value: /text/ }, expected: { value: /text/ } },
  { actual: { value: {} }, expected: { value: {} } },
  { actual: { value: { a: undefined } }, expected: { value: {} } },
  { actual: { value: { a: 1, b: 2 } }, expected: { value: { a: 1 } } },
  { actual: { value: 'text' }, expected: { value: expect.anything() } },
])('toMatchObject accepts $actual beside $expected', ({ actual, expected }) => {
  expect(actual).toMatchObject(expected);
});

it('other comparisons stay as they are', () => {
  expect({ a: undefined }).toEqual({});
  expect({ a: 1 }).not.toEqual({});
  expect({ a: undefined }).not.toStrictEqual({});
  expect('text').not.toEqual(/text/);
});
