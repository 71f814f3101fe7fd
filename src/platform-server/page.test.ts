// Tests the query parameters of lists that contain JSON.
import { expect, it } from 'vitest';
import { z } from 'zod';
import { cursor, jsonParameter } from './page.ts';

const encoded = (json: string) => Buffer.from(json).toString('base64url');

it.each([String.raw`a\u0000`, String.raw`a\ud800`])(
  'a parameter with %s, which Postgres cannot store, is refused',
  (text) => {
    expect(cursor(z.string()).safeParse(encoded(`["${text}"]`)).success).toBe(false);
    expect(jsonParameter(z.record(z.string(), z.string())).safeParse(`{"a":"${text}"}`).success).toBe(false);
  },
);

it('other JSON is read', () => {
  expect(cursor(z.string()).parse(encoded('["a\\u0041"]'))).toBe('aA');
  expect(jsonParameter(z.record(z.string(), z.string())).parse('{"a":"b"}')).toEqual({ a: 'b' });
  expect(jsonParameter(z.array(z.string())).safeParse('[').success).toBe(false);
});
