// Tests that docs/errors.md lists exactly the problem types of the catalogue, and that the code uses exactly these
// types.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { problemTypes } from '../../src/service/http/problem-types.ts';
import { errorPage, slugsOfPage } from './error-reference.ts';
import { listFiles } from './source-files.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/errors.md'), 'utf8');

test('docs/errors.md agrees with the catalogue (npm run docs updates it)', () => {
  expect(page).toBe(errorPage);
});

test('every problem type is on the page with its status, and every row of the page is a problem type', () => {
  const types = Object.entries(problemTypes).map(([slug, { status }]) => [slug, status]);
  expect(types.length).toBeGreaterThan(25);
  expect(slugsOfPage(page)).toEqual(types);
});

test('every problem type says what happened and what to do', () => {
  for (const [slug, { title, meaning, action }] of Object.entries(problemTypes))
    for (const text of [title, meaning, action]) {
      expect(text, slug).not.toContain('|');
      expect(text, slug).toMatch(text === title ? /^[A-Z].*[^.]$/ : /^[A-Z].*\.$/);
    }
});

test('every problem type is used by the code', () => {
  const source = listFiles(root, ['src', 'reconciler'], '.ts')
    .filter(({ path }) => !/\.test\.ts$|\/(?:problem|failure)-types\.ts$/.test(path))
    .map(({ text }) => text)
    .join('\n');
  expect(Object.keys(problemTypes).filter((slug) => !source.includes(`'${slug}'`))).toEqual([]);
});
