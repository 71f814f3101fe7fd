import { expect, it } from 'vitest';
import { withoutTrailingSlashes } from './url-text.ts';

it.each([
  ['https://a.example/b', 'https://a.example/b'],
  ['https://a.example/b//', 'https://a.example/b'],
  ['//', ''],
  ['', ''],
])('slashes at the end are removed: %s', (text, expected) => {
  expect(withoutTrailingSlashes(text)).toBe(expected);
});
