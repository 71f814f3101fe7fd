import { expect, it } from 'vitest';
import { leftOut, testsThatImport } from './system-parts.ts';

it('the tests that need a part of the system are found through what they import', () => {
  expect(testsThatImport('test/support/chromium.ts')).toContain('src/service/openapi/docs-page.test.ts');
  expect(testsThatImport('test/support/redis.ts')).toContain('src/service/redis/redis.test.ts');
  expect(testsThatImport('test/support/redis.ts')).not.toContain('src/service/operations/config.test.ts');
});

it('continuous integration leaves no test out, whatever is missing', () => {
  expect(leftOut({ CI: 'true' })).toEqual([]);
});
